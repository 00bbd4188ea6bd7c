"""A score, and a comparison of two runs, as assertions, whose failure shows the evidence."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from ragstone.metrics.base import Metric
from ragstone.outcome import Score, Unscored, verdict_lines
from ragstone.plain import printable
from ragstone.report import Comparison, Report, compare
from ragstone.report.checks import check_drops, status_of
from ragstone.report.comparison import People
from ragstone.report.statistics import RAREST
from ragstone.sample import Sample

_ITEMS = 20
_WIDTH = 500


def assert_score(sample: Sample | Mapping[str, Any], metric: Metric, *, at_least: float | None = None) -> Score:
    """Score a sample and fail below a value, with the verdicts that cost the score and where they are in the texts.

    An unscored sample fails too, with its reason, not as a low score.

    Args:
        sample: The sample, or its fields.
        metric: The metric.
        at_least: The least value that will do, within the metric's bounds (the greatest one, where lower values are
            better); None: the metric's threshold.

    Returns:
        The score, to say more of it.

    Raises:
        AssertionError: It is lower, or there is none.
        ValueError: There is neither `at_least` nor a threshold, or it is outside the metric's bounds.
        Exception: The error of the judge's client, such as for a wrong key.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))
        >>> given = {"user_input": "Who wrote Emma?", "retrieved_contexts": ["Jane Austen wrote it. It rains."]}
        >>> assert_score(given, metric, at_least=0.5).value
        0.5
        >>> assert_score(given, metric, at_least=0.7)
        Traceback (most recent call last):
        AssertionError: context_relevancy is 0.500, at least 0.7 is wanted
          The question needs 1 of 2 sentences, from 1 of 1 contexts.
          sentence 2: irrelevant: It rains.
              [context 1 22-31]
    """
    # pytest then shows the test's line, not ours.
    __tracebackhide__ = True
    wanted = metric.threshold if at_least is None else at_least
    low, high = metric.bounds
    if wanted is None:
        raise ValueError(f"at_least: pass the lowest value that passes; {metric.name} has no threshold")
    if not low <= wanted <= high:
        raise ValueError(f"at_least: {wanted!r} is outside the bounds of {metric.name}, {low:g} to {high:g}")
    outcome = metric.score(sample)
    if isinstance(outcome, Unscored):
        raise AssertionError(
            f"{metric.name} was not scored ({outcome.reason}); this is not a low score\n  {printable(outcome.detail)}"
        )
    if not metric.reaches(outcome.value, wanted):
        raise AssertionError("\n  ".join(_why_too_low(outcome, wanted, "least" if metric.higher_is_better else "most")))
    return outcome


def _why_too_low(score: Score, wanted: float, end: str) -> Iterator[str]:
    value = f"{score.value:.3f}"
    differs = float(value) < wanted if end == "least" else float(value) > wanted
    yield f"{score.metric} is {value if differs else repr(score.value)}, at {end} {wanted} is wanted"
    yield printable(score.reason)
    verdicts = [verdict for verdict in score.verdicts if verdict.lowers_score] or list(score.verdicts)
    for verdict in verdicts[:_ITEMS]:
        yield from verdict_lines(verdict, _WIDTH)
    if len(verdicts) > _ITEMS:
        yield f"and {len(verdicts) - _ITEMS} more"


def assert_not_worse(
    base: Report | str | os.PathLike[str],
    new: Report | str | os.PathLike[str],
    *,
    allow_drop: float = 0.0,
    rarest: float = RAREST,
    metrics: str | Iterable[str] | None = None,
    cannot_tell: Literal["fail", "pass"] = "fail",
    group: str | None = None,
    people: People | None = None,
) -> Comparison:
    """Compare two runs over the same samples and fail where the new one is worse, as `compare --allow-drop` does.

    With d = the new mean - the base's (of a metric whose lower values are better, the base's - the new one's) and its
    95 % interval, a metric is not worse where the interval's low end is -allow_drop or more. It is worse where the high
    end is below that and the comparison, too, says that the base is better (p below 0.05).
    Else it cannot be told, as where few pairs may hide others, or the new run lacks the metric. The interval is the
    narrower one where the pairs would have shown what breaks in a share `rarest` of them, 72 for 0.05.

    Args:
        base: The base's report, or what `Report.load` takes.
        new: The new run's.
        allow_drop: The drop that is allowed, 0 or more.
        rarest: Rarer faults are ignored. 0: every rare fault counts.
        metrics: The name of the one to check, or names; None: all of the base.
        cannot_tell: The behaviour with too few samples, or too many lost ones. "fail" by default: a
            test that passes then says that no metric is worse. "pass" lets such a run through.
        group: As for `ragstone.report.compare`.
        people: Gives people's view of the difference, as for `ragstone.report.compare`. The interval of a
            metric with labels is then theirs.

    Returns:
        The comparison, to say more of it.

    Raises:
        AssertionError: A metric is worse, or cannot be told; the message says by how much, and how many samples would
            tell.
        ValueError: `allow_drop` is no number of 0 or more, the base has no metric of a name, or the two are not
            comparable (`NotComparableError`), or a label cannot be used.
        OSError: A file cannot be read.

    Example:
        >>> from ragstone.report import MetricInfo, Report
        >>> from ragstone.results.record import Record
        >>> demo = MetricInfo("demo", "1", "judge", bounds=(0.0, 1.0))
        >>> def report(values):
        ...     scores = [Score(metric="demo", value=value, reason="", version="1") for value in values]
        ...     return Report.of([Record(f"q{row}", score, "judge", row) for row, score in enumerate(scores)], [demo])
        >>> base = report([0.5, 0.75] * 40)
        >>> assert_not_worse(base, report([0.75, 0.5] * 40), allow_drop=0.1).metrics["demo"].difference
        0.0
        >>> assert_not_worse(base, report([0.25, 0.5] * 40), allow_drop=0.1)
        Traceback (most recent call last):
        AssertionError: demo: worse by this judge: -0.250 (95 % interval -0.250 – -0.250 if nothing breaks in fewer \
than 5 % of the samples), and a drop of 0.1 is allowed.
    """
    __tracebackhide__ = True
    if cannot_tell not in ("fail", "pass"):
        raise ValueError(f'cannot_tell: {cannot_tell!r} is neither "fail" nor "pass"')
    names = [metrics] if isinstance(metrics, str) else None if metrics is None else list(metrics)
    if names == []:
        raise ValueError("metrics: names none, so that nothing would be checked; leave it out to check all")
    comparison = compare(base, new, group=group, people=people)
    everywhere, by_name = (allow_drop, {}) if names is None else (None, dict.fromkeys(names, allow_drop))
    checks = check_drops(comparison, everywhere, by_name, rarest=rarest)
    if status_of(checks) in ((1,) if cannot_tell == "pass" else (1, 3)):
        raise AssertionError("\n".join(printable(str(each), 1_000) for each in checks if each.status))
    return comparison
