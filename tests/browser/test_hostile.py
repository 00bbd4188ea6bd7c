"""What comes from outside stays text, in the table too; nothing of it runs, loads, sticks out or turns a line around."""

from dataclasses import replace

import pytest

from ragstone import Evidence, Sample, Score, Verdict
from ragstone.live import Feedback, Health, Record, SQLiteSink
from ragstone.live.traffic import read_traffic
from ragstone.report import MetricInfo, Report, compare

from ..report.data import NOON, database, records  # noqa: TID252
from ..report.reports import data_of, report, rich, scored  # noqa: TID252
from .conftest import open_all

pytestmark = pytest.mark.browser
ATTACK = (
    "<script>alert(1);document.title='owned'</script></style><style>*{display:none}</style></title>"
    "<img src=http://evil.example/a.png onerror=document.title='owned'><base href=http://evil.example/>"
    "\"><svg onload=document.title='owned'><a href='javascript:document.title=1'>x</a>]]>--><!-- &lt;b&gt; \u202eabc \x00"
)
OURS = {
    "a", "article", "b", "bdi", "body", "button", "caption", "circle", "code", "del", "details", "div", "form", "h1", "h2", "h3",
    "head", "html", "input", "ins", "label", "li", "line", "link", "main", "mark", "meta", "option", "p", "polygon",
    "polyline", "rect", "script", "section", "select", "span", "style", "summary", "svg", "table", "tbody", "td", "th",
    "thead", "title", "tr", "ul",
}  # fmt: skip
ELEMENTS = "[...new Set([...document.querySelectorAll('*')].map(each => each.localName))]"
UNISOLATED = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    if (walk.currentNode.data.includes("\\u202e") && !parent.closest("bdi, [dir=auto], title, script, option")) {
      found.push(parent.outerHTML.slice(0, 200));
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A monitor's page in which every text that comes from outside attacks."""
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
        )  # fmt: skip
        sample = Sample(
            user_input=ATTACK, retrieved_contexts=[ATTACK, "b" * 5_000], response=ATTACK, id=ATTACK,
            history=[{"role": "user", "content": ATTACK}], metadata={ATTACK: ATTACK},
        )  # fmt: skip
        for j in range(2):
            given.append(
                Record(
                    sample_id=ATTACK + str(j), outcome=score, judge=ATTACK, submitted_at=NOON + j, scored_at=NOON,
                    sample=sample, run_name=ATTACK + str(j), tags=(ATTACK, str(j)), origin={"trace_id": ATTACK},
                )
            )  # fmt: skip
    path = database(tmp_path_factory.mktemp("hostile") / "a.db", given)
    sink = SQLiteSink(path)
    sink.feedback([Feedback(sample_id=ATTACK + "0", value=ATTACK, comment=ATTACK, at=NOON)])
    attacks = {ATTACK: 3}
    by_field = {name: {ATTACK: attacks} for name in ("reasons", "names", "read_from")}
    by_field["reasons"] = {"dropped": attacks}
    sink.health(
        Health(process=ATTACK, at=NOON, started_at=NOON, counts={}, skipped=attacks, missing=attacks, **by_field)
    )
    sink.close()
    page = Report.load(path).html(read_traffic(ATTACK, sink.database))
    titles = [each["title"] for each in data_of(page)["slices"]]
    assert titles[:3] == ["feedback", "run name", "tag"]
    return page


@pytest.fixture(scope="module")
def compared():
    """Two reports whose every text attacks, compared."""
    before = rich(ATTACK)
    after = [
        replace(each, outcome=each.outcome.model_copy(update={"value": 0.9}))
        if isinstance(each.outcome, Score)
        else each
        for each in before.results()
    ]
    samples = [before.sample(after[0]).model_copy(update={"metadata": {ATTACK: ATTACK + str(i)}}) for i in range(3)]
    return compare(before, Report.of(after, samples=samples, name=ATTACK))


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("live", "a.db: ragstone report"),
        ("batch", ": ragstone report"),
        ("against", ": ragstone report"),
    ],
)
def test_what_comes_from_outside_stays_text(show, hostile, compared, kind, title):
    html = {
        "live": lambda: hostile,
        "batch": compared.a.html,
        "against": lambda: compared.b.html(compared),
    }[kind]()
    page = show(html)
    open_all(page)
    assert page.title().endswith(title)
    assert set(page.evaluate(ELEMENTS)) <= OURS
    shown = page.inner_text("body")
    assert shown.count("<img src=http://evil.example/a.png") > 30
    assert page.evaluate(UNISOLATED) == []
    assert page.inner_text("#sample").count("<img src=http://evil.example/a.png") > 10


def test_the_names_that_every_object_has_are_names_like_others(show):
    names = show("<h1>x</h1>").evaluate("Object.getOwnPropertyNames(Object.prototype)")
    infos = [MetricInfo(name, "1", "j", question=f"Is it {name}?") for name in names]

    def made(ids):
        given, samples = [], []
        for row, name in enumerate(ids):
            metadata = {**dict.fromkeys(names, "uv"[row % 2]), "tag": "uv"[row % 2]}
            samples.append(Sample(user_input="q?", response=f"It is {name}.", metadata=metadata))
            place = Evidence(field="response", start=0, end=2, text="It")
            verdict = Verdict(id=name, kind=name, text="x", verdict=name, lowers_score=True, evidence=[place])
            given += [
                Record(name, scored(row / 20, metric, verdicts=[verdict]), "j", row, run_name=name, tags=(name,))
                for metric in names
            ]
        return Report.of(given, infos, samples=samples)

    after = made(names)
    page = show(after.html(compare(made(names[1:]), after)))
    open_all(page)
    assert page.locator("#samples thead button").all_inner_texts() == names
    assert "Is it constructor?" in page.inner_text("#scores")
    rows = page.locator("#samples tbody button")
    for label in (*names, "metadata.tag"):
        page.get_by_label(label, exact=True).first.select_option("v")
        assert rows.count() == len(names) // 2
        page.get_by_label(label, exact=True).first.select_option("")
    for label in ("tag", "run name"):
        assert page.get_by_label(label, exact=True).locator("option").all_inner_texts() == ["all", *sorted(names)]
    for name in names:
        page.get_by_role("button", name=name, exact=True).last.click()
        words = page.locator("#sample .verdicts .word")
        assert words.first.text_content() == name.replace("_", " ")
        assert words.first.get_attribute("title") is None
        assert page.locator("#sample mark").all_inner_texts() == ["It"]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(show, hostile, tmp_path, width):
    real = Report.load(database(tmp_path / ("long-name-" * 15 + ".db"), records(60))).html()
    for html in (real, hostile):
        page = show(html, width)
        open_all(page)
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= width
        cut = """width => [...document.querySelectorAll("body *")].filter(each => (
            !each.closest(".scroll, svg") || each.matches("#samples > .scroll")) &&
            each.getBoundingClientRect().right > width + 1).map(each => each.outerHTML.slice(0, 100))"""
        assert page.evaluate(cut, width) == []


def test_half_characters_and_a_text_of_a_megabyte(show):
    texts = ["\ud83d half", "x" * 1_000_000, "\x00\x1b[31m"]
    samples = [Sample(user_input="q", response=text, metadata={"kind": text[:9]}) for text in texts]
    html = report([0.1, 0.2, 0.3], samples=samples).html()
    assert len(html) < 300_000
    page = show(html)
    open_all(page)
    assert "\ufffd half" in page.inner_text("#sample")
    page.keyboard.press("j")
    assert "(20,000 of 1,000,000 characters)" in page.inner_text("#sample")
