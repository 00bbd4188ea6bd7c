"""What a report adds up, says and keeps. Its page in a real browser too."""

import math
import pickle
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone import ContextRelevancy, Sample
from ragstone.reporting.batch.facts import MetricFacts
from ragstone.reporting.batch.report import Report
from ragstone.sample import BadLine
from ragstone.store.record import Record, encode
from ragstone.testing import FakeLLM

from ..reporting.browser import Browser, find_chromium  # noqa: TID252
from ..reporting.test_browser import ATTACK, OURS, asked  # noqa: TID252
from .reports import report, results, rich, scored, unscored


def only(found):
    (summary,) = found.summary().values()
    return summary


def test_a_mean_is_of_the_scored_rows_alone():
    found = only(report([0.5, None, 1.0, None, None]))
    assert (found.mean, found.rows, found.scored, found.total) == (0.75, 2, 2, 5)
    assert found.failures == {"timeout": 3}
    assert found.examples == {"timeout": "q1: after 60 s"}
    assert found.low <= 0.75 <= found.high
    assert (found.usage.llm_calls, found.usage.input_tokens) == (4, 20)
    assert (found.noise, found.noise_error, found.draws, found.passed) == (None, None, 1, None)


def test_draws_of_a_row_are_averaged_first():
    found = only(report([[0.0, 0.0, 0.0, 0.3], [1.0], [0.5, None, 0.7]]))
    assert found.mean == pytest.approx(statistics.fmean([0.075, 1.0, 0.6]))
    assert (found.rows, found.scored, found.total, found.draws) == (3, 7, 8, 4)
    assert found.noise.rows == 2
    squares = 3 * 0.075**2 + 0.225**2 + 2 * 0.1**2
    assert found.noise.sd == pytest.approx(math.sqrt(squares / 4))
    assert found.noise_error == pytest.approx(found.noise.sd / 3 * math.sqrt(1 / 4 + 1 + 1 / 2))


def test_agreement_and_passing_are_of_the_scores_that_have_a_threshold():
    given = [Record("a", scored(0.5, passed=passed), "j", 0, draw) for draw, passed in enumerate([True, True, False])]
    found = only(Report.of(given))
    assert found.noise.agreement == pytest.approx(1 / 3)
    assert found.passed == pytest.approx(2 / 3)


rows = st.lists(st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=3), max_size=12)


@given(rows)
@settings(deadline=None, max_examples=60)
def test_never_a_nan(values):
    found = report(values, name="any")
    for each in found.summary().values():
        numbers = (each.mean, each.low, each.high, each.passed, each.noise_error, each.noise_reach)
        assert all(number is None or math.isfinite(number) for number in numbers)
        means = [statistics.fmean(filled) for of in values if (filled := [v for v in of if v is not None])]
        assert each.mean == (pytest.approx(statistics.fmean(means)) if means else None)
        assert each.scored + sum(each.failures.values()) == each.total == sum(map(len, values))
    for shown in (str(found), found._repr_html_(), found.html()):
        assert "nan" not in shown.lower().replace("finance", "")


def test_no_row_at_all():
    found = Report.of([])
    assert (str(found), found.summary(), found.usage.llm_calls) == ("0 rows", {}, 0)
    assert "Nothing was scored" in found.html()
    summary = Report.of([], [ContextRelevancy(llm=FakeLLM(lambda request: ""))]).summary()["context_relevancy"]
    assert (summary.mean, summary.low, summary.total) == (None, None, 0)


def test_versions_and_judges_are_not_mixed():
    given = [*results([0.0, 0.0]), *results([1.0, 1.0], version="2"), *results([0.5], judge="")]
    found = Report.of(given).summary()
    assert [(name, each.mean) for name, each in found.items()] == [
        ("demo (version 1, judge judge)", 0.0),
        ("demo (version 2, judge judge)", 1.0),
        ("demo (version 1, judge not told)", 0.5),
    ]


def test_unknown_tokens_are_not_0():
    unknown = Report.of([Record("a", scored(1.0, usage={"llm_calls": 1, "input_tokens": None}), "j", 0, 0)])
    assert unknown.usage.input_tokens is None
    assert "did not tell all tokens of 1 of 1 outcomes" in unknown.html()
    assert "not told" in str(unknown)


def test_the_worst_rows_come_first_with_what_cost_them():
    values = [[0.9, 0.1], [0.4, 0.4], [1.0], [0.2]]
    samples = [Sample(user_input=f"question {i}") for i in range(4)]
    facts = [MetricFacts("demo", "1", "judge", (0.0, 1.0))]
    page = report(values, samples=samples, facts=facts).html()
    places = [page.index(f"<bdi>q{i}</bdi>") for i in (3, 1, 0)]
    assert places == sorted(places)
    assert "<bdi>q2</bdi>" not in page  # nothing cost a full score
    assert "mean of 2 draws, of which the worst is shown, 0.100" in page
    assert "question 3" in page
    lower = [MetricFacts("demo", "1", "judge", (0.0, 1.0), higher_is_better=False)]
    page = report(values, samples=samples, facts=lower).html()
    places = [page.index(f"<bdi>q{i}</bdi>") for i in (2, 0, 1, 3)]
    assert places == sorted(places)


