"""What was scored by count and what was scored by the judge's probabilities are never mixed."""

import math

import pytest

from ragstone import Faithfulness, LLMReply, Monitor, Sample, evaluate
from ragstone.live import SQLiteSink
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone.report import NotComparableError, Report, compare
from ragstone.testing import FakeLLM

SAMPLE = Sample(id="1", retrieved_contexts=["Jane Austen."], response="It was Austen.")
BY_JUDGE = SUPPORTED.answers([{"supported": math.log(3.0), "length": length("")}])[0].probability("yes")  # of .75
COUNT, EXPECTED = Faithfulness.version, f"{Faithfulness.version}+expected"


def faithfulness(scoring="auto"):
    given = LLMReply("yes", probabilities={"yes": 0.75, "no": 0.25})
    judge = FakeLLM(lambda request: given, asking="one_by_one", gives_probabilities=True)
    return Faithfulness(llm=judge, scoring=scoring)


def test_a_report_of_both_has_two_lines_and_no_joint_mean(tmp_path):
    path = tmp_path / "live.db"
    with Monitor([faithfulness("count"), faithfulness()], sinks=SQLiteSink(path)) as monitor:
        monitor.submit(SAMPLE)
    found = Report.load(path).summary()
    assert {name: each.mean for name, each in found.items()} == {
        f"faithfulness (version {COUNT}, judge fake)": 1.0,
        f"faithfulness (version {EXPECTED}, judge fake)": pytest.approx(BY_JUDGE),
    }
    assert EXPECTED in Report.load(path).html()


def test_compare_refuses_them():
    counted, auto, expected = (
        evaluate([SAMPLE], [faithfulness(how)], name=how) for how in ("count", "auto", "expected")
    )
    said = (
        rf"count has version {COUNT} by fake; auto has version {COUNT}\+expected by fake. Scores of different versions"
    )
    with pytest.raises(NotComparableError, match=said):
        compare(counted, auto)
    assert compare(auto, expected).metrics


def test_a_journal_answers_neither_from_the_other_and_both_from_one_reply(tmp_path):
    journal = tmp_path / "a.journal"
    said = []
    for scoring in ("count", "auto", "expected", "count"):
        metric = faithfulness(scoring)
        (record,) = evaluate([SAMPLE], [metric], journal=journal).results()
        said.append((record.outcome.version, record.outcome.value, len(metric.judge.requests)))
    assert said == [
        (COUNT, 1.0, 1),
        (EXPECTED, pytest.approx(BY_JUDGE), 0),
        (EXPECTED, pytest.approx(BY_JUDGE), 0),
        (COUNT, 1, 0),
    ]
