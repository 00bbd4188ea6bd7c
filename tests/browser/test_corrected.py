"""The report with labels: the corrected mean in front, and the picture of the three intervals."""

import pytest

from ..labels.population import labelled, made  # noqa: TID252
from .conftest import open_all

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    report, truth = made(
        120, metric="faithfulness", sample=lambda i: {"metadata": {"topic": "law" if i % 2 else "art"}}
    )
    file = labelled(tmp_path_factory.mktemp("corrected") / "l", report, truth, [f"q{i}" for i in range(60)])
    return report.html(labels=file)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_screen(show, html, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = show(html, width, color_scheme=scheme, bypass_csp=True)
    open_all(page)
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_picture_shows_three_intervals_and_says_them(show, html):
    page = show(html, java_script_enabled=False)
    picture = page.get_by_role("img", name="Who says what")
    assert picture.get_by_text("corrected 0.").is_visible()
    reaches = [each.bounding_box() for each in picture.locator(".reach").all()]
    assert len(reaches) == 3
    assert reaches[0]["width"] < reaches[1]["width"]  # narrower than by the labels alone
    words = picture.locator("desc").text_content()
    assert [part.partition(":")[0] for part in words.split("; ")] == ["corrected", "60 labels alone", "judge alone"]
