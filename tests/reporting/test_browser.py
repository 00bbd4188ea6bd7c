"""The page in a real browser: what a model said stays text, nothing runs, nothing is asked for, nothing sticks out."""

import re
from dataclasses import replace

import pytest

from ragstone import Sample, Score, Verdict
from ragstone.outcome import Suspicion
from ragstone.reporting import Report, compare, report_page
from ragstone.sinks import Feedback, Record, SQLiteSink

from .browser import Browser, find_chromium
from .data import NOON, database, health, records
from .reports import rich

ATTACK = (
    "<script>alert(1);document.title='owned'</script></style><style>*{display:none}</style></title>"
    "<img src=http://evil.example/a.png onerror=document.title='owned'><base href=http://evil.example/>"
    "\"><svg onload=document.title='owned'><a href='javascript:document.title=1'>x</a>]]>--><!-- &lt;b&gt; \u202eabc \x00"
)
OURS = {
    "a", "b", "bdi", "body", "button", "caption", "circle", "dd", "desc", "details", "div", "dl", "dt", "figcaption", "figure",
    "h1", "h2", "h3", "h4", "head", "html", "input", "label", "li", "line", "link", "main", "mark", "meta", "option", "p", "polygon", "polyline",
    "rect", "script", "section", "select", "small", "span", "style", "summary", "svg", "table", "tbody", "td", "text", "th", "thead",
    "time", "title", "tr", "ul",
}  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(find_chromium(), tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page in which every text that comes from outside attacks."""
    given = []
    for i, metric in enumerate(("alignment_coverage", "context_relevancy", ATTACK)):
        verdicts = [
            Verdict(
                id=ATTACK, kind="claim" if i == 0 else ATTACK, text=ATTACK, verdict="contradicted", lowers_score=True
            ),
            Verdict(id="1", kind="sentence", text=ATTACK, verdict="irrelevant", lowers_score=True),
        ]
        score = Score(
            metric=metric, value=0.1, reason=ATTACK, breakdown={ATTACK: 0.5}, verdicts=verdicts, version=ATTACK,
            suspected=[Suspicion(field="response", start=0, end=400, kind="order")],
        )  # fmt: skip
        sample = Sample(user_input=ATTACK, retrieved_contexts=[ATTACK, "b" * 5_000], response=ATTACK, id=ATTACK)
        for j in range(2):
            given.append(
                Record(
                    sample_id=ATTACK + str(j), outcome=score, judge=ATTACK, submitted_at=NOON + j, scored_at=NOON,
                    sample=sample, run_name=ATTACK + str(j), tags=(ATTACK, str(j)),
                )
            )  # fmt: skip
    counters = health(process=ATTACK).model_copy(update={"reasons": {ATTACK: {ATTACK: 3}}})
    path = database(tmp_path_factory.mktemp("hostile") / "a.db", given, counters)
    sink = SQLiteSink(path)
    sink.feedback([Feedback(sample_id=ATTACK + "0", value=ATTACK, comment=ATTACK, at=NOON)])
    sink.close()
    page = report_page(path)
    assert all(f"By {facet}" in page for facet in ("feedback", "run name", "tag"))
    return page


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    path = tmp_path_factory.mktemp("real") / ("long-name-" * 15 + ".db")
    return report_page(database(path, records(60), health(), health("web-2:1")))


def asked(browser):
    return [url for url in browser.requests if "report.test" in url or "evil" in url]


@pytest.fixture(scope="module")
def compared():
    """Two reports whose every text attacks, compared."""
    before = rich(ATTACK)
    after = [
        replace(each, outcome=each.outcome.model_copy(update={"value": 0.9})) if each.draw < 2 else each
        for each in before.results()
    ]
    return compare(before, Report.of(after, samples=[before.sample(after[0])] * 3, name=ATTACK))


@pytest.mark.parametrize(
    ("kind", "title"), [("live", "a.db: ragstone report"), ("batch", ": ragstone report"), ("both", "comparison")]
)
def test_what_comes_from_outside_stays_text(browser, hostile, compared, kind, title):
    page = {"live": hostile, "batch": compared.a.html(), "both": compared.html()}[kind]
    seen = browser.measure(page, 1280, opened=True)
    assert seen["title"].endswith(title)
    assert set(seen["elements"]) <= OURS
    assert seen["text"].count(ATTACK.replace("\x00", "\ufffd")) > 30
    assert asked(browser) == ["http://report.test/measure", "http://report.test/page"]


def test_a_notebook_stays_as_it_is(browser, compared):
    for shown in (compared, compared.a):
        seen = browser.measure(f"<title>notebook</title>{shown._repr_html_()}", 1280)
        assert (seen["title"], asked(browser)) == (
            "notebook",
            ["http://report.test/measure", "http://report.test/page"],
        )


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_sticks_out(browser, real, hostile, width):
    for page in (real, hostile):
        seen = browser.measure(page, width, opened=True)
        assert seen["wide"] == []
        assert seen["content"] <= seen["width"] <= width


def test_the_page_names_no_place_to_fetch_from(real):
    assert re.findall(r"(?:src|srcset|action|data|poster)=", real) == []
    assert set(re.findall(r'href="([^"#][^"]*)"', real)) == {"data:,"}
    assert "http" not in real.replace("http-equiv", "")
    assert "url(" not in real
    assert "@import" not in real
    assert re.findall("<script[^>]*>", real) == ['<script type="application/json" id="data">', "<script>"]
    assert "default-src 'none'" in real.replace("&#x27;", "'")
