"""The report with labels: the corrected mean stands before the judge's."""

import pytest

from ragstone.labels import corrected

from ..labels.population import labelled, made  # noqa: TID252
from .conftest import open_all

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_screen(show, tmp_path, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    report, truth = made(120, metric="faithfulness")
    file = labelled(tmp_path / "l", report, truth, [f"q{i}" for i in range(60)])
    page = show(report.html(corrected(report, file)), width, color_scheme=scheme, bypass_csp=True)
    open_all(page)
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
