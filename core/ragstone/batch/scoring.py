"""One evaluation: found in the journal, asked of the judge, or failed; whatever happens, an outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from ragstone.errors import unscored
from ragstone.judging.flow import CannotScore, Meter
from ragstone.limits.gate import Gate
from ragstone.limits.lane import GateClosed
from ragstone.limits.watch import Stopwatch
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.sample import Sample
from ragstone.store.journal.file import JournalError

GIVE_UP_AFTER = 100
"""Samples in a row on which the judge fails: what comes after them would only wait for retries, for hours."""
_NOT_ASKED = f"not asked: the judge had failed on {GIVE_UP_AFTER} samples in a row"
_CALLED_OFF = "not the run but something in the judge's client called the evaluation off"


class Outcomes(Protocol):
    """Where outcomes are kept beyond a run: a `Journal`, or what the workers of a cluster share."""

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome that was put under a key; None where there is none."""
        ...

    def put_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, if it is final."""
        ...


class Scoring:
    """Scores one sample by one metric at a time, any number of them side by side.

    Args:
        gate: What the judges are asked through.
        journal: Where outcomes are looked up before anything is asked, and kept.
        sample_timeout: Seconds that one evaluation may have calls in flight.

    Attributes:
        gave_up: Whether to ask no judge any more.
        ending: Whether a task that is cancelled is meant to end.
    """

    def __init__(self, gate: Gate, journal: Outcomes | None, sample_timeout: float | None) -> None:
        self._gate = gate
        self._journal = journal
        self._sample_timeout = sample_timeout
        gate.forget_refusals()
        self._failed_in_a_row = 0
        self.gave_up = False
        self.ending = False

    async def outcome(
        self, sample: Sample, metric: Metric, draw: int, key: str, claimed: Callable[[str], Awaitable[bool]]
    ) -> Outcome | None:
        """Return the outcome of a draw; None while others make it.

        Args:
            sample: The sample.
            metric: The metric.
            draw: Which scoring of the sample it is.
            key: Under which the journal has it.
            claimed: Returns whether the outcome of a key that the journal does not have is this run's to make.

        Raises:
            JournalError: The journal cannot be read or written.
            GateClosed: The run was stopped before it was asked.
            CancelledError: It is `ending`.
        """
        if self._journal is None:
            return await self._evaluated(sample, metric, draw)
        outcome = self._journal.outcome(key)
        if outcome is None and await claimed(key):
            outcome = await self._evaluated(sample, metric, draw)
            self._journal.put_outcome(key, outcome)
        return outcome

    def came_out(self, outcomes: Sequence[Outcome]) -> None:
        """Take a sample's outcomes, sample after sample in the order of the input; give up when it is time."""
        if any(isinstance(outcome, Score) for outcome in outcomes):
            self._failed_in_a_row = 0
        elif any(_judge_failed(outcome) for outcome in outcomes):
            self._failed_in_a_row += 1
            if self._failed_in_a_row == GIVE_UP_AFTER:
                self.gave_up = True

    def refusal(self, metric: Metric) -> str | None:
        """Return why a metric's judge or embedder is not asked any more; None if they are."""
        return self._gate.refusal(metric.judge, metric.judge_embedder)

    async def _evaluated(self, sample: Sample, metric: Metric, draw: int) -> Outcome:
        meter = Meter()
        if self.gave_up:
            return unscored(metric, CannotScore("judge_error", _NOT_ASKED), meter)
        if (refusal := self.refusal(metric)) is not None:
            return unscored(metric, CannotScore("judge_error", f"not asked: {refusal}"), meter)
        watch = None if self._sample_timeout is None else Stopwatch(self._sample_timeout)
        answering = partial(self._gate.call, draw=draw, meter=meter, watch=watch)
        try:
            return await metric.ascore(sample, meter=meter, answering=answering)
        except (JournalError, GateClosed):
            raise
        except Exception as error:
            return unscored(metric, error, meter)
        except asyncio.CancelledError:
            if self.ending:
                raise
            if watch is not None and watch.rang():
                late = TimeoutError(f"its calls took more than {self._sample_timeout:g} s (sample_timeout)")
                return unscored(metric, late, meter)
            return unscored(metric, CannotScore("cancelled", _CALLED_OFF), meter)


def _judge_failed(outcome: Outcome) -> bool:
    asked = outcome.usage.llm_calls + outcome.usage.embed_calls
    return isinstance(outcome, Unscored) and outcome.reason == "judge_error" and asked > 0
