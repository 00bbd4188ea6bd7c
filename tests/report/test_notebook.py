"""What a notebook shows of reports and outcomes: the text that `print` shows, and no markup from outside."""

import html

import pytest

from ragstone import Unscored
from ragstone.report import compare

from .reports import rich, scored
from .test_page import VERDICTS

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "shown",
    [
        scored(0.25, passed=False, reason=HOSTILE, verdicts=VERDICTS),
        Unscored(metric="mine", reason="timeout", detail=HOSTILE, version="1"),
        rich(HOSTILE),
        compare(rich(HOSTILE), rich(HOSTILE)),
    ],
    ids=["score", "unscored", "report", "comparison"],
)
def test_a_notebook_shows_what_print_does(shown):
    text = shown._repr_html_()
    assert text == f"<pre>{html.escape(str(shown))}</pre>"
    assert "<script" not in text
