"""The one runner: rows in, each row's results out, in input order, at any length in constant memory."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

from ragstone.batch.claiming import ClaimedOutcomes, Claiming
from ragstone.batch.feed import Feed, FromMemory, FromThread, Item
from ragstone.batch.scoring import GIVE_UP_AFTER, Outcomes, Scoring
from ragstone.limits.gate import Gate
from ragstone.limits.lane import GateClosed
from ragstone.metrics.base import Metric
from ragstone.sample import BadLine, Row
from ragstone.store.journal.keys import metric_key, outcome_key, sample_key
from ragstone.store.record import Record


class Scored(NamedTuple):
    """A row and its results: the draws of the first metric, then those of the second, and so on.

    Attributes:
        row: The row.
        results: Its results.
        keys: Under which the journal has each outcome; none without a journal.
    """

    row: Row
    results: tuple[Record, ...]
    keys: tuple[str, ...] = ()


class _Slot:
    """A row under way, and its place in the order."""

    __slots__ = ("keys", "left", "results", "row")

    def __init__(self, row: Row, size: int) -> None:
        self.row = row
        self.results: list[Record | None] = [None] * size
        self.left = size
        self.keys: list[str] = []


_Entry = _Slot | BadLine | Exception
_Job = tuple[_Slot, int]


class Runner:
    """Scores rows by metrics, once.

    What scoring raises is an `Unscored` on that row and metric, and touches no other. When the judge has failed on
    100 samples in a row it is not asked any more: what follows is `Unscored("judge_error")` at once, and is asked
    again when a run is resumed. So it is with a judge that refuses the first call for good (401, 403, 404).

    Args:
        rows: What is to be scored. An iterator that may wait (of a file, a pipe, a generator) is read in a thread.
        metrics: Each scores every row.
        gate: What the judges are asked through. `Runner` closes it when it is stopped.
        repeat: How often each metric scores each row: draws, which never share replies.
        journal: Where outcomes are looked up before anything is asked, and kept. Where they can be claimed (a
            `Journal`), no outcome is made that another run is making; the row waits for it.
        sample_timeout: Seconds that one evaluation of one sample may have calls in flight.
        in_memory: Whether the rows never wait: they are read on the event loop then, which is faster.
        flows: Evaluations under way at most; twice the calls keep the judge busy while others compute.
        window: Rows held at most, from being read to being done with.

    Attributes:
        stopped: Whether `stop` was called.

    Raises:
        NoKeyError: There is a journal, and a metric has an option that has no key.
    """

    def __init__(
        self,
        rows: Iterable[Item] | AsyncIterator[Item],
        metrics: Sequence[Metric],
        gate: Gate,
        *,
        repeat: int = 1,
        journal: Outcomes | None = None,
        sample_timeout: float | None = None,
        in_memory: bool = False,
        flows: int = 32,
        window: int = 256,
    ) -> None:
        self._rows = rows
        self._gate = gate
        self._scoring = Scoring(gate, journal, sample_timeout)
        self._in_memory = in_memory
        self._flows = max(1, flows)
        self._window = max(1, window)
        self._draws = [(metric, draw) for metric in metrics for draw in range(repeat)]
        self._judges = [metric.judge.model for metric, _ in self._draws]
        self._keys = [] if journal is None else [metric_key(metric) for metric, _ in self._draws]
        self._claiming: Claiming[_Job] | None = None
        if isinstance(journal, ClaimedOutcomes):
            self._claiming = Claiming(journal, self._keys_in_line, self._take_up)
        self._slots: deque[_Entry] = deque()
        self._jobs: deque[_Job] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._all_read = False
        self._broken: BaseException | None = None
        self._change: asyncio.Future[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self.stopped = False

    @property
    def gave_up(self) -> bool:
        """Whether no judge is asked any more."""
        return self._scoring.gave_up or all(self._scoring.refusal(metric) is not None for metric, _ in self._draws)

    @property
    def not_asked(self) -> list[str]:
        """Why judges or embedders are not asked any more."""
        many = [f"the judge failed on {GIVE_UP_AFTER} samples in a row"] if self._scoring.gave_up else []
        return [*self._gate.refusals(), *many]

    def stop(self) -> None:
        """Begin nothing more: calls in flight end, what is scored by then still comes out, then the results end."""
        self.stopped = True
        self._jobs.clear()
        if self._claiming is not None:
            self._claiming.forget()
        self._gate.close()
        if self._reader is not None:
            self._reader.cancel()
        self._all_read = True  # said here, too: a task that is cancelled before its first step does nothing at all
        self._changed()

    async def results(self) -> AsyncGenerator[Scored | BadLine, None]:
        """Yield each row's results in input order; a bad line comes through in its place.

        Close the generator (`contextlib.aclosing`) to end early; what is under way is then called off.

        Raises:
            JournalError: The journal cannot be read or written.
            Exception: What reading the rows raises, after the rows before it.
        """
        feed = self._feed()
        self._reader = asyncio.ensure_future(self._read(feed))
        tasks = {self._reader}
        if self._claiming is not None:
            tasks.add(asyncio.ensure_future(self._unless_it_breaks(self._claiming.watch())))
        done_with = 0
        try:
            while True:
                while (entry := self._next()) is not None:
                    if isinstance(entry, Exception):
                        raise entry
                    if isinstance(entry, BadLine):
                        yield entry
                    else:
                        yield self._scored(entry)
                    del entry  # the caller is done with it: hold nothing of it while waiting for the next
                    done_with += 1
                    if 4 * done_with >= self._window:  # a thread is not woken for each
                        feed.more(done_with)
                        done_with = 0
                if self._broken is not None:
                    raise self._broken
                if self._over() and not self._slots:
                    return
                self._change = asyncio.get_running_loop().create_future()
                await self._change
        finally:
            self._scoring.ending = True
            feed.stop()
            tasks |= self._workers
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._claiming is not None:
                await self._claiming.close()
            rows: object = self._rows
            if isinstance(rows, AsyncGenerator):
                await cast("AsyncGenerator[object, None]", rows).aclose()

    def _feed(self) -> Feed:
        rows = self._rows
        if isinstance(rows, AsyncIterator):
            return FromMemory(rows, self._window)
        return FromMemory(iter(rows), self._window) if self._in_memory else FromThread(rows, self._window)

    def _over(self) -> bool:
        waiting = self._claiming is not None and self._claiming.waiting
        return self._all_read and not self._jobs and not waiting and len(self._idle) == len(self._workers)

    def _next(self) -> _Entry | None:
        """Return the next entry if it is ready. After a stop, rows that were not finished are left out."""
        while self._slots:
            first = self._slots[0]
            if not isinstance(first, _Slot) or not first.left:
                return self._slots.popleft()
            if not (self.stopped and self._over()):
                return None
            self._slots.popleft()
        return None

    def _scored(self, slot: _Slot) -> Scored:
        results = tuple([result for result in slot.results if result is not None])
        self._scoring.came_out([result.outcome for result in results])
        return Scored(slot.row, results, tuple(slot.keys))

    def _changed(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def _read(self, feed: Feed) -> None:
        try:
            while (item := await feed.next()) is not None:
                if isinstance(item, Row):
                    slot = _Slot(item, len(self._draws))
                    self._slots.append(slot)
                    self._jobs.extend([(slot, place) for place in range(slot.left)])
                    self._put_to_work(slot.left)
                else:
                    self._slots.append(item)
                    self._changed()
                del item
        except Exception as error:
            self._slots.append(error)
        finally:
            self._all_read = True
            self._changed()

    def _put_to_work(self, jobs: int) -> None:
        for _ in range(jobs):
            if self._idle:
                self._idle.popleft().set_result(None)
            elif len(self._workers) < self._flows:
                self._workers.add(asyncio.ensure_future(self._unless_it_breaks(self._work())))
            else:
                return

    def _take_up(self, jobs: list[_Job]) -> None:
        """Do what had to wait for others next."""
        if not self.stopped:
            self._jobs.extendleft(reversed(jobs))
            self._put_to_work(len(jobs))

    async def _unless_it_breaks(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._broken = error
            self._changed()

    async def _work(self) -> None:
        while True:
            while self._jobs:
                slot, place = self._jobs.popleft()
                await self._fill(slot, place)
                del slot
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            if self._all_read:
                self._changed()
            await idle

    def _keys_of(self, slot: _Slot) -> list[str]:
        if self._keys and not slot.keys:
            of_sample = sample_key(slot.row.sample)
            slot.keys = [outcome_key(of_sample, key, n) for key, (_, n) in zip(self._keys, self._draws, strict=True)]
        return slot.keys

    def _keys_in_line(self, most: int) -> list[str]:
        return [self._keys_of(slot)[place] for slot, place in islice(self._jobs, most)]

    async def _claimed(self, key: str) -> bool:
        return self._claiming is None or await self._claiming.claimed(key)

    async def _fill(self, slot: _Slot, place: int) -> None:
        row, (metric, draw) = slot.row, self._draws[place]
        keys = self._keys_of(slot)
        key = keys[place] if keys else ""
        try:
            outcome = await self._scoring.outcome(row.sample, metric, draw, key, self._claimed)
        except GateClosed:
            return  # stopped before it was asked: no outcome
        if self._claiming is not None:
            if outcome is None:
                if not self.stopped:
                    self._claiming.wait(key, (slot, place))
                return
            self._claiming.made(key)
        if outcome is None:
            raise AssertionError("only what is claimed by others has no outcome")
        sample_id = str(row.line) if row.sample.id is None else row.sample.id
        slot.results[place] = Record(sample_id, outcome, self._judges[place], row.line - 1, draw)
        slot.left -= 1
        if not slot.left and self._slots and self._slots[0] is slot:
            self._changed()
