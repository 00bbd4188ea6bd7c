"""The outcome of a sample whose scoring raised: its reason, its cost, and no key."""

from ragstone.errors import CannotScore, describe, without_keys
from ragstone.held_keys import secrets_of
from ragstone.judge import Meter
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome, Unscored, UnscoredReason
from ragstone.sample import Sample


def unscored(metric: Metric, error: Exception, meter: Meter) -> Unscored:
    """The outcome of a sample whose scoring raised, with its cost, and without keys.

    A `TimeoutError` is "timeout", a `CannotScore` keeps its own reason, every other exception is "judge_error".
    """
    known = secrets_of(*metric.models)
    reason: UnscoredReason = "timeout" if isinstance(error, TimeoutError) else "judge_error"
    if isinstance(error, CannotScore):
        reason, detail = error.reason, without_keys(error.detail, known)
    else:
        detail = describe(error, known)
    return Unscored(metric=metric.name, reason=reason, detail=detail, usage=meter.usage(), version=metric.version)


def score_safely(metric: Metric, sample: Sample, meter: Meter | None = None) -> Outcome:
    """Score a sample, blocking; an exception becomes an `Unscored`, as `unscored` says."""
    meter = meter or Meter()
    try:
        return metric.score(sample, meter=meter)
    except Exception as error:
        return unscored(metric, error, meter)


async def ascore_safely(metric: Metric, sample: Sample) -> Outcome:
    """Score a sample on the running event loop; otherwise as `score_safely`."""
    meter = Meter()
    try:
        return await metric.ascore(sample, meter=meter)
    except Exception as error:
        return unscored(metric, error, meter)