def test_json_and_back(tmp_path):
    facts = [MetricFacts("alignment_coverage", "1", "judge", (-1.0, 1.0), False, 0.25)]
    rich_one = rich("Grüße \udcff\x00\n</script>", 4)
    samples = [rich_one.sample(row) for row in range(4)]
    given = Report.of(rich_one.results(), facts, samples=samples, bad_rows=[BadLine(9, "x")], name="n")
    path = tmp_path / "report.json"
    given.to_json(path)
    back = Report.load(path)
    assert back.name == given.name
    assert list(back.results()) == list(given.results())
    assert (back.metrics, back.bad_rows, back.summary()) == (given.metrics, given.bad_rows, given.summary())
    assert [back.sample(row) for row in range(5)] == [given.sample(row) for row in range(5)]
    assert str(back) == str(given)
    assert str(pickle.loads(pickle.dumps(back))) == str(given)


def test_metadata_that_is_no_json_does_not_stop_it(tmp_path):
    around = {}
    around["itself"] = around
    samples = [Sample(response="a", metadata={"x": {1, 2}, "n": float("nan"), "3": object(), "around": around})]
    report([0.5], samples=samples).to_json(tmp_path / "a.json")
    assert Report.load(tmp_path / "a.json").sample(0).metadata["x"] == [1, 2]
    assert "NaN" not in (tmp_path / "a.json").read_text()


def lines_of(values, **changes):
    return [f"{encode(result)}\n".encode() for result in results(values, **changes)]


def test_a_file_of_ragstone_score(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(lines_of([0.5, None, [0.7, 0.9]], metric="context_relevancy")))
    found = Report.load(path)
    assert list(found.results()) == list(results([0.5, None, [0.7, 0.9]], metric="context_relevancy"))
    assert found.metrics == (MetricFacts("context_relevancy", "1", "judge", (0.0, 1.0)),)
    assert (found.notes, found.name, found.sample(0)) == ((), "", None)
    assert "The texts are not at hand" in found.html()


def test_a_torn_report_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "report.json"
    report([0.5, 1.0, 0.25], samples=[Sample(response=c) for c in "abc"]).to_json(path)
    whole = path.read_bytes()
    first = whole.index(b"\n", whole.index(b"\n") + 1)  # the end of the first result
    for end in range(first, len(whole) - 3, 97):
        path.write_bytes(whole[:end])
        found = Report.load(path)
        assert found.notes == ("report.json: its end is missing, as where a run was killed: what is whole was read",)
        assert [r.outcome.value for r in found.results()] == [0.5, 1.0, 0.25][: only(found).total]
        assert only(found).total >= 1


def test_other_lines_are_left_out_and_said_so(tmp_path):
    path = tmp_path / "run.jsonl"
    one, two = lines_of([0.5, 1.0])
    path.write_bytes(b"\n" + one + b'{"id": "x"}\n[]\nnull\n' + two)
    found = Report.load(path)
    assert only(found).mean == 0.75
    assert found.notes == ("run.jsonl: 3 line(s) hold no result and were left out: 3, 4, 5",)


@pytest.mark.parametrize(
    "content", [b'{"question": "Why?"}\n' * 3, b"\x89PNG\r\n", b"[[[["], ids=["samples", "binary", "nested"]
)
def test_what_is_no_report_is_refused(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.jsonl: holds no results: give a file that"):
        Report.load(path)


def test_a_newer_report_is_refused(tmp_path):
    path = tmp_path / "a.json"
    report([0.5]).to_json(path)
    path.write_bytes(path.read_bytes().replace(b'{"ragstone_report": 1', b'{"ragstone_report": 2', 1))
    with pytest.raises(ValueError, match="a newer ragstone wrote it"):
        Report.load(path)


def test_a_file_that_changed_is_not_taken_for_what_was_loaded(tmp_path):
    path = tmp_path / "a.json"
    report([0.5, 1.0]).to_json(path)
    found = Report.load(path)
    report([0.5, 1.0, 0.0]).to_json(path)
    assert only(found).mean == 0.75  # what was counted stays
    with pytest.raises(ValueError, match="has changed since it was loaded"):
        list(found.results())


def test_half_a_file_never_stands_in_for_one(tmp_path):
    path = tmp_path / "a.json"
    report([0.5]).to_json(path)
    before = path.read_bytes()

    class Broken:
        read = 0

        def results(self):
            self.read += 1
            yield from results([1.0])
            if self.read > 1:  # it has been counted before
                raise OSError("gone")

        def sample(self, row):
            return None

    with pytest.raises(OSError, match="gone"):
        Report(Broken()).to_json(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(find_chromium(), tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def hostile():
    return rich(ATTACK)


def test_what_comes_from_outside_stays_text(browser, hostile):
    seen = browser.measure(hostile.html(), 1280, opened=True)
    assert seen["title"].endswith(": ragstone report")
    assert set(seen["elements"]) <= OURS
    assert seen["text"].count(ATTACK.replace("\x00", "\ufffd")) > 30
    assert asked(browser) == ["http://report.test/measure", "http://report.test/page"]


def test_a_terminal_obeys_nothing_of_it(hostile):
    shown = str(rich("\x1b[31m\r\x07 \u202e"))
    assert not [c for c in shown if not (c.isprintable() or c == "\n")]
    assert "\u202e" not in str(hostile)


def test_what_has_no_threshold_or_no_score_counts_neither_as_passed_nor_as_failed():
    outcomes = [scored(0.5, passed=True), scored(0.5, passed=False), scored(0.5), unscored()]
    assert only(Report.of(Record("a", each, "j", 0, draw) for draw, each in enumerate(outcomes))).passed == 0.5
