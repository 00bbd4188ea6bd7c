"""One evaluation: a sample scored by one metric, within the budget, and what is kept of it."""

from dataclasses import dataclass
from typing import cast

from ragstone.errors import score_safely
from ragstone.judging.flow import Meter
from ragstone.limits.purse import SpendingMeter
from ragstone.metrics.base import Metric
from ragstone.monitor.job import Job
from ragstone.monitor.sampling import Choice
from ragstone.monitor.scrub import kept
from ragstone.monitor.tally import Fate
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.store.record import Record


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of an evaluation.

    Attributes:
        fate: What it is counted as.
        reason: By what reason.
        outcome: The outcome; None where the budget refused before the first call.
        can_try_again: Whether the judge failed, not the sample.
    """

    fate: Fate
    reason: str
    outcome: Outcome | None
    can_try_again: bool = False


def judge(metric: Metric, job: Job, meter: SpendingMeter | None) -> Judged:
    """Score a job's sample by a metric, blocking. Raises nothing but what ends threads."""
    outcome = _scored(metric, job, meter)
    if meter is not None and meter.refused_by is not None:
        asked = outcome if outcome.usage.llm_calls else None
        return Judged("over_budget", meter.refused_by, asked)
    return judged(outcome)


def _scored(metric: Metric, job: Job, meter: Meter | None) -> Outcome:
    outcome = score_safely(metric, job.sample, meter)
    if not isinstance(cast("object", outcome), Outcome):  # a metric of the user's own
        return gave_up(metric, "cancelled", f"the metric returned {type(outcome).__name__}, which is no outcome")
    return outcome


def judged(outcome: Outcome) -> Judged:
    """Say what an outcome is counted as."""
    if isinstance(outcome, Score):
        return Judged("scored", "scored", outcome)
    return Judged("unscored", outcome.reason, outcome, outcome.reason in ("judge_error", "timeout"))


def gave_up(metric: Metric, reason: str, detail: str) -> Unscored:
    """Return the outcome of an evaluation that did not come back."""
    return Unscored(
        metric=metric.name,
        reason="timeout" if reason == "timeout" else "cancelled",
        detail=detail,
        version=metric.version,
    )


def record(metric: Metric, job: Job, choice: Choice, outcome: Outcome, *, store_text: bool, now: float) -> Record:
    """Return what the sinks get."""
    return Record(
        sample_id=job.sample_id,
        outcome=kept(outcome, job.sample, store_text=store_text),
        judge=metric.judge.model,
        submitted_at=job.submitted_at,
        scored_at=now,
        rate=choice.rate,
        chosen_by=choice.by,
        origin=job.origin,
        sample=job.sample if store_text else None,
    )
