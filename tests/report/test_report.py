"""What a report adds up, says and keeps."""

import gzip
import math
import pickle
import re
import statistics
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone import ContextRelevancy, Sample, Verdict
from ragstone.report import MetricInfo, Report, ResultsError, compare
from ragstone.report.report import seconds_since
from ragstone.results.record import Record, encode
from ragstone.sample import BadLine
from ragstone.testing import FakeLLM

from .reports import records, report, rich, rows_of, scored, unscored, words_of


def only(found):
    (summary,) = found.summary().values()
    return summary


def test_two_outcomes_of_one_metric_for_one_row_are_refused(tmp_path):
    """Such as two runs in one file: their mean would count the row twice."""
    twice = [*report([0.5]), *report([0.7])]
    (tmp_path / "a.jsonl").write_text("\n".join(map(encode, twice)))
    said = r"row 1 \(q0\) has two outcomes of demo; give each run a results file"
    with pytest.raises(ResultsError, match=said):
        Report.load(tmp_path / "a.jsonl")
    with pytest.raises(ResultsError, match=said):
        Report.of(twice).summary()
    with pytest.raises(ResultsError, match=said):
        compare(report([0.5]), Report.of(twice))


rows = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12)


@given(rows)
@settings(deadline=None, max_examples=60)
def test_never_a_nan(values):
    found = report(values, name="any")
    for each in found.summary().values():
        numbers = (each.mean, each.low, each.high, each.passed)
        assert all(number is None or math.isfinite(number) for number in numbers)
        filled = [value for value in values if value is not None]
        assert each.mean == (pytest.approx(statistics.fmean(filled)) if filled else None)
        assert each.scored + sum(each.failures.values()) == each.total == len(values)
    page = found.html()
    assert not values or len(rows_of(page)["rows"]) == len(values)
    for shown in (str(found), found._repr_html_(), words_of(page)):
        assert "nan" not in shown.lower().replace("finance", "")


def test_a_report_is_a_sequence_of_its_records(tmp_path):
    found = report([0.5, None, 1.0], ids=["q0", "q1", "q1"])
    found.to_json(tmp_path / "a.jsonl")
    for one in (found, Report.load(tmp_path / "a.jsonl")):
        assert [record.outcome.value for record in one] == [0.5, None, 1.0]
        assert (len(one), one[-1].row, [record.sample_id for record in one[1:]]) == (3, 2, ["q1", "q1"])
        with pytest.raises(IndexError):
            one[3]
    assert Report.of([]), "an empty one is no False"


def test_a_metric_of_a_report_by_its_name():
    found = report([0.5, 0.75, None], metrics=[MetricInfo("demo", "1", "judge", (0.0, 1.0))])
    demo = found["demo"]
    assert (demo.mean, demo.interval, demo.scored) == (0.625, (demo.low, demo.high), 2)
    assert repr(demo).startswith("demo: 0.625 (95 % interval ")
    assert repr(report([None])["demo"]) == "demo: no score, 0 of 1 scored"
    with pytest.raises(KeyError, match="'else' is none of its metrics: demo"):
        found["else"]


def test_a_report_of_nothing_but_bad_rows_says_so():
    found = report([], name="run", metrics=[ContextRelevancy(llm=FakeLLM(""))], bad_rows=[BadLine(1, "<b>")])
    for shown in (str(found), found._repr_html_(), words_of(found.html())):
        assert "nothing was scored" in shown.lower()
        assert "1 row, and none held a sample" in shown
        assert "\u2013" not in shown, "no table of dashes"


def test_json_and_back(tmp_path):
    metrics = [MetricInfo("alignment_coverage", "1", "judge", (-1.0, 1.0), False, 0.25)]
    rich_one = rich("Grüße \udcff\x00\n</script>", 4)
    samples = [rich_one.sample(next(rich_one.results()))] * 4
    given = Report.of(rich_one.results(), metrics, samples=samples, bad_rows=[BadLine(9, "x")], name="n")
    path = tmp_path / "report.json"
    given.to_json(path)
    back = Report.load(path)
    assert back.name == given.name
    kept = list(given.results())
    assert [replace(each, sample=None) for each in back.results()] == kept
    assert (back.metrics, back.bad_rows) == (given.metrics, given.bad_rows)
    assert [back.sample(each) for each in back] == [given.sample(each) for each in kept]
    assert str(back) == str(given)
    assert str(pickle.loads(pickle.dumps(back))) == str(given)


