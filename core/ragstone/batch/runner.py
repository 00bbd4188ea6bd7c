"""The one runner: rows in, each row's records out as they end, at any length in constant memory."""

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from ragstone.background import daemon
from ragstone.errors import CannotScore, JournalError, describe
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
from ragstone.sample import BadLine, Row, Sample
from ragstone.sources import SourceError

if TYPE_CHECKING:
    from tqdm import tqdm

    from ragstone.batch.journal import Journal

Item = Row | BadLine
GIVE_UP_AFTER = 100
"""Samples in a row on which the judge fails: what comes after them would only wait for retries, for hours."""
_GAVE_UP = f"the judge failed on {GIVE_UP_AFTER} samples in a row"
_CANCELLED = "not the run but something in the judge's client cancelled the evaluation"
_LINE_SECONDS = 30.0
_SLOW_SECONDS = 20.0
_log = logging.getLogger(__name__)

_LEFT_OUT = {
    "response_format": "a schema",
    "structured_output": "a schema",
    "system": "a system message",
    "temperature": "a temperature",
    "seed": "a seed",
    "logprobs": "log-probabilities",
}
Shown = Literal[True, False, "auto"]


class Scored(NamedTuple):
    """A row and its records, one for each metric.

    Of a row that the end of a run left unfinished, only those that there are.
    """

    row: Row
    records: tuple[Record, ...]


class _Slot:
    """A row under way."""

    __slots__ = ("asked", "key", "left", "records", "row")

    def __init__(self, row: Row, size: int) -> None:
        self.row = row
        self.records: list[Record | None] = [None] * size
        self.left = size
        self.asked = False  # whether an outcome was made here
        self.key = ""  # of the sample


