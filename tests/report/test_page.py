"""The page: what it says of what it was given. How it looks and that nothing runs: tests/browser."""

import base64
import hashlib
import re
from dataclasses import replace
from importlib.resources import files

import pytest

from ragstone import Criterion, Evidence, Sample, Turn, Usage, Verdict, evaluate
from ragstone.page.html import html_page
from ragstone.report import Report, compare
from ragstone.results.memory import MemoryResults
from ragstone.results.record import Record, without_texts
from ragstone.testing import FakeLLM

from .data import NOON
from .reports import data_of, records, report, rows_of, scored, unscored, words_of


@pytest.mark.parametrize("name", ["shared.js", "report.js", "labels.js", "page.css"])
def test_lines_of_the_page_can_be_read(name):
    lines = files("ragstone.page").joinpath(name).read_text("utf-8").splitlines()
    assert max(map(len, lines)) <= 120


def test_a_page_holds_the_script_of_its_view_alone_and_its_policy_the_digest():
    for view, other in (("report", "labels"), ("labels", "report")):
        html = html_page(view, "a", {})
        script = re.search("<script>(.*)</script>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in html
        scripts = {name: files("ragstone.page").joinpath(f"{name}.js").read_text("utf-8") for name in (view, other)}
        assert scripts[view] in script
        assert scripts[other] not in script


def text_of(report, *also):
    return words_of(report.html(*also))


def live(values, at=NOON, **changes):
    """Return records of a monitor, one a minute."""
    return [
        replace(each, submitted_at=at + 60 * each.row, scored_at=at + 60 * each.row + 1)
        for each in records(values, **changes)
    ]


def test_what_it_says_of_a_metric():
    text = text_of(Report.of(live([0.25, 0.75, None]), name="a.db"))
    for words in ("demo: 0.500 on average.", "3 samples, 3 outcomes submitted from 2026-", "demo 0.500", "2/3", "2 of 3 scored",
                  "judged by judge", "unscored by demo: 1 timeout; first: q2: after 60 s", "0.25 0.500", "minute"):  # fmt: skip
        assert words in text
    assert "weighted" not in text
    assert "never averaged" not in text


def test_versions_and_judges_stand_apart_and_the_newest_first():
    given = [*live([0.1], at=NOON - 9_000), *live([0.2], version="2"), *live([0.9], metric="another", at=NOON - 99_000)]
    text = text_of(Report.of(given))
    assert "by different versions, judges or set-ups are not comparable, so they are never averaged" in text
    names = [each["name"] for each in data_of(Report.of(given).html())["metrics"]]
    assert names == ["demo (version 2, judge judge)", "demo (version 1, judge judge)", "another"]


def test_what_a_monitor_writes_while_the_page_is_made_is_in_it():
    class Growing(MemoryResults):
        at_hand = False
        new: tuple[Record, ...] = ()

        def records(self, since=None, *, samples=False):
            yield from super().records(since, samples=samples)
            yield from self.new
            self.new = tuple(live([0.3], version="2"))

    page = Report(Growing(live([0.1]))).html()
    assert "demo (version 2, judge judge)" in page
    assert {each["key"][1] for each in data_of(page)["metrics"]} == {"1", "2"}


def test_unknown_tokens_are_never_zero():
    counted, unknown = Usage(llm_calls=5, input_tokens=1_500, output_tokens=90), Usage(llm_calls=7, input_tokens=None)
    given = [Record("a", scored(1.0, usage=counted), "j"), Record("b", unscored(usage=unknown), "j", row=1)]
    report = Report.of(given)
    assert (report.usage.input_tokens, report.usage.llm_calls) == (None, 12)
    for text in (str(report), text_of(report)):
        assert "12 judge calls, at least 1,500 tokens in, 90 tokens out" in text
    assert "at least" not in text_of(Report.of(given[:1]))


def test_a_comparison_stands_before_the_scores():
    old, new = report([0.25] * 20, name="old"), report([0.75] * 20, name="new")
    data = data_of(new.html(compare(old, new)))
    (change,) = data["also"]
    assert data["conclusion"].startswith("demo: by this judge, new is better")
    (moved,) = change["metrics"]
    assert (moved["better"], moved["same"], moved["worse"], moved["difference"]) == (20, 0, 0, 0.5)
    assert rows_of(new.html(compare(old, new)))["old"]["q7"] == [[[0.25], None]]


PASSAGE = Evidence(field="retrieved_contexts", chunk=0, start=0, end=9, text="It is red")
VERDICTS = (
    Verdict(id="1", kind="claim", text="It is big.", verdict="supported"),
    Verdict(id="2", kind="claim", text="It is green.", verdict="contradicted", evidence=(PASSAGE,), lowers_score=True),
)


def test_the_table_holds_each_text_once():
    sample = Sample(retrieved_contexts=["It is red."], response="It is green.")
    score = scored(0.1, verdicts=VERDICTS)
    given = [Record(name, score, row=row) for row, name in enumerate("ab")]
    packed = rows_of(Report.of(given, samples=[sample] * 2).html())
    assert packed["texts"] == ["It is 0.1.", "It is big.", "It is green.", "It is red."]
    assert packed["kinds"] == [["claim", "supported", False], ["claim", "contradicted", True]]
    verdicts = [[0, "1", [], 1], [1, "2", [[0, 0, 9]], 2]]
    record = [0, 0.1, None, 0, None, verdicts]
    of_sample = {"retrieved_contexts": [3], "response": 2}
    assert packed["rows"] == [
        [[0, 1, 2, 3], [name, row, {}, False, [record]], of_sample, None] for row, name in enumerate("ab")
    ]
    bare = rows_of(Report.of([Record("a", without_texts(score))]).html())
    assert bare["rows"][0][2] is None
    assert "green" not in str(bare)


def test_rows_are_the_same_from_memory_and_from_a_file_that_was_damaged(tmp_path):
    samples = [Sample(id=f"q{i}", user_input="Who?", response=f"She {i}.", history=[Turn(role="user", content="Hi.")])
               for i in range(150)]  # fmt: skip
    metric = Criterion("short", "Is it short?", llm=FakeLLM({"evidence": [1], "verdict": "no"}))
    report = evaluate(samples, [metric], progress=False)
    report.to_json(path := tmp_path / "a.jsonl")
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, lines[0], '{"id": "q1", "row": 1}', *lines[1:], '{"id": "q']))
    assert rows_of(Report.load(path).html()) == rows_of(report.html())


def test_of_many_rows_the_lowest_are_in_the_table():
    given = [(i * 7_919 % 13_001) / 13_001 for i in range(13_001)]
    packed = rows_of(report(given).html())
    found = [row for _, row, _, _ in packed["rows"]]
    assert (packed["total"], len(found)) == (13_001, 10_000)
    assert [row[1] for row in found] == sorted(row[1] for row in found)
    assert set(sorted(given)[:10_000]) == {row[4][0][1] for row in found}