def lines_of(values, **changes):
    return [f"{encode(record)}\n".encode() for record in records(values, **changes)]


def test_a_torn_report_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "report.json"
    report([0.5, 1.0, 0.25], samples=[Sample(response=c) for c in "abc"]).to_json(path)
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole) if byte == 10]
    for end in range(ends[1] + 2, len(whole) - 1, 97):
        path.write_bytes(whole[:end])
        found = Report.load(path)
        assert found.notes == ("report.json: its end is missing, as where a run was killed: what is whole was read",)
        assert [r.outcome.value for r in found.results()] == [0.5, 1.0, 0.25][: only(found).total]
        assert only(found).total >= 1
    path.write_bytes(gzip.compress(b"".join(lines_of([i / 300 for i in range(300)])))[:-1_000])
    assert 0 < len(found := Report.load(path)) < 300
    assert "its end is missing" in found.notes[0]
    one, two = lines_of([0.5, 1.0])
    path.write_bytes(b"\n" + one + b'{"id": "x"}\n[]\nnull\n' + two)
    assert only(found := Report.load(path)).mean == 0.75
    assert found.notes == ("report.json: left out 3 lines without a result: 3, 4, 5",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"question": "Why?"}\n' * 3, "has no results: pass an unchanged file"),
        (b"\x89PNG\r\n", "has no results: pass an unchanged file"),
        (b"[[[[", "has no results: pass an unchanged file"),
        (b'{"ragstone_results": 2}\n', "is of version 2, this ragstone reads 1; update ragstone"),
        (b'{"ragstone_results": 1, "metrics": 5}\n', "its first line was changed"),
    ],
)
def test_what_is_no_report_of_ours_is_refused(tmp_path, content, problem):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(ResultsError, match=rf"a\.jsonl: .*{problem}"):
        Report.load(path)


def test_a_file_that_changed_is_not_taken_for_what_was_loaded(tmp_path):
    path = tmp_path / "a.json"
    report([0.5, 1.0]).to_json(path)
    found = Report.load(path)
    report([0.5, 1.0, 0.0]).to_json(path)
    assert only(found).mean == 0.75  # what was counted stays
    with pytest.raises(ValueError, match="has changed since it was loaded"):
        list(found.results())


def test_a_terminal_obeys_nothing_of_it_and_a_notebook_no_markup():
    shown = rich("\x1b[31m\r\x07 \u202e<script>")
    for each in (shown, compare(shown, shown), next(shown.results()).outcome, unscored(detail="<script>")):
        assert "<script>" not in each._repr_html_()
    assert not [c for c in str(shown) if not (c.isprintable() or c == "\n")]


def test_rows_weigh_as_many_as_they_stand_for():
    given = [Record(f"s{i}", scored(float(i > 9), passed=i > 9), row=i, rate=0.1 if i > 9 else 1.0) for i in range(20)]
    found = only(Report.of(given))
    assert found.weighted
    assert (found.mean, found.passed) == (pytest.approx(100 / 110),) * 2
    assert not only(report([0.5])).weighted
    assert only(Report.of([Record("a", scored(0.5), rate=0.0), Record("b", scored(1.0), row=1)])).mean == 0.75


def test_what_makes_a_mean_doubtful_is_said():
    verdicts = [Verdict(id=i, kind="question", text=f"{i}?", verdict="yes") for i in "12"]

    def of(cosine, chosen_by):
        score = scored(1.0, verdicts=verdicts, breakdown={"cosine_1": 1.0, "cosine_2": cosine})
        return Record("a", score, "judge", chosen_by=chosen_by)

    doubtful = str(Report.of([of(1.0, "low")]))
    assert "demo: only samples that low chose are in; the mean says nothing of the others" in doubtful
    assert "demo: the embedder gave one vector for different texts" in doubtful
    sound = str(Report.of([of(1.0, "low"), replace(of(0.5, "rate"), row=1)]))
    assert "only samples" not in sound
    assert "one vector" not in sound


