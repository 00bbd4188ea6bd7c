"""The table of samples: drawing, sorting, filtering and opening rows; keyboard, screen readers, narrow, dark, print."""

import re
from itertools import combinations

import pytest

from ragstone import Evidence, Sample, Verdict
from ragstone.labels import corrected
from ragstone.report import Report, compare
from ragstone.results.record import Record

from ..labels.population import labelled, made  # noqa: TID252
from ..report.data import NOON  # noqa: TID252
from ..report.reports import data_of, report, scored, unscored  # noqa: TID252
from .conftest import open_all

pytestmark = pytest.mark.browser
SHOWN = "#samples tbody th button"


def verdict(start, end, *, lowers=True, field="response", word="no"):
    evidence = (Evidence(field=field, chunk=None, start=start, end=end, text="green"),)
    return Verdict(id="1", kind="claim", text="green", verdict=word, lowers_score=lowers, evidence=evidence)


@pytest.fixture(scope="module")
def html():
    """Return a page of five samples that differ in all that can be filtered."""
    outcomes = {
        "low": (scored(0.1, passed=False, verdicts=(verdict(2, 7),)), scored(0.9, "other", passed=True)),
        "high": (scored(0.9, passed=True), scored(0.3, "other", passed=False)),
        "failed": (unscored("judge_error", "refused the key"), scored(0.8, "other")),
        "middle": (scored(0.5), scored(1.0, "other")),
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
        Record(name, each, "j", row, submitted_at=NOON + 60 * row, origin={"trace_id": "t-7"})
        for row, (name, of) in enumerate(outcomes.items())
        for each in of
    ]
    return Report.of(given, samples=samples, name="five").html()


def ids(page):
    return page.locator(SHOWN).all_inner_texts()


def test_a_page_opens_at_its_top(show, html):
    page = show(html, width=390)
    page.locator("#samples tbody button").first.wait_for()
    page.wait_for_timeout(100)  # two frames and more
    assert page.evaluate("[scrollY, document.activeElement.tagName]") == [0, "BODY"]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_line_over_time_says_its_scale_and_its_dates(show, html, width):
    line = show(html, width).locator(".line").first
    words = ["1.00", "0.00", "09-21 12:00", "per minute", "09-21 12:03"]
    assert line.locator("span").all_inner_texts() == words
    boxes = [each.bounding_box() for each in line.locator("span, svg").all()]
    apart = [
        a["x"] + a["width"] <= b["x"] + 1 or a["y"] + a["height"] <= b["y"] + 1
        for a, b in combinations(sorted(boxes, key=lambda box: (box["x"], box["y"])), 2)
    ]
    assert all(apart)


def test_many_rows_are_drawn_when_they_are_seen(show):
    n = 12_000
    page = show(report([(i * 7919 % n) / n for i in range(n)]).html())
    assert "10,000 samples shown. The page holds 10,000 of 12,000 samples" in page.inner_text("#samples [role=status]")
    assert 10 < page.locator(SHOWN).count() < 200
    values = page.locator("#samples td.heat").all_inner_texts()
    assert values[0] == "0.000"
    assert values == sorted(values)
    frame = page.locator("#samples > .scroll")
    frame.evaluate("each => { each.scrollTop = each.scrollHeight }")
    page.locator("#samples tbody > :last-child button").first.wait_for()
    assert page.locator("#samples td.heat").last.inner_text() >= "0.833"
    page.get_by_label("Find text").fill("q119")
    assert all("q119" in each for each in ids(page))


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        ("Show", "below the threshold", ["low", "high"]),
        ("Show", "unscored", ["failed"]),
        ("Show", "no answer, and none in the contexts", ["no answer"]),
        ("language", "de", ["high", "middle"]),
        ("Find text", "REFUSED THE", ["failed"]),
        ("Find text", "question 3", ["middle"]),
        ("Find text", "green", ["low", "high", "failed", "middle", "no answer"]),
        ("Sort by", "demo: best first", ["high", "middle", "low", "failed", "no answer"]),
        ("Sort by", "worst score first", ["no answer", "low", "high", "middle", "failed"]),
        ("Sort by", "sample id", ["failed", "high", "low", "middle", "no answer"]),
    ],
)
def test_sorting_and_filtering_stand_in_the_address(show, html, label, value, expected):
    from playwright.sync_api import expect

    page = show(html)
    page.get_by_label("Sort by").select_option("row")
    control = page.get_by_label(label, exact=True)
    control.select_option(label=value) if label in ("Show", "language", "Sort by") else control.fill(value)
    assert ids(page) == expected
    page.reload()
    expect(page.locator(SHOWN)).to_have_text(expected)


def test_a_head_sorts_and_a_column_can_be_hidden(show, html):
    page = show(html)
    page.locator("#samples thead").get_by_role("button", name="demo").click()
    assert ids(page)[0] == "low"
    page.locator("#samples thead").get_by_role("button", name="demo").click()
    assert ids(page)[0] == "high"
    page.get_by_text("Hide columns").click()
    page.get_by_label("demo", exact=True).check()
    assert page.locator("#samples thead").get_by_role("button", name="demo").count() == 0
    assert "hide=demo" in page.url
    assert "sort=0-" in page.url


