"""Outcomes that a person's later feedback chose: kept and counted, and in no mean."""

from typing import Any

from ragstone import Score, Unscored, Usage
from ragstone.report import Report, compare
from ragstone.results.record import Record

ONE_CALL = Usage(llm_calls=1, input_tokens=10, output_tokens=1)


def record(name: str, value: float | None, **more: Any) -> Record:
    given: dict[str, Any] = {"metric": "demo", "version": "1", "usage": ONE_CALL}
    outcome = Unscored(reason="timeout", detail="60 s", **given)
    scored = None if value is None else Score(value=value, passed=value > 0.5, reason="", **given)
    return Record(name, scored or outcome, "judge", **{"submitted_at": 1_000.0, "scored_at": 1_000.0, **more})


def report(*records: Record) -> Report:
    return Report.of(records)


RATE = [record("a", 1.0), record("b", 0.5), record("c", None)]
CHOSEN = [record("d", 0.0, chosen_by="feedback", submitted_at=9e6), record("e", None, chosen_by="feedback")]


def test_they_enter_no_mean_and_their_cost_is_counted() -> None:
    with_them, without = report(*RATE, *CHOSEN).summary()["demo"], report(*RATE).summary()["demo"]
    for name in ("mean", "low", "high", "passed", "scored", "total", "rows", "failures", "first", "last", "examples"):
        assert getattr(with_them, name) == getattr(without, name), name
    assert with_them.spread.bins() == without.spread.bins() != []
    assert (with_them.by_feedback, without.by_feedback) == (2, 0)
    assert (with_them.cost.outcomes, with_them.cost.usage.llm_calls) == (5, 5)


def test_what_a_rule_chose_counts_as_before() -> None:
    chosen = report(*RATE, record("d", 0.0, chosen_by="thumbs_down")).summary()["demo"]
    assert (chosen.mean, chosen.by_feedback) == (0.5, 0)


def test_means_of_what_feedback_or_a_rule_alone_chose_are_called_that() -> None:
    apart = "demo: 2 outcomes of samples that feedback chose stand apart: their mean is 0.000"
    assert apart in list(report(*RATE, *CHOSEN).remarks())
    by_rule = [record("d", 0.0, chosen_by="thumbs_down"), record("e", 0.5, chosen_by="error")]
    only = "demo: only samples that error and thumbs_down chose are in; the mean says nothing of the others"
    assert only in list(report(*by_rule).remarks())
    assert not [each for each in report(*RATE, *by_rule).remarks() if "chose" in each]  # weighed by their chances
    for said, page in ((apart, report(*RATE, *CHOSEN).html()), (only, report(*by_rule).html())):
        assert said.removeprefix("demo: ") in page


def test_they_are_in_no_comparison() -> None:
    other = report(record("a", 1.0), record("b", 0.5), record("c", None), record("d", 1.0))
    demo = compare(report(*RATE, *CHOSEN), other).metrics["demo"]
    assert (demo.pairs, demo.difference, demo.left_out["only in b"]) == (2, 0.0, 1)


def test_exports_say_what_chose_them(tmp_path: Any) -> None:
    report(*RATE, *CHOSEN).to_csv(tmp_path / "a.csv")
    head, *rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    assert [line[head.index("chosen_by")] for line in rows] == ["rate"] * 3 + ["feedback"] * 2