class Runner:
    """Scores rows by metrics, once.

    What scoring raises is an `Unscored` on that row and metric, and touches no other. When the judge has failed on
    100 samples in a row it is not asked any more: what follows is `Unscored("judge_error")` at once, and is asked
    again when a run is resumed. So it is with a judge that refuses the first calls for good (401, 404,
    or 403 on three samples without a word of moderation).

    Args:
        rows: What is to be scored. An iterator that may wait (of a file, a pipe, a generator) is read in a thread, a
            list on the event loop.
        metrics: Each scores every row.
        gate: What the judges are asked through. `Runner` closes it when it is stopped.
        journal: Where outcomes are looked up before anything is asked, and kept.
        sample_timeout: Seconds that one evaluation of one sample may have calls in flight.
        in_memory: Whether the rows never wait.
        take: Gets each row's records when the row is done with, and each bad line when it is read. What it raises ends
            the run.
        meter: Makes what counts an evaluation, and may refuse it (`CannotScore`) before its calls.
        flows: Evaluations under way at most; twice the calls keep the judge busy while others compute.
        window: Rows held at most, from being read to being done with; a thread may have read as many again.

    Attributes:
        stopped: Whether `stop` was called.
        rows_done: The rows with records that came out.
        kept: Those of them of which the journal had all records.
        notes: What a judge was asked without, from which sample on, and why.

    Raises:
        NoKeyError: There is a journal, and a metric has an option that has no key.
    """

    def __init__(
        self,
        rows: Iterable[Item],
        metrics: Sequence[Metric],
        gate: RequestGate,
        take: Callable[[Scored | BadLine], object],
        *,
        journal: "Journal | None" = None,
        sample_timeout: float | None = None,
        in_memory: bool = False,
        meter: Callable[[Metric, Sample], Meter] = lambda _metric, _sample: Meter(),
        flows: int = 32,
        window: int = 256,
    ) -> None:
        self._rows = rows
        self._in_memory = in_memory
        self._gate = gate
        self._take = take
        self._journal = journal
        self._sample_timeout = sample_timeout
        self._meter = meter
        self._flows = max(1, flows)
        self._window = window
        self._metrics = metrics
        self._setups = [setup_of(metric) for metric in metrics]
        self._metric_keys: dict[tuple[int, frozenset[str]], str] = {}
        self._left_out: set[tuple[int, str]] = set()  # the judge's id and the parameter
        self.notes: list[str] = []
        self._open: dict[_Slot, None] = {}  # rows under way, as they were read
        self._unreadable: Exception | None = None
        self._jobs: deque[tuple[_Slot, int]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._all_read = False
        self._room = asyncio.Semaphore(max(1, window))
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._failed_in_a_row = 0
        self._gave_up = False
        self._ending = False
        self.stopped = False
        self.rows_done = self.kept = 0
        for metric in metrics:
            for judge in (metric.llm, metric.writer, metric.judge_embedder):
                if journal is not None and judge is not None:
                    self._prepare(journal, judge)
                self._note_left_out(judge)
            if journal is not None:
                self._metric_key(metric)  # an option that has no key is found now

    @property
    def gave_up(self) -> bool:
        """Whether no judge is asked any more."""
        return self._gave_up or all(self._gate.refusal(metric.models) is not None for metric in self._metrics)

    @property
    def not_asked(self) -> list[str]:
        """Why judges or embedders are not asked any more."""
        return [*self._gate.refusals(), *([_GAVE_UP] if self._gave_up else [])]

    def stop(self) -> None:
        """Begin nothing more: calls in flight end, what is scored by then still comes out, then the records end."""
        self.stopped = True
        self._jobs.clear()
        self._gate.close()
        if self._reading is not None:
            self._reading.cancel()
        self._all_read = True  # said here, too: a task that is cancelled before its first step does nothing at all
        self._changed.set()

    def cancel(self) -> None:
        """Call off what is under way."""
        self._ending = True
        self._changed.set()

    async def run(self) -> None:
        """Score the rows. However it ends, `take` has got all that was made, also of rows that were under way.

        Raises:
            JournalError: The journal cannot be read or written.
            Exception: What reading the rows raises, when the rows before it are done with; what `take` raises.
        """
        rows = iter(self._rows) if self._in_memory else _threaded(self._rows, self._window)
        self._reading = asyncio.ensure_future(self._read(rows))
        try:
            while self._failure is None and not self._ending and not self._over():
                self._changed.clear()
                await self._changed.wait()
            if error := self._failure or self._unreadable:
                raise error
        finally:
            self._ending = True
            self._jobs.clear()
            tasks = [self._reading, *self._tasks]
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
                if isinstance(rows, AsyncGenerator):
                    await rows.aclose()
            finally:
                for slot in self._open:
                    if slot.left < len(self._metrics):
                        self._take(self._scored(slot))
                del self._take  # whose owner holds this: no judge's connections wait for a garbage collection

    def _over(self) -> bool:
        return self._all_read and not (self._jobs or self._tasks)

    def _deliver(self, item: Scored | BadLine) -> None:
        """Hand out what is done with; what that raises ends the run."""
        self._room.release()
        try:
            self._take(item)
        except BaseException as error:
            self._failure = self._failure or error
        self._changed.set()

    async def _read(self, rows: Iterator[Item] | AsyncGenerator[Item, None]) -> None:
        try:
            while True:
                await self._room.acquire()
                item = await anext(rows, None) if isinstance(rows, AsyncGenerator) else next(rows, None)
                if item is None:
                    return
                if isinstance(item, Row):
                    slot = _Slot(item, len(self._metrics))
                    self._open[slot] = None
                    self._jobs.extend([(slot, place) for place in range(slot.left)])
                    self._begin()
                    del slot
                else:
                    self._deliver(item)
                del item
        except Exception as error:
            self._unreadable = error
        finally:
            self._all_read = True
            self._changed.set()

    def _begin(self) -> None:
        """Begin evaluations, as many as may be under way."""
        while self._jobs and len(self._tasks) < self._flows and self._failure is None and not self._ending:
            task = asyncio.ensure_future(self._evaluate(*self._jobs.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._begin()
        if not self._tasks or self._failure is not None:
            self._changed.set()

    async def _evaluate(self, slot: _Slot, place: int) -> None:
        row, metric = slot.row, self._metrics[place]
        try:
            if self._journal is None:
                outcome = await self._score(slot, metric)
            else:
                outcome = await self._outcome(self._journal, slot, metric)
        except GateClosed:
            return  # stopped before it was asked: no outcome
        self._note_left_out(metric.judge, f" from sample {row.line} on")
        sample_id = str(row.line) if row.sample.id is None else row.sample.id
        slot.records[place] = Record(sample_id, outcome, metric.judge.model, row.line - 1, setup=self._setups[place])
        slot.left -= 1
        if not slot.left:
            del self._open[slot]
            self._deliver(self._scored(slot))

    async def _outcome(self, journal: "Journal", slot: _Slot, metric: Metric) -> Outcome:
        """Return what the journal has; else score, and keep the outcome."""
        sample = slot.row.sample
        slot.key = slot.key or sample_key(sample)
        given = None if metric.given_in is None else sample.metadata.get(metric.given_in)
        outcome = journal.outcome(outcome_key(slot.key, self._metric_key(metric), given), sample)
        if outcome is not None:
            return outcome
        if self.stopped:
            raise GateClosed
        outcome = await self._score(slot, metric)
        # By what the judge is asked without now.
        journal.put_outcome(outcome_key(slot.key, self._metric_key(metric), given), outcome, sample)
        return outcome

    async def _score(self, slot: _Slot, metric: Metric) -> Outcome:
        slot.asked, row = True, slot.row
        meter = self._meter(metric, row.sample)
        if row.error is not None and ("response" in metric.required_fields or not row.sample.retrieved_contexts):
            return unscored(metric, CannotScore("missing_input", f"response: {row.error}"), meter)
        refusal = _GAVE_UP if self._gave_up else self._gate.refusal(metric.models)
        if refusal is not None:
            return unscored(metric, CannotScore("judge_error", f"not asked: {refusal}"), meter)
        watch = None if self._sample_timeout is None else Stopwatch(self._sample_timeout)
        answering = partial(self._gate.call, meter=meter, watch=watch, sample=row.line)
        try:
            return await metric.ascore(row.sample, meter=meter, answering=answering)
        except (JournalError, GateClosed):
            raise
        except Exception as error:
            return unscored(metric, error, meter)
        except asyncio.CancelledError:
            if self._ending:
                raise
            if watch is not None and watch.over:
                late = TimeoutError(f"its calls took more than {self._sample_timeout:g} s (sample_timeout)")
                return unscored(metric, late, meter)
            return unscored(metric, CannotScore("cancelled", _CANCELLED), meter)

    def _scored(self, slot: _Slot) -> Scored:
        """Return a finished row, after looking whether it is time to give up."""
        records = tuple([record for record in slot.records if record is not None])
        self.rows_done += 1
        self.kept += not slot.asked
        if any(isinstance(record.outcome, Score) for record in records):
            self._failed_in_a_row = 0
        else:
            self._failed_in_a_row += any(_judge_failed(record.outcome) for record in records)
            self._gave_up = self._gave_up or self._failed_in_a_row >= GIVE_UP_AFTER
        return Scored(slot.row, records)

    def _metric_key(self, metric: Metric) -> str:
        """Return a metric's key, as its judge is asked now."""
        asked = id(metric), frozenset(left_out_of(metric.judge))
        if asked not in self._metric_keys:
            self._metric_keys[asked] = metric_key(metric)
        return self._metric_keys[asked]

    def _prepare(self, journal: "Journal", judge: object) -> None:
        """Ask a judge as other runs of the journal did, whose provider refused something; say if it has no identity."""
        leave_out: object = getattr(judge, "leave_out", None)
        if callable(leave_out):
            leave_out(journal.left_out(identity_json(judge)))
        words = undeclared(judge)
        if words and words not in self.notes:
            self.notes.append(words)
            _log.warning("%s.", printable(words))

    def _note_left_out(self, judge: object, since: str = "") -> None:
        """Note what a judge is asked without, the first time."""
        once: Mapping[str, str] = getattr(judge, "left_out_once", {})
        when = dict.fromkeys(left_out_of(judge), since) | dict.fromkeys(once, " in single requests")
        for name, why in {**left_out_of(judge), **once}.items():
            if (id(judge), name) not in self._left_out:
                self._left_out.add((id(judge), name))
                what, model = _LEFT_OUT.get(name, name), getattr(judge, "model", "")
                self.notes.append(f"{model} was asked without {what}{when[name]}, because it refused: {why}")
                if since and self._journal is not None:
                    self._journal.put_left_out(identity_json(judge), left_out_of(judge))


async def _threaded(rows: Iterable[Item], ahead: int) -> AsyncGenerator[Item, None]:
    """Yield rows that a daemon thread reads, so many ahead at most: some are scored while a pipe waits for the next."""
    loop = asyncio.get_running_loop()
    read: asyncio.Queue[Item | Exception | None] = asyncio.Queue()
    room, stopped = threading.Semaphore(ahead), threading.Event()

    def send(item: Item | Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits
            loop.call_soon_threadsafe(read.put_nowait, item)

    def work() -> None:
        try:
            iterator = iter(rows)
            while room.acquire() and not stopped.is_set() and (row := next(iterator, None)) is not None:
                send(row)
                del row  # hold nothing of it while waiting for room
            send(None)
        except Exception as error:
            send(error)
        except BaseException as error:  # not the run's own, whose thread this is
            send(SourceError(f"samples: reading them was ended by {describe(error)}"))

    daemon(work, "ragstone-rows")
    try:
        while (item := await read.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
            del item
            room.release()
    finally:
        stopped.set()
        room.release()


def _judge_failed(outcome: Outcome) -> bool:
    asked = outcome.usage.llm_calls + outcome.usage.embed_calls
    return isinstance(outcome, Unscored) and outcome.reason == "judge_error" and asked > 0


class Progress:
    """A bar on standard error or in a notebook, drawn anew each second; elsewhere a line each 30 seconds.

    It is made on the run's event loop.

    Args:
        gate: Knows the calls and tokens.
        total: Samples in all, if that is known.
        shown: Whether to show anything; "auto": a bar on a terminal and in a notebook, no lines elsewhere.
    """

    def __init__(self, gate: RequestGate, total: int | None, shown: Shown) -> None:
        self._gate = gate
        self._total = total
        self._done = self._unscored = 0
        self._bar = self._drawn() if shown and (in_notebook() or is_terminal()) else None
        self._beat: asyncio.TimerHandle | None = None
        if self._bar is not None or shown is True:
            self._later()

    def done(self, unscored: int = 0) -> None:
        """Say that one more row is done, with so many more outcomes unscored."""
        self._done += 1
        self._unscored += unscored
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts(), refresh=False)
            self._bar.update()

    def close(self) -> None:
        """Draw it for the last time."""
        if self._beat is not None:
            self._beat.cancel()
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts(), refresh=False)
            self._bar.close()

    def _drawn(self) -> "tqdm[Any]":
        from tqdm import auto  # also knows notebooks

        form = "{n_fmt} samples [{elapsed}{postfix}]"
        if self._total is not None:
            form = "{l_bar}{bar}| {n_fmt}/{total_fmt} samples [{elapsed}<{remaining}{postfix}]"
        return auto.tqdm(total=self._total, bar_format=form, file=sys.stderr, dynamic_ncols=True)

    def _later(self) -> None:
        seconds = _LINE_SECONDS if self._bar is None else 1.0
        self._beat = asyncio.get_running_loop().call_later(seconds, self._say)

    def _say(self) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(self._facts())
        else:
            of = "" if self._total is None else f"/{self._total:,}"
            with suppress(OSError, AttributeError, ValueError):  # there is no stream, or it is closed
                sys.stderr.write(f"{self._done:,}{of} samples, {self._facts()}\n")
                sys.stderr.flush()
        self._later()

    def _facts(self) -> str:
        gate = self._gate
        facts = [f"{gate.calls_done:,} calls done", f"{gate.in_flight} in flight"]
        if gate.input_tokens is not None and gate.output_tokens is not None:
            facts.append(f"{gate.input_tokens + gate.output_tokens:,} tokens")
        facts.append(f"{self._unscored:,} unscored")
        if slow := [seconds for seconds in gate.waits() if seconds >= _SLOW_SECONDS]:
            which = "1 call waits" if len(slow) == 1 else f"{len(slow)} calls wait, the oldest"
            facts.append(f"{which} for {max(slow):.0f} s")
        return ", ".join(facts)


def above_bar(stream: TextIO) -> AbstractContextManager[object]:
    """Return a context in which lines can be written to a stream without tearing a bar that is drawn."""
    drawn = sys.modules.get("tqdm")
    return nullcontext() if drawn is None else drawn.tqdm.external_write_mode(file=stream)


def is_terminal() -> bool:
    """Whether standard error is one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def in_notebook() -> bool:
    """Whether this runs in a kernel whose output is a notebook."""
    interactive = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = interactive() if callable(interactive) else None
    return shell is not None and hasattr(shell, "kernel")
