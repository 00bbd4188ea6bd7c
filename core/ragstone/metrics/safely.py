"""Scoring where one sample's failure must not touch the others: in batches, evaluators and monitors."""

from ragstone.asking.flow import Meter
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome, Unscored
from ragstone.sample import Sample


def score_safely(metric: Metric, sample: Sample) -> Outcome:
    """Score a sample, blocking; whatever that raises becomes an `Unscored`, with its type and what was spent.

    A `TimeoutError` is "timeout", every other exception "judge_error".

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: ConnectionError("refused")))
        >>> score_safely(metric, Sample(user_input="Why?", retrieved_contexts=["So."])).detail
        'ConnectionError: refused'
    """
    meter = Meter()
    try:
        return metric.score(sample, meter=meter)
    except Exception as error:
        return _failed(metric, error, meter)


async def ascore_safely(metric: Metric, sample: Sample) -> Outcome:
    """Score a sample on the running event loop; otherwise as `score_safely`."""
    meter = Meter()
    try:
        return await metric.ascore(sample, meter=meter)
    except Exception as error:
        return _failed(metric, error, meter)


def _failed(metric: Metric, error: Exception, meter: Meter) -> Unscored:
    return Unscored(
        metric=metric.name,
        reason="timeout" if isinstance(error, TimeoutError) else "judge_error",
        detail=f"{type(error).__name__}: {str(error)[:500]}",
        usage=meter.usage(),
        version=metric.version,
    )
