"""A score as an assertion, whose failure shows the evidence."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragstone.metrics.base import Metric
from ragstone.outcome import Score, Unscored
from ragstone.reporting.tables import verdict_lines
from ragstone.sample import Sample
from ragstone.text.plain import printable

_ITEMS = 20
_WIDTH = 500


def assert_score(sample: Sample | Mapping[str, Any], metric: Metric, *, at_least: float | None = None) -> Score:
    """Score a sample and fail below a value, with the verdicts that cost the score and where they are in the texts.

    What cannot be scored fails too, with its reason; it is never taken for a low score.

    Args:
        sample: The sample, or its fields.
        metric: What to score it by.
        at_least: The least value that will do, within the metric's bounds; None: the metric's threshold.

    Returns:
        The score, to say more of it.

    Raises:
        AssertionError: It is lower, or there is none.
        ValueError: There is neither `at_least` nor a threshold, or it is outside the metric's bounds.
        Exception: What the judge's client raises, such as for a wrong key.

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
              [retrieved_contexts[0] 22-31]
    """
    __tracebackhide__ = True  # pytest then shows the test's line, not ours
    wanted = metric.threshold if at_least is None else at_least
    low, high = metric.bounds
    if wanted is None:
        raise ValueError(f"at_least: pass the lowest value that passes; {metric.name} has no threshold")
    if not low <= wanted <= high:
        raise ValueError(f"at_least: {wanted!r} is outside the bounds of {metric.name}, {low:g} to {high:g}")
    one = sample if isinstance(sample, Sample) else Sample(**sample)
    outcome = metric.score(one)
    if isinstance(outcome, Unscored):
        raise AssertionError(
            f"{metric.name} was not scored ({outcome.reason}); this is not a low score\n  {printable(outcome.detail)}"
        )
    if outcome.value < wanted:
        raise AssertionError("\n  ".join(_failure(outcome, wanted)))
    return outcome


def _failure(score: Score, wanted: float) -> Iterator[str]:
    value = f"{score.value:.3f}"
    yield f"{score.metric} is {value if float(value) < wanted else repr(score.value)}, at least {wanted} is wanted"
    yield printable(score.reason)
    shown = [verdict for verdict in score.verdicts if verdict.lowers_score] or list(score.verdicts)
    for verdict in shown[:_ITEMS]:
        yield from verdict_lines(verdict, _WIDTH)
    if len(shown) > _ITEMS:
        yield f"and {len(shown) - _ITEMS} more"
