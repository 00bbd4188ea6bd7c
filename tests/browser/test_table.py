"""The table of samples: drawing, sorting, filtering and opening rows; keyboard, screen readers, narrow, dark, print."""

import re

import pytest

from ragstone import Evidence, Sample, Verdict
from ragstone.outcome import Suspicion
from ragstone.report import Report
from ragstone.results.record import Record

from ..report.reports import report, scored, unscored  # noqa: TID252
from .conftest import open_all

pytestmark = pytest.mark.browser
SHOWN = "#samples tbody th button"


def verdict(start, end, *, lowers=True, field="response", word="no"):
    evidence = (Evidence(field=field, chunk=None, start=start, end=end, text="green"),)
    return Verdict(id="1", kind="claim", text="green", verdict=word, lowers_score=lowers, evidence=evidence)


@pytest.fixture(scope="module")
def html():
    """Return a page of five samples that differ in all that can be filtered."""
    suspicion = Suspicion(field="response", start=0, end=2, kind="order")
    outcomes = {
        "low": (scored(0.1, passed=False, verdicts=(verdict(2, 7),)), scored(0.9, "other", passed=True)),
        "high": (scored(0.9, passed=True), scored(0.3, "other", passed=False)),
        "failed": (unscored("judge_error", "refused the key"), scored(0.8, "other")),
        "attack": (scored(0.5, suspected=(suspicion,)), scored(1.0, "other")),
        "no answer": (scored(0.0, "response_relevancy", breakdown={"noncommittal": 1.0}),
                      scored(0.0, "context_relevancy", breakdown={"sentence": 0.0})),
    }  # fmt: skip
    samples = {
        i: Sample(
            user_input=f"Question {i}?", response="\U0001f600 green, and big.", retrieved_contexts=["What was retrieved."], reference="It is right.",
            history=[{"role": "user", "content": "Earlier."}], metadata={"language": "de" if i % 2 else "en"},
        )
        for i in range(5)
    }  # fmt: skip
    given = [
        Record(name, each, "j", row, origin={"trace_id": "t-7"})
        for row, (name, of) in enumerate(outcomes.items())
        for each in of
    ]
    return Report.of(given, samples=samples, name="five").html()


def ids(page):
    return page.locator(SHOWN).all_inner_texts()


def test_many_rows(show):
    page = show(report([(i * 7919 % 2_100) / 2_100 for i in range(2_100)]).html())
    assert "2,000 samples shown. The table holds 2,000 of 2,100 samples" in page.inner_text("#samples [role=status]")
    assert page.locator(SHOWN).count() == 2_000
    values = page.locator("#samples td.heat").all_inner_texts()
    assert values[0] == "0.000"
    assert values == sorted(values)
    page.get_by_label("Find text").fill("q2099")
    assert ids(page) in ([], ["q2099"])


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        ("Show", "below the threshold", ["low", "high"]),
        ("Show", "unscored", ["failed"]),
        ("Show", "possible attack on the judge", ["attack"]),
        ("Show", "refused, and no answer in the contexts", ["no answer"]),
        ("language", "de", ["high", "attack"]),
        ("Find text", "REFUSED THE", ["failed"]),
        ("Find text", "question 3", ["attack"]),
        ("Find text", "green", ["low", "high", "failed", "attack", "no answer"]),
        ("Sort by", "demo: highest first", ["high", "attack", "low", "failed", "no answer"]),
        ("Sort by", "lowest score first", ["no answer", "low", "high", "attack", "failed"]),
        ("Sort by", "sample id", ["attack", "failed", "high", "low", "no answer"]),
    ],
)
def test_sorting_and_filtering(show, html, label, value, expected):
    page = show(html)
    page.get_by_label("Sort by").select_option("row")
    control = page.get_by_label(label, exact=True)
    control.select_option(label=value) if label in ("Show", "language", "Sort by") else control.fill(value)
    assert ids(page) == expected


def test_a_row_opens_by_keyboard_to_all_that_is_known(show, html):
    page = show(html)
    button = page.get_by_role("button", name="low", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    detail = page.locator("#samples .detail")
    text = detail.inner_text()
    for words in ("Question 0?", "Earlier.", "What was retrieved.", "It is right.", "It is 0.1.", "claim 1 no: green",
                  "t-7", '"language":"en"'):  # fmt: skip
        assert words in text
    assert detail.locator("mark").all_inner_texts() == ["green"]
    assert detail.locator("mark").get_attribute("title") == "demo: claim 1 no"
    page.keyboard.press("Enter")
    assert detail.count() == 0


def test_without_scripts_the_page_has_the_means(show, html):
    page = show(html, java_script_enabled=False)
    assert not page.locator("#samples").is_visible()
    assert page.locator("meter").count() >= 2
    assert page.get_by_text("1 sample refused, and no context holds an answer").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(show, html, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = show(html, width, color_scheme=scheme, bypass_csp=True)
    open_all(page)
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def test_on_paper_there_are_no_controls_and_the_table_is_whole(show, html):
    page = show(html)
    page.emulate_media(media="print")
    assert not page.locator(".controls").is_visible()
    assert page.locator("#samples td.heat").first.evaluate("cell => getComputedStyle(cell).printColorAdjust") == "exact"
    assert re.match("%PDF", page.pdf()[:4].decode())


def test_texts_from_right_to_left_keep_their_direction(show):
    samples = [
        Sample(
            user_input="\u05de\u05d9 \u05db\u05ea\u05d1 \u05d0\u05ea Emma?", response="\u05d2\u05f3\u05d9\u05d9\u05df."
        )
    ]
    page = show(report([0.5], samples=samples).html(), 390)
    open_all(page)
    for selector in ("#samples .question", "#samples .detail .text"):
        assert page.locator(selector).first.evaluate("each => getComputedStyle(each).direction") == "rtl"
