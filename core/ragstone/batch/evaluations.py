"""Evaluations of one sample by one metric each: found in the journal, else made."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ragstone.errors import CannotScore, JournalError
from ragstone.identity import identity_json, left_out_of, metric_key, outcome_key, sample_key, undeclared
from ragstone.judge import Meter
from ragstone.limits.gate import RequestGate, Stopwatch
from ragstone.limits.limiter import GateClosed
from ragstone.metrics.base import Metric
from ragstone.metrics.outcomes import unscored
from ragstone.metrics.setup import setup_of
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.plain import printable
from ragstone.results.record import Record
from ragstone.sample import Row, Sample

if TYPE_CHECKING:
    from ragstone.batch.earlier import EarlierOutcomes
    from ragstone.batch.journal import Journal

GIVE_UP_AFTER = 100
"""Samples in a row on which the judge fails: what comes after them would only wait for retries, for hours."""
_GAVE_UP = f"the judge failed on {GIVE_UP_AFTER} samples in a row"
_CANCELLED = "not the run but something in the judge's client cancelled the evaluation"
_LEFT_OUT = {
    "response_format": "a schema",
    "structured_output": "a schema",
    "system": "a system message",
    "temperature": "a temperature",
    "seed": "a seed",
    "logprobs": "log-probabilities",
}
_log = logging.getLogger(__name__)


class RowUnderWay:
    """A row and its records so far.

    Attributes:
        records: By the metric's number; None where there is none yet.
        left: How many there are still to come.
        asked: Whether an outcome was made in this run.
        key: Of the sample; "" until it is needed.
    """

    __slots__ = ("asked", "key", "left", "records", "row")

    def __init__(self, row: Row, size: int) -> None:
        self.row = row
        self.records: list[Record | None] = [None] * size
        self.left = size
        self.asked = False
        self.key = ""

    def made(self) -> tuple[Record, ...]:
        """The records that there are."""
        return tuple([record for record in self.records if record is not None])


class Evaluations:
    """What makes the outcomes of one run.

    What scoring raises is an `Unscored` on that row and metric, and touches no other. When the judge has failed on
    100 samples in a row it is not asked any more: what follows is `Unscored("judge_error")` at once, and is asked
    again when a run is resumed. So it is with a judge that refuses the first calls for good (401, 404,
    or 403 on three samples without a word of moderation).

    Args:
        metrics: Each scores every row.
        gate: What the judges are asked through.
        meter: Makes what counts an evaluation, and may refuse it (`CannotScore`) before its calls.
        sample_timeout: Seconds that one evaluation of one sample may have calls in flight.
        journal: Where outcomes are looked up before anything is asked, and kept.
        stop_on_give_up: Whether the run ends when no judge is asked any more.
        earlier: The outcomes of an earlier run, which are looked at first.

    Attributes:
        notes: What a judge was asked without, from which sample on, and why.
        ending: Whether what is under way is called off: who is cancelled then is so by the run.

    Raises:
        NoKeyError: There is a journal, and a metric has an option that has no key.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        gate: RequestGate,
        meter: Callable[[Metric, Sample], Meter],
        sample_timeout: float | None = None,
        journal: "Journal | None" = None,
        *,
        stop_on_give_up: bool = False,
        earlier: "EarlierOutcomes | None" = None,
    ) -> None:
        self.metrics = metrics
        self.gate = gate
        self.notes: list[str] = []
        self.ending = False
        self._meter = meter
        self._sample_timeout = sample_timeout
        self._journal = journal
        self._earlier = earlier
        self._stop_on_give_up = stop_on_give_up
        self._setups = [setup_of(metric) for metric in metrics]
        self._metric_keys: dict[tuple[int, frozenset[str]], str] = {}
        # By the judge's id and the parameter.
        self._left_out: set[tuple[int, str]] = set()
        self._failed_in_a_row = 0
        self._gave_up = False
        for metric in metrics:
            for model in (metric.llm, metric.writer, metric.judge_embedder):
                if journal is not None and model is not None:
                    self._prepare(journal, model)
                self._note_left_out(model)
            if journal is not None:
                # An option that has no key is found now.
                self._metric_key(metric)

    @property
    def not_asked(self) -> tuple[str, ...]:
        """Why judges or embedders are not asked any more."""
        refusals = self.gate.refusals()
        return (*refusals, _GAVE_UP) if self._gave_up else tuple(refusals)

    async def make(self, under_way: RowUnderWay, number: int) -> None:
        """Make a row's record by one of the metrics.

        Raises:
            GateClosed: The run was stopped before anything was asked.
            JournalError: The journal cannot be read or written.
        """
        row, metric = under_way.row, self.metrics[number]
        sample_id = str(row.line) if row.sample.id is None else row.sample.id
        outcome = None if self._earlier is None else self._earlier.outcome(sample_id, row.sample, metric)
        if outcome is None and self._journal is not None:
            outcome = await self._kept(self._journal, under_way, metric)
        elif outcome is None:
            outcome = await self._score(under_way, metric)
        judge = metric.judge
        self._note_left_out(judge, f" from sample {row.line} on")
        record = Record(sample_id, outcome, judge.model, row.line - 1, setup=self._setups[number])
        under_way.records[number] = record
        under_way.left -= 1

    def note(self, records: Sequence[Record]) -> None:
        """Note how a row ended: it may be time to give up."""
        if any(isinstance(record.outcome, Score) for record in records):
            self._failed_in_a_row = 0
        else:
            self._failed_in_a_row += any(_judge_failed(record.outcome) for record in records)
            self._gave_up = self._gave_up or self._failed_in_a_row >= GIVE_UP_AFTER
        if self._stop_on_give_up and (self._gave_up or all(self._refusal(metric) for metric in self.metrics)):
            self.ending = True

    async def _kept(self, journal: "Journal", under_way: RowUnderWay, metric: Metric) -> Outcome:
        """What the journal has; else what is scored now, which it then has."""
        sample = under_way.row.sample
        under_way.key = under_way.key or sample_key(sample)
        given = None if metric.given_in is None else sample.metadata.get(metric.given_in)
        outcome = journal.outcome(outcome_key(under_way.key, self._metric_key(metric), given), sample)
        if outcome is not None:
            return outcome
        if self.gate.closed:
            raise GateClosed
        outcome = await self._score(under_way, metric)
        # The key is another one where the judge was asked without something from this sample on.
        journal.put_outcome(outcome_key(under_way.key, self._metric_key(metric), given), outcome, sample)
        return outcome

    async def _score(self, under_way: RowUnderWay, metric: Metric) -> Outcome:
        under_way.asked, row = True, under_way.row
        meter = self._meter(metric, row.sample)
        if row.error is not None and ("response" in metric.required_fields or not row.sample.retrieved_contexts):
            return unscored(metric, CannotScore("missing_input", f"response: {row.error}"), meter)
        for field in metric.required_fields:
            if (why := row.problems.get(field)) is not None:
                return unscored(metric, CannotScore("missing_input", f"{field}: {why}"), meter)
        if (refusal := self._refusal(metric)) is not None:
            return unscored(metric, CannotScore("judge_error", f"not asked: {refusal}"), meter)
        watch = None if self._sample_timeout is None else Stopwatch(self._sample_timeout)
        answering = partial(self.gate.call, meter=meter, watch=watch, sample=row.line)
        try:
            return await metric.ascore(row.sample, meter=meter, answering=answering)
        except (JournalError, GateClosed):
            raise
        except Exception as error:
            return unscored(metric, error, meter)
        except asyncio.CancelledError:
            if self.ending:
                raise
            if watch is not None and watch.over:
                late = TimeoutError(f"its calls took more than {self._sample_timeout:g} s (sample_timeout)")
                return unscored(metric, late, meter)
            return unscored(metric, CannotScore("cancelled", _CANCELLED), meter)

    def _refusal(self, metric: Metric) -> str | None:
        """Why a metric's judge is not asked any more; None where it is."""
        return _GAVE_UP if self._gave_up else self.gate.refusal(metric.models)

    def _metric_key(self, metric: Metric) -> str:
        """A metric's key, as its judge is asked now."""
        asked = id(metric), frozenset(left_out_of(metric.judge))
        if asked not in self._metric_keys:
            self._metric_keys[asked] = metric_key(metric)
        return self._metric_keys[asked]

    def _prepare(self, journal: "Journal", model: object) -> None:
        """Ask a judge as other runs of the journal did, whose provider refused something; say if it has no identity."""
        leave_out: object = getattr(model, "leave_out", None)
        if callable(leave_out):
            leave_out(journal.left_out(identity_json(model)))
        words = undeclared(model)
        if words and words not in self.notes:
            self.notes.append(words)
            _log.warning("%s.", printable(words))

    def _note_left_out(self, model: object, since: str = "") -> None:
        """Note what a judge is asked without, the first time."""
        once: Mapping[str, str] = getattr(model, "left_out_once", {})
        always = left_out_of(model)
        for name, why in {**always, **once}.items():
            if (id(model), name) not in self._left_out:
                self._left_out.add((id(model), name))
                what, asked = _LEFT_OUT.get(name, name), getattr(model, "model", "")
                when = " in single requests" if name in once else since
                self.notes.append(f"{asked} was asked without {what}{when}, because it refused: {why}")
                if since and self._journal is not None:
                    self._journal.put_left_out(identity_json(model), always)


def _judge_failed(outcome: Outcome) -> bool:
    asked = outcome.usage.llm_calls + outcome.usage.embed_calls
    return isinstance(outcome, Unscored) and outcome.reason == "judge_error" and asked > 0