def test_the_main_cause_is_what_cost_the_most_points_not_what_is_most_frequent():
    def low(value, *words):
        verdicts = [Verdict(id="1", kind="claim", text="", verdict=word, lowers_score=word != "yes") for word in words]
        return scored(value, verdicts=verdicts)

    outcomes = [low(0.9, "vague", "yes"), low(0.9, "vague"), low(0.1, "wrong", "wrong", "vague"), low(1.0, "yes")]
    info = MetricInfo("demo", "1", "judge", (0.0, 1.0))
    given = [Record(f"q{row}", each, "judge", row) for row, each in enumerate(outcomes)]
    assert only(Report.of(given, [info])).main_cause == ("a verdict is “wrong”", 1)
    assert only(Report.of(given[3:], [info])).main_cause is None
    assert "in 1 of 4 samples a verdict is “wrong”" in words_of(Report.of(given, [info]).html())


def test_a_refusal_is_right_where_no_context_holds_an_answer():
    refusing, empty = {"noncommittal": 1.0}, {"sentence": 0.0}
    rows = [(refusing, empty), (refusing, {"sentence": 0.5}), ({"noncommittal": 0.5}, empty)]
    names = "response_relevancy", "context_relevancy"
    given = [
        Record(f"q{row}", scored(0.0, name, breakdown=each), "j", row)
        for row, of in enumerate(rows)
        for name, each in zip(names, of, strict=True)
    ]
    found = Report.of(given)
    assert found.aggregates().unanswerable == 1
    assert "1 sample without an answer, and no context holds one." in words_of(found.html())
    assert Report.of(given[:1]).aggregates().unanswerable == 0


NOW = datetime(2026, 9, 24, 12, tzinfo=timezone.utc).timestamp()


def test_since_when():
    for since, expected in (
        ("30m", "2026-09-24T11:30Z"),
        ("24h", "2026-09-23T12:00Z"),
        (" 7d ", "2026-09-17T12:00Z"),
        ("2026-09-01", "2026-09-01T00:00Z"),
        ("2026-09-01 10:30:00+02:00", "2026-09-01T08:30Z"),
        ("2026-09-01T10:30:00Z", "2026-09-01T10:30Z"),
        (timedelta(hours=1), "2026-09-24T11:00Z"),
        (datetime(2026, 9, 1), "2026-09-01T00:00Z"),  # noqa: DTZ001 - naive is what is tested
        (datetime(2026, 9, 1, tzinfo=timezone(timedelta(hours=-3))), "2026-09-01T03:00Z"),
    ):
        begin = seconds_since(since, now=NOW)
        assert f"{datetime.fromtimestamp(begin, timezone.utc):%Y-%m-%dT%H:%MZ}" == expected
    assert seconds_since(None, now=NOW) is None
    for since in ("", "yesterday", "7", "-3d", "1w", "2026-13-01", "24 h", "9999999999d", "\x00"):
        with pytest.raises(ValueError, match="since: .* is no time; write 30m, 24h or 7d"):
            seconds_since(since, now=NOW)


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0), (-1.0, 1.0), (0.0, math.inf)])
@pytest.mark.parametrize("values", [[], [None], [0.5], [1.0, 1.0], [1.0] * 20, [0.0] * 20, [0.2, 0.9], [0.5, None]])
def test_an_interval_has_a_width_or_says_why_there_is_none(values, bounds):
    metrics = [MetricInfo("demo", "1", "judge", bounds)]
    found = report(values, metrics=metrics)
    summary = found.summary()["demo"]
    scores = [value for value in values if value is not None]
    text, page = str(found), found.html()
    if summary.low is None:
        why = {0: "–", 1: "no interval: one value"}.get(len(scores), "no interval: bounds unknown")
        assert why in text
        assert not scores or why in page
    else:
        assert summary.low <= summary.mean <= summary.high
        assert summary.high - summary.low > 0.1
    assert (summary.low is None) == (len(scores) < 2 or bounds not in ((0, 1), (-1, 1)))
    beside = "if nothing rarer exists than these 2 rows show"
    assert (beside in text) == (beside in page) == (summary.low is None and len(set(scores)) == 2)
    assert not re.search(r"\bnan\b|\binf\b", text.lower())


def test_copies_of_rows_are_counted_and_said():
    samples = [Sample(id="a", user_input="Why?", response=text) for text in ("A.", "B.", "A.", "A.")]
    said = "2 rows of 4 have the id and all texts of another; each counts, so the intervals are narrower"
    copied = report([0.5] * 4, ids=["a"] * 4, samples=samples)
    assert said in str(copied)
    assert said in str(compare(copied, copied))
    others = [each.model_copy(update={"id": str(i)}) for i, each in enumerate(samples)]
    assert "of another" not in str(report([0.5] * 4, samples=others)) + str(report([0.5] * 4, ids=["a"] * 4))
