"""Scoring where one sample's failure must not touch the others: in batches, evaluators and monitors."""

from ragstone.asking.flow import CannotScore, Meter
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome, Unscored
from ragstone.sample import Sample


def score_safely(metric: Metric, sample: Sample, meter: Meter | None = None) -> Outcome:
    """Score a sample, blocking; whatever that raises becomes an `Unscored`, with its type and what was spent.

    A `TimeoutError` is "timeout", a `CannotScore` of the meter's says itself, every other exception is "judge_error".

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: ConnectionError("refused")))
        >>> score_safely(metric, Sample(user_input="Why?", retrieved_contexts=["So."])).detail
        'ConnectionError: refused'
    """
    meter = meter or Meter()
    try:
        return metric.score(sample, meter=meter)
    except Exception as error:
        return failed(metric, error, meter)


async def ascore_safely(metric: Metric, sample: Sample) -> Outcome:
    """Score a sample on the running event loop; otherwise as `score_safely`."""
    meter = Meter()
    try:
        return await metric.ascore(sample, meter=meter)
    except Exception as error:
        return failed(metric, error, meter)


def failed(metric: Metric, error: Exception, meter: Meter) -> Unscored:
    """Return what an exception makes of an evaluation, with what had been spent."""
    if isinstance(error, CannotScore):
        reason, detail = error.reason, error.detail
    else:
        reason = "timeout" if isinstance(error, TimeoutError) else "judge_error"
        detail = f"{type(error).__name__}: {_said(error)[:500]}"
    return Unscored(
        metric=metric.name,
        reason=reason,
        detail=detail,
        usage=meter.usage(),
        version=metric.version,
    )


def _said(error: Exception) -> str:
    try:
        return str(error)
    except Exception as another:  # a class of somebody's own
        return f"(it cannot say what it is: {type(another).__name__})"
