"""The one thread's work on the outbox: it writes samples ahead, forgets finished ones, and takes up what was left."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragstone.monitor.delivery import MOST_WAITING, Delivery, Item
from ragstone.monitor.task import Shared, Task, TaskQueue
from ragstone.store.pending import Pending

if TYPE_CHECKING:
    from ragstone.store.outbox import Outbox

_BATCH = 500
_FIRST_WAIT, _LONGEST_WAIT = 30.0, 3_600.0  # after a judge's failure; eleven tries last about four hours
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BETWEEN_ADOPTIONS = 15.0
_SECONDS_AFTER_FAILURE = 1.0

T = TypeVar("T")


@dataclass(slots=True)
class _Batch:
    """What the next transaction writes. After a failure it stays, and more is added."""

    arrivals: list[Task] = field(default_factory=list[Task])
    done: list[Task] = field(default_factory=list[Task])
    rows: list[int] = field(default_factory=list[int])
    late: list[Task] = field(default_factory=list[Task])  # done and delivered while the file failed

    def __bool__(self) -> bool:
        return bool(self.arrivals or self.done or self.rows or self.late)


class OutboxWorker:
    """One process's side of the outbox. Everything that touches the file happens in `turn`, in one thread at a time.

    Attributes:
        arrivals: New samples that are not written yet.
        empty_polls: How often nothing was left to be taken up, or the file could not be looked into.
        put_off_too: Whether what other processes put off after a judge's failure is taken up before its time.
    """

    def __init__(self, path: Path, shared: Shared, deliveries: Mapping[str, Delivery]) -> None:
        self._path = path
        self._shared = shared
        self._counters = shared.counters
        self._deliveries = deliveries
        self._versions = dict(iter(shared.settings.metrics))  # by name
        self._lock = threading.Lock()
        self._outbox: Outbox | None = None
        self._closed = False
        self._use_at = self._look_at = self._adopt_at = -1.0
        self.arrivals = TaskQueue()
        self._done: deque[Task] = deque()
        self._rows: deque[int] = deque()
        self._batch = _Batch()
        self._batch_bytes = 0
        self.empty_polls = 0
        self.put_off_too = False

    def done(self, task: Task) -> None:
        """Take back a task that has nothing left to do. O(1), from any thread."""
        self._done.append(task)

    def delivered(self, rows: Sequence[int]) -> None:
        """Note that a sink has taken records. O(1), from any thread."""
        self._rows.extend(rows)

    def waiting_bytes(self) -> int:
        """Return the size of the samples that are not written yet."""
        return self.arrivals.bytes + self._batch_bytes

    def busy(self) -> bool:
        """Whether anything waits to be written that can be written."""
        waits = len(self.arrivals) or self._done or self._batch.arrivals or self._batch.done
        return bool(waits or ((self._rows or self._batch.rows) and time.monotonic() >= self._use_at))

    def turn(self, *, hurry: bool = False) -> None:
        """Write what waits, and once a second, or in a hurry now, take up what is left if there is room."""
        with self._lock:
            if self._closed:
                return
            if not self._usable() or not self._write(*self._shared.room()):
                self._go_on_without()
            elif hurry or time.monotonic() >= self._look_at:
                self._look()

    def close(self, left: Sequence[Task], late: Callable[[], Sequence[Task]], timeout: float = 5.0) -> None:
        """Write what waits, leave the tasks to whoever comes next, let go of the file.

        It waits so many seconds for a turn under way, which may hand on tasks that `late` returns; after them, nothing
        more is written.
        """
        self._closed = True
        written = False
        if self._lock.acquire(timeout=timeout):
            try:
                left = [*left, *late()]
                self._use_at = -1.0
                written = self._usable() and self._write_the_rest(left)
            finally:
                if self._outbox is not None:
                    self._outbox.close()
                    self._outbox = None
                self._lock.release()
        else:
            self._batch = _Batch()  # the turn under way has the other one
        if not written:
            self._go_on_without(left, ended=True)

    # --- inside a turn ----------------------------------------------------------------------------------------

    def _usable(self) -> bool:
        if time.monotonic() < self._use_at:
            return False
        if self._outbox is None:
            from ragstone.store.outbox import Outbox  # loads sqlite3

            try:
                self._outbox = Outbox(self._path)
            except Exception as error:
                self._failed(error)
                return False
            self._look_at = self._adopt_at = -1.0
            self._fall_behind()  # what an earlier process could not deliver
        return True

    def _fall_behind(self) -> None:
        for delivery in self._deliveries.values():
            delivery.behind = True

    def _failed(self, error: Exception) -> None:
        """Count it and try again soon: a file that is locked or full now need not be so for long."""
        self._counters.failed("outbox", error)
        self._use_at = self._look_at = time.monotonic() + _SECONDS_AFTER_FAILURE
        self.empty_polls += 1

    def _fill(self, most: int | None = None) -> _Batch:
        """Add to the batch what waits, so many of each at most."""
        batch = self._batch
        self._batch_bytes += self.arrivals.bytes  # counted twice for a moment, rather than not at all
        batch.arrivals += self.arrivals.drain(most)
        batch.done += _drained(self._done, most)
        batch.rows += _drained(self._rows, most)
        self._batch_bytes = sum(task.size for task in batch.arrivals)
        return batch

    def _write(self, free: int, free_bytes: int) -> bool:
        """Write a batch, and keep in memory what there is room for; False when it could not be written."""
        outbox, batch = self._outbox, self._fill(_BATCH)
        if outbox is None or not batch:
            return outbox is not None
        mine: list[Task] = []
        spooled: list[Task] = []
        duplicates: list[Task] = []
        items: list[tuple[str, Item]] = []
        try:
            with outbox.transaction():
                for task in batch.arrivals:
                    fits = free > 0 and free_bytes >= task.size
                    if not outbox.add(task, mine=fits):
                        duplicates.append(task)
                    elif fits:
                        mine.append(task)
                        free, free_bytes = free - 1, free_bytes - task.size
                    else:
                        spooled.append(task)
                for task in (*batch.late, *batch.done):
                    items += self._finish(outbox, task)
                outbox.delivered(batch.rows)
        except Exception as error:
            self._failed(error)
            return False
        self._batch = _Batch()
        for task in mine:
            task.saved = True
            self._shared.queue.put(task)
        self._batch_bytes = 0
        self._counters.settle("duplicate", "in_outbox", sum(task.open for task in duplicates))
        self._counters.settle("spooled", "outbox", sum(task.open for task in spooled))
        self._counters.settle("spooled", "outbox", sum(len(task.retries) for task in batch.done))
        self._deliver(items)
        return True

    def _finish(self, outbox: "Outbox", task: Task) -> list[tuple[str, Item]]:
        """Forget a task, or leave the rest of it for later, and keep its outcomes for the sinks."""
        if task.retries:
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**task.attempts)
            outbox.put_off(task.left(task.attempts + 1), wait)
        elif task.foreign:
            outbox.put_off(task.left(task.attempts), 0.0)
        else:
            outbox.remove(task.sample_id)
        return self._keep(outbox, task)

    def _keep(self, outbox: "Outbox", task: Task) -> list[tuple[str, Item]]:
        sinks = list(self._deliveries)
        return [(sink, Item(row, record)) for record in task.records for sink, row in outbox.keep(record, sinks)]

    def _deliver(self, items: Iterable[tuple[str, Item]]) -> None:
        by_sink: dict[str, list[Item]] = {}
        for sink, item in items:
            by_sink.setdefault(sink, []).append(item)
        for sink, several in by_sink.items():
            self._deliveries[sink].put(several)

    def _look(self) -> None:
        """Take up samples that nobody works on, and records that a sink is behind with."""
        outbox, now, (free, free_bytes) = self._outbox, time.monotonic(), self._shared.room()
        if outbox is None:
            return
        self._look_at = now + _SECONDS_BETWEEN_LOOKS
        most = max(0, min(free, _BATCH)) if free_bytes > 0 else 0
        try:
            with outbox.transaction():
                if now >= self._adopt_at:
                    self._adopt_at = now + _SECONDS_BETWEEN_ADOPTIONS
                    if outbox.adopt():
                        self._fall_behind()
                claimed = outbox.claim(
                    most,
                    sorted(self._versions),
                    most_bytes=free_bytes,
                    first_too=not len(self._shared.queue),
                    put_off_too=self.put_off_too,
                )
                undelivered = {
                    name: outbox.undelivered(name, MOST_WAITING)
                    for name, delivery in self._deliveries.items()
                    if delivery.behind and not delivery.waiting() and not self._rows
                }
        except Exception as error:
            self._failed(error)
            return
        for pending, left_by_us in claimed:
            self._take_up(pending, left_by_us=left_by_us)
        for name, rows in undelivered.items():
            self._deliveries[name].behind = len(rows) == MOST_WAITING
            self._deliveries[name].put([Item(row, record) for row, record in rows])
        if claimed or undelivered:
            self._look_at = -1.0  # there may be more
        elif most > 0 and not any(delivery.behind for delivery in self._deliveries.values()):
            self.empty_polls += 1

    def _take_up(self, pending: Pending, *, left_by_us: bool) -> None:
        """Queue what this monitor has a metric for, of another version if need be; leave the rest to others."""
        metrics, versions = self._shared.settings.metrics, self._versions
        todo = [
            choice if choice[:2] in metrics else choice._replace(version=versions[choice.metric])
            for choice in pending.todo
            if choice.metric in versions
        ]
        foreign = [choice for choice in pending.todo if choice.metric not in versions]
        task = Task(
            pending.sample,
            pending.sample_id,
            pending.submitted_at,
            todo,
            pending.origin,
            pending.attempts,
            foreign=foreign,
            saved=True,
        )
        if left_by_us:
            self._counters.settle("spooled", "outbox", -task.open)
        else:
            self._counters.accept(task.open)
        self._shared.queue.put(task)

    # --- without the file, and at the end ---------------------------------------------------------------------

    def _go_on_without(self, left: Sequence[Task] = (), *, ended: bool = False) -> None:
        """Judge and deliver from memory what cannot be written down; at the end, count what was left.

        The file may have some of it: the next start does these again.
        """
        batch = self._fill()
        for task in (*left, *batch.arrivals):
            free, free_bytes = self._shared.room()
            if not ended and free > 0 and free_bytes >= task.size:
                self._shared.queue.put(task)
            elif task.saved:
                self._counters.settle("spooled", "outbox", task.open)
            elif ended:
                self._counters.cut_off(task.open)
            else:
                self._counters.settle("dropped", "outbox_failed", task.open)
            self._deliver_from_memory(task)
        for task in batch.done:
            if task.saved:
                self._counters.settle("spooled", "outbox", len(task.retries))
                batch.late = [*batch.late, task][-MOST_WAITING:]
            else:
                for _, record in task.retries:
                    self._counters.settle("unscored", record.outcome.reason)
                    task.records.append(record)
                task.retries = []
            self._deliver_from_memory(task)
        batch.arrivals, batch.done, self._batch_bytes = [], [], 0

    def _deliver_from_memory(self, task: Task) -> None:
        self._deliver((name, Item(None, record)) for record in task.records for name in self._deliveries)
        task.records = []

    def _write_the_rest(self, left: Sequence[Task]) -> bool:
        """Write all that waits and is left; False when it could not be written."""
        while len(self.arrivals) or self._done or self._rows or self._batch:
            if not self._write(0, 0):
                return False
        outbox = self._outbox
        if outbox is None:
            return False
        try:
            with outbox.transaction():
                for task in left:
                    outbox.put_off(task.left(task.attempts), 0.0)
                    self._keep(outbox, task)
        except Exception as error:
            self._counters.failed("outbox", error)
            return False
        self._counters.settle("spooled", "outbox", sum(task.open for task in left))
        return True


def _drained(items: deque[T], most: int | None) -> list[T]:
    """Take out the first items, those that are there now."""
    drained: list[T] = []
    with suppress(IndexError):
        drained.extend(items.popleft() for _ in range(len(items) if most is None else min(most, len(items))))
    return drained