def test_a_sample_opens_by_keyboard_to_all_that_is_known(show, html):
    page = show(html)
    button = page.get_by_role("button", name="low", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    detail = page.get_by_label("The open sample")
    text = detail.inner_text()
    for words in ("Question 0?", "Earlier.", "What was retrieved.", "It is right.", "It is 0.1.", "claim 1 no: green",
                  "t-7", '"language":"en"'):  # fmt: skip
        assert words in text
    assert detail.locator("mark").all_inner_texts() == ["green"]
    assert detail.locator("mark").get_attribute("title") == "demo: claim 1 no"
    assert "open=0" in page.url
    page.keyboard.press("j")
    assert "Sample high" in detail.inner_text()
    page.keyboard.press("k")
    assert "Sample low" in detail.inner_text()
    page.keyboard.press("Escape")
    assert not detail.is_visible()


def test_a_mark_leads_to_its_verdict_and_back(show, html):
    page = show(html)
    page.get_by_role("button", name="low", exact=True).click()
    detail = page.get_by_label("The open sample")
    detail.locator("mark").press("Enter")
    assert page.evaluate("document.activeElement.id") == "verdict-0-0"
    detail.get_by_role("button", name="show it").click()
    assert detail.locator("mark.here").all_inner_texts() == ["green"]


def test_against_another_report_samples_that_moved_are_found(show, against):
    page = show(against)
    assert "better 1, same 2, worse 1" in page.inner_text("body")
    page.get_by_label("Show").select_option("demo: improved")
    assert ids(page) == ["q0"]
    page.get_by_label("Show").select_option("demo: regressed")
    assert ids(page) == ["q3"]
    detail = page.get_by_label("The open sample")
    page.get_by_role("link", name="q0").click()
    assert detail.locator("b").inner_text() == "0.200 \u2192 0.900 \u25b2 better"
    assert detail.locator("ins").all_inner_texts() == ["Jane "]
    assert detail.locator("del").count() == 0


def test_what_people_would_say_stands_large_and_the_judges_mean_beside_it(show, with_labels):
    score = show(with_labels).locator(".score").inner_text()
    (corrected,) = [each["corrected"][0] for each in data_of(with_labels)["also"]]
    assert f"\n{corrected['mean']:.3f}\n" in score
    assert f"people would say \u00b7 95 % interval {corrected['low']:.3f} \u2013 {corrected['high']:.3f}" in score
    assert f"the judge says {data_of(with_labels)['metrics'][0]['mean']:.3f} (" in score


def test_what_the_script_computes_can_be_asked_for(show, html, against):
    page = show(html)
    pieces = "piecesOf('\U0001f600 green', [{start: 2, end: 5}, {start: 4, end: 9}]).map(([text, over]) => [text, over.length])"
    assert page.evaluate(pieces) == [["\U0001f600 ", 0], ["gr", 1], ["e", 2], ["en", 1]]
    assert page.evaluate("[0, 0.25, 2].map((value) => scaleOf(0, 1, 4, 296)(value))") == [4, 77, 296]
    assert page.evaluate("[true, false].map((up) => shareOf(0.25, { low: 0, high: 1, up }))") == [0.25, 0.75]
    time = [[0, "", 0.5, None, None], [5, "", 1, 0.5, 1], [10, "", 0, 0, 0.5]]
    paths = page.evaluate("time => timePaths({ time, low: 0, high: 1 })", time)
    assert paths == {"line": "4.0,30.0 150.0,4.0 296.0,56.0", "band": "150.0,4.0 296.0,30.0 296.0,56.0 150.0,30.0"}
    chosen = """async (address) => (
        chosenRows(readRows(await unpacked()), new URLSearchParams(address)).map(({ id }) => id))"""
    assert page.evaluate(chosen, "show=failed&sort=0-") == ["high", "low"]
    assert page.evaluate(chosen, "by.language=de&sort=id") == ["high", "middle"]
    assert page.evaluate(chosen, "find=refused") == ["failed"]
    changes = "async () => readRows(await unpacked()).map(({ changes }) => changes.map(signed))"
    assert show(against).evaluate(changes) == [["+0.700"], ["0.000"], ["0.000"], ["\u22120.800"]]
    assert page.evaluate("difference('a b c', 'a x y c')") == {"begin": "a ", "gone": "b ", "come": "x y ", "end": "c"}


def test_without_scripts_the_page_says_so(show, html):
    page = show(html, java_script_enabled=False)
    assert page.get_by_text("works with scripts").is_visible()


@pytest.fixture(scope="module")
def against():
    """Return the page of a report against another one, over samples of which some moved."""
    texts = {"old": "Emma is by Austen.", "new": "Emma is by Jane Austen."}
    reports = {
        name: report(values, name=name, samples=[Sample(user_input=f"Q{i}?", response=texts[name]) for i in range(4)])
        for name, values in {"old": [0.2, 0.5, 0.5, 0.9], "new": [0.9, 0.5, 0.5, 0.1]}.items()
    }
    return reports["new"].html(compare(reports["old"], reports["new"]))


@pytest.fixture(scope="module")
def with_labels(tmp_path_factory):
    """Return the page of a report with what people would say in front."""
    given, truth = made(120, metric="faithfulness")
    file = labelled(tmp_path_factory.mktemp("labels") / "l", given, truth, [f"q{i}" for i in range(60)])
    return given.html(corrected(given, file))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["html", "against", "with_labels"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_screen(show, request, kind, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = show(request.getfixturevalue(kind), width, color_scheme=scheme, bypass_csp=True)
    open_all(page)
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


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
    for selector in ("#samples .question", "#sample .text"):
        assert page.locator(selector).first.evaluate("each => getComputedStyle(each).direction") == "rtl"
