"""The system's Chromium without a window and without a net: a page is served from here, and nothing else is."""

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail(f"no browser: install one of {', '.join(NAMES)} (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(chromium):
    """Show pages. In the end no page has asked for anything, and no script has failed or talked."""
    wrong, contexts = [], []

    def open_page(html, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)

        def serve(route):
            if route.request.url == "http://report.test/":
                route.fulfill(body=html.encode(), content_type="text/html; charset=utf-8")
            else:
                wrong.append(route.request.url)
                route.abort()

        page.route("**/*", serve)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.goto("http://report.test/")
        if options.get("java_script_enabled", True):
            # Rows are unpacked after the page has loaded.
            page.locator("h1").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def open_all(page):
    """Open all that can be opened: the first sample, and what is folded."""
    if page.locator("#samples tbody button").count():
        page.locator("#samples tbody button").first.click()
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
