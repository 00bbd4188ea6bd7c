"""The one thread's work on the outbox: it writes samples ahead, forgets finished ones, and takes up what was left."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragstone.monitor.delivery import MOST_WAITING, Delivery, Item, deliver
from ragstone.monitor.task import Shared, Task, TaskQueue
from ragstone.store.pending import Pending
from ragstone.store.record import Record

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
            if not self._write():
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
                written = self._write_the_rest(left)
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

    def _transact(self, work: Callable[["Outbox"], T]) -> T | None:
        """Do some work in one transaction; None when the file could not be used, which is counted.

        It is tried again soon: a file that is locked or full now need not be so for long.
        """
        if time.monotonic() < self._use_at:
            return None
        from ragstone.store.outbox import Outbox  # loads sqlite3

        try:
            if self._outbox is None:
                self._outbox = Outbox(self._path)
                self._look_at = self._adopt_at = -1.0
                self._fall_behind()  # what an earlier process could not deliver
            with self._outbox.transaction():
                return work(self._outbox)
        except Exception as error:
            self._counters.failed("outbox", error)
            self._use_at = self._look_at = time.monotonic() + _SECONDS_AFTER_FAILURE
            self.empty_polls += 1
            return None

    def _fall_behind(self) -> None:
        for delivery in self._deliveries.values():
            delivery.behind = True

    def _fill(self, most: int | None = None) -> _Batch:
        """Add to the batch what waits, so many of each at most."""
        batch = self._batch
        self._batch_bytes += self.arrivals.bytes  # counted twice for a moment, rather than not at all
        batch.arrivals += self.arrivals.drain(most)
        batch.done += _drained(self._done, most)
        batch.rows += _drained(self._rows, most)
        self._batch_bytes = sum(task.size for task in batch.arrivals)
        return batch

    def _write(self, *, leave: bool = False) -> bool:
        """Write a batch, and unless all is left to others keep in memory what there is room for; False on failure."""
        batch = self._fill(_BATCH)
        if not batch and self._outbox is not None:
            return True
        room = (0, 0) if leave else self._shared.room()
        written = self._transact(lambda outbox: self._write_batch(outbox, batch, *room))
        if written is None:
            return False
        self._batch = _Batch()
        mine, settled, items = written
        for task in mine:
            task.saved = True
            self._shared.queue.put(task)
        self._batch_bytes = 0
        self._counters.settle("duplicate", "in_outbox", settled["duplicate"])
        self._counters.settle("spooled", "outbox", settled["spooled"])
        self._deliver(items)
        return True

    def _write_batch(
        self, outbox: "Outbox", batch: _Batch, free: int, free_bytes: int
    ) -> tuple[list[Task], Counter[str], list[tuple[str, Item]]]:
        """Return the tasks that this process takes, the numbers of the others, and what is to be delivered."""
        mine: list[Task] = []
        settled = Counter(spooled=sum(len(task.retries) for task in batch.done))
        items: list[tuple[str, Item]] = []
        for task in batch.arrivals:
            fits = free > 0 and free_bytes >= task.size
            if not outbox.add(task, mine=fits):
                settled["duplicate"] += task.open
            elif fits:
                mine.append(task)
                free, free_bytes = free - 1, free_bytes - task.size
            else:
                settled["spooled"] += task.open
        for task in (*batch.late, *batch.done):
            items += self._finish(outbox, task)
        outbox.delivered(batch.rows)
        return mine, settled, items

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
        now, (free, free_bytes) = time.monotonic(), self._shared.room()
        self._look_at = now + _SECONDS_BETWEEN_LOOKS
        most = max(0, min(free, _BATCH)) if free_bytes > 0 else 0
        first_too = not len(self._shared.queue)

        def look(outbox: "Outbox") -> tuple[list[tuple[Pending, bool]], dict[str, list[tuple[int, Record]]]]:
            if now >= self._adopt_at:
                self._adopt_at = now + _SECONDS_BETWEEN_ADOPTIONS
                if outbox.adopt():
                    self._fall_behind()
            names = sorted(self._versions)
            claimed = outbox.claim(
                most, names, most_bytes=free_bytes, first_too=first_too, put_off_too=self.put_off_too
            )
            return claimed, {
                name: outbox.undelivered(name, MOST_WAITING)
                for name, delivery in self._deliveries.items()
                if delivery.behind and not delivery.waiting() and not self._rows
            }

        if (seen := self._transact(look)) is None:
            return
        claimed, undelivered = seen
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
            deliver(self._deliveries.values(), task.records)
            task.records = []
        for task in batch.done:
            if task.saved:
                self._counters.settle("spooled", "outbox", len(task.retries))
                batch.late = [*batch.late, task][-MOST_WAITING:]
            else:
                for _, record in task.retries:
                    self._counters.settle("unscored", record.outcome.reason)
                    task.records.append(record)
                task.retries = []
            deliver(self._deliveries.values(), task.records)
            task.records = []
        batch.arrivals, batch.done, self._batch_bytes = [], [], 0

    def _write_the_rest(self, left: Sequence[Task]) -> bool:
        """Write all that waits and is left; False when it could not be written."""
        while len(self.arrivals) or self._done or self._rows or self._batch:
            if not self._write(leave=True):
                return False

        def put_off(outbox: "Outbox") -> bool:
            for task in left:
                outbox.put_off(task.left(task.attempts), 0.0)
                self._keep(outbox, task)
            return True

        if not self._transact(put_off):
            return False
        self._counters.settle("spooled", "outbox", sum(task.open for task in left))
        return True


def _drained(items: deque[T], most: int | None) -> list[T]:
    """Take out the first items, those that are there now."""
    drained: list[T] = []
    with suppress(IndexError):
        drained.extend(items.popleft() for _ in range(len(items) if most is None else min(most, len(items))))
    return drained
