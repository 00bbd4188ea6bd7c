"""Take the pictures of docs/images from the demo's report. It needs the group `browser`, and Chromium."""

import json
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from ragstone.cli.demo import RECORDING, demo_report

IMAGES = Path(__file__).parent / "images"
SHOTS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


def main() -> None:
    """Write a picture for each width and colour scheme, one sample open; README shows that sample alone."""
    page = demo_report(json.loads(RECORDING.read_text("utf-8"))).html()
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width, scheme in SHOTS:
            tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            tab.set_content(page)
            tab.get_by_label("Sort by", exact=True).select_option(label="faithfulness: worst first")
            tab.get_by_role("button", name="unsupported claim").click()
            tab.evaluate("scrollTo(0, 0)")
            target = IMAGES / f"report-{width}-{scheme}.png"
            if (width, scheme) == (1280, "light"):
                tab.locator("#sample").screenshot(path=IMAGES / "sample.png")
                small(IMAGES / "sample.png")
            whole = tab.locator("#sample").bounding_box()
            height = min(whole["y"] + whole["height"] + 20, 4_000)
            tab.screenshot(path=target, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
            small(target)
            tab.close()
        browser.close()


def small(path: Path) -> None:
    """Keep 256 colours, a third of the bytes. The method keeps rare ones, such as those of the metrics' squares."""
    image = Image.open(path).convert("RGB")
    image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
