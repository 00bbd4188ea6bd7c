"""The queue whose store is the outbox's file: what is in it outlives the process."""

import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ragstone.live.counters import Counters, Status
from ragstone.live.delivery import Delivery, Item
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Pending
from ragstone.live.queue import Task, TaskQueue
from ragstone.live.settings import Settings
from ragstone.results.traffic import Feedback

_BATCH = 500
_SECONDS_FOR_LAST_BATCH = 5.0

AfterWrite = Callable[[], object]


class FileQueue(TaskQueue):
    """Keeps tasks in the outbox, and those that this process is to judge in memory, too.

    A new sample is written before it is judged, and its outcomes before they are delivered; one thread writes, many
    changes in a transaction. While the file cannot be used, all of that waits.

    Args:
        settings: The monitor's.
        counters: Where the fate of each evaluation is counted.
        deliveries: Where outcomes go, by the sink's name.
        path: The outbox.
        wake: Called when there is something to write.
    """

    keeps = True
    most_attempts = 11

    def __init__(
        self,
        settings: Settings,
        counters: Counters,
        deliveries: Mapping[str, Delivery],
        path: Path,
        wake: Callable[[], object],
    ) -> None:
        super().__init__(settings.queue, counters, deliveries)
        self._settings = settings
        self._waits = settings.waits
        self._path = path
        self._wake = wake
        self._judges = settings.queue.workers > 0
        self._versions = dict(iter(settings.metrics))  # by name
        self._new: deque[Task] = deque()
        self._judged: deque[Task] = deque()
        self._said: deque[Feedback] = deque()
        self._delivered: deque[int] = deque()
        self._unwritten: tuple[deque[Any], ...] = (self._new, self._judged, self._said, self._delivered)
        self._writing = threading.Lock()
        self._outbox: Outbox | None = None
        self._use_at = self._look_at = self._adopt_at = -1.0
        self._asked = self._looked = 0  # how often
        self._put_off_too = self._found = False

    def done(self, task: Task) -> None:
        """Write down a task's outcomes, for the sinks, and what is left of it."""
        self._judged.append(task)
        self._wake()

    put_off = done

    def drop(self) -> bool:
        """Drop the task that waited longest, also one that is not written yet."""
        with self._lock:
            if super().drop():
                return True
            if self._new:
                task = self._new.popleft()
                self._not_added(task, "dropped", "queue_full")
                task.todo.clear()
                return True
        return False

    def say(self, feedback: Feedback) -> None:
        """Write down what a person said, for the sinks; RuntimeError where too much waits to be written."""
        if len(self._said) >= self._waits.outcomes:
            raise RuntimeError("feedback: too much waits for the outbox, which cannot be written")
        self._said.append(feedback)
        self._wake()

    def delivered(self, rows: Sequence[int]) -> None:
        """Remove outcomes from the file."""
        self._delivered.extend(rows)
        self._wake()

    def ask(self, *, put_off: bool) -> None:
        """Have the file looked into now."""
        self._put_off_too |= put_off
        self._asked += 1
        self._wake()

    def has_more(self) -> bool:
        """Whether the look that was asked for is still to come, or found something."""
        return self._judges and (self._looked < self._asked or self._found)

    def busy(self) -> bool:
        """Whether something waits to be written, and can be."""
        return any(self._unwritten) and time.monotonic() >= self._use_at

    def maintain(self) -> None:
        """Write a batch, and look into the file once in a while."""
        with self._held() as mine:
            if mine:
                self._write()

    def end(self, left: Iterable[Task]) -> None:
        """Write down all that waits."""
        with self._held() as mine:  # after a batch that is being written, which may make further tasks ready
            super().end(left)
            if mine:
                self._use_at = -1.0
                self._write_all()

    def close(self) -> None:
        """Write what came since, count what cannot be written, and close the file."""
        with self._held() as mine:
            if not mine:
                return
            self._judged.extend(self._drain())
            self._write_all()
            for task in self._new:
                self._counters.cut_off(len(task.todo))
            for task in self._judged:  # its row is as it was: the next start does it again
                self._counters.settle("spooled", "outbox", n := len(task.settled) + len(task.todo))
                self.in_file += n
            with suppress(Exception):
                if self._judges and self._path.exists() and time.monotonic() >= self._use_at:
                    self._count_left(self._opened())
            self._use_at = math.inf
            if self._outbox is not None:
                self._outbox.close()

    def _count_left(self, outbox: Outbox) -> None:
        """Count what stays in the file, whoever put it there."""
        with outbox.transaction():
            outbox.adopt()
            in_outbox = outbox.records()
            for name, delivery in self._deliveries.items():
                delivery.in_outbox = in_outbox.get(name, 0)
            self.in_file = self._evaluations(outbox, mine=True)

    def _evaluations(self, outbox: Outbox, *, mine: bool) -> int:
        return sum(n for (name, _), n in outbox.waiting(mine=mine).items() if name in self._versions)

    def _add(self, task: Task) -> None:
        self._new.append(task)
        self._wake()

    # --- on the thread that writes ----------------------------------------------------------------------------

    @contextmanager
    def _held(self) -> Generator[bool, None, None]:
        """Keep other threads from writing; False where one did not end within some seconds."""
        mine = self._writing.acquire(timeout=_SECONDS_FOR_LAST_BATCH)
        try:
            yield mine
        finally:
            if mine:
                self._writing.release()

    def _write_all(self) -> None:
        while any(self._unwritten) and self._write():
            pass

    def _write(self) -> bool:
        """Write a batch, all or nothing, and look what others left; False where the file cannot be used."""
        now, asked = time.monotonic(), self._asked
        if now < self._use_at:
            self._looked, self._found = asked, False
            return False
        looks = self._judges and not self.ended.is_set() and (now >= self._look_at or self._looked < asked)
        if not (looks or any(self._unwritten)):
            return True
        then: list[AfterWrite] = []
        try:
            outbox = self._opened()
            # Before a batch is taken: what these took is in it, and is not handed to them again.
            behind = {name: each for name, each in self._deliveries.items() if each.behind and not each.waiting()}
            with self._lock:
                batches = [[each[i] for i in range(min(len(each), _BATCH))] for each in self._unwritten]
            new, judged, said, rows = batches
            with outbox.transaction():
                then += [self._written(task, outbox) for task in new]
                then += [self._finished(task, outbox) for task in judged]
                for feedback in said:
                    outbox.say(feedback)
                outbox.delivered(rows)
                if looks:
                    then.append(self._look(outbox, {} if len(self._delivered) > len(rows) else behind))
        except Exception as error:
            self._use_at = time.monotonic() + self._waits.outbox
            self._looked, self._found = asked, False
            self._counters.failed("outbox", error)
            return False
        for go_on in then:
            go_on()
        for each, batch in zip(self._unwritten[1:], batches[1:], strict=True):
            for _ in batch:
                each.popleft()
        if looks:
            self._looked = asked
        return True

    def _opened(self) -> Outbox:
        if self._outbox is None:
            self._outbox = Outbox(self._path, self._waits.locked)
            self._fall_behind()  # what an earlier process could not deliver
        return self._outbox

    def _fall_behind(self) -> None:
        for delivery in self._deliveries.values():
            delivery.behind = True

    def _written(self, task: Task, outbox: Outbox) -> AfterWrite:
        """Write down a new sample, as this process's or, where it does not judge, as anybody's."""
        mine = self._judges and not self.ended.is_set()
        status: Status = "spooled"
        reason = "outbox"
        try:
            if not outbox.add(task, mine=mine):
                gone = outbox.is_forgotten(task)
                status, reason = ("dropped", "forgotten") if gone else ("duplicate", "in_outbox")
        except sqlite3.DataError:  # larger than SQLite keeps
            status, reason = "dropped", "too_large"

        def written() -> None:
            with self._lock:
                if not task.todo:  # it was dropped meanwhile
                    self.done(task)
                    return
                self._new.popleft()
            if mine and status == "spooled":
                self._ready.put(task)
            else:
                self._not_added(task, status, reason)

        return written

    def _not_added(self, task: Task, status: Status, reason: str) -> None:
        self._count(task, -1)
        self._counters.settle(status, reason, len(task.todo))

    def _finished(self, task: Task, outbox: Outbox) -> AfterWrite:
        """Write down the outcomes of a task, and what of it is still to be done."""
        if rest := [*task.retries, *task.todo, *task.foreign]:
            first, longest = self._waits.judge
            wait = min(longest, first * 2**task.attempts) if task.retries else 0.0
            attempts = task.attempts + bool(task.retries)
            outbox.put_off(Pending(task.sample, task.sample_id, task.submitted_at, rest, task.origin, attempts), wait)
        else:
            outbox.remove(task.sample_id)
        kept = [(record, outbox.keep(record, list(self._deliveries))) for record in task.records]

        def written() -> None:
            for record, rows in kept:
                for sink, row in rows:
                    self._deliveries[sink].put([Item(row, record)])
                for delivery in self._deliveries.values() if not rows else ():
                    delivery.left_out()
            self._settle(task)
            self._counters.settle("spooled", "outbox", len(task.todo))
            self.in_file += len(task.retries) + len(task.todo)
            if task.todo:
                self._look_at = -1.0

        return written

    def _look(self, outbox: Outbox, behind: Mapping[str, Delivery]) -> AfterWrite:
        """Claim samples without an owner, and outcomes that a sink has not taken yet."""
        now, options = time.monotonic(), self._options
        put_off, self._put_off_too = self._put_off_too, False
        self._look_at = now + self._waits.looks
        if now >= self._adopt_at or self._looked < self._asked:
            self._adopt_at = now + self._waits.adoptions
            if outbox.adopt():
                self._fall_behind()
        if outbox.share_feedback(list(self._deliveries)):
            self._fall_behind()
        most, most_bytes = options.size - self._tasks, options.bytes - self._bytes
        claimed = outbox.claim(
            max(0, min(most, _BATCH)) if most_bytes > 0 else 0,
            sorted(self._versions),
            longest=self._waits.judge[1],
            most_bytes=most_bytes,
            first_too=not self._ready.qsize(),
            put_off_too=put_off,
        )
        most = self._waits.outcomes
        undelivered = {name: [Item(row, record) for row, record in outbox.undelivered(name, most)] for name in behind}
        in_file = self._evaluations(outbox, mine=False) if self._looked < self._asked else None
        in_outbox = outbox.records() if any(each.behind for each in self._deliveries.values()) else {}

        def written() -> None:
            for pending, left_by_us in claimed:
                self._claimed(pending, left_by_us=left_by_us)
            if in_file is not None:
                self.in_file = in_file
            for name, items in undelivered.items():
                behind[name].behind = False
                behind[name].put(items)
                behind[name].behind = len(items) == most
            for name, delivery in self._deliveries.items():
                delivery.in_outbox = in_outbox.get(name, 0) if delivery.behind else 0
            self._found = bool(claimed) or any(each.behind for each in self._deliveries.values())
            if claimed or any(undelivered.values()):
                self._look_at = -1.0

        return written

    def _claimed(self, pending: Pending, *, left_by_us: bool) -> None:
        """Queue what this monitor has a metric for, of another version if need be; leave the rest to others."""
        todo = [
            choice if choice[:2] in self._settings.metrics else choice._replace(version=self._versions[choice.metric])
            for choice in pending.todo
            if choice.metric in self._versions
        ]
        foreign = [choice for choice in pending.todo if choice.metric not in self._versions]
        self.in_file = max(0, self.in_file - len(todo))
        if left_by_us:
            self._counters.settle("spooled", "outbox", -len(todo))
        else:
            self._counters.accept(len(todo))
        sample_id, at, attempts = pending.sample_id, pending.submitted_at, pending.attempts
        task = Task(pending.sample, sample_id, at, todo, pending.origin, attempts, foreign=foreign)
        self._count(task)
        self._ready.put(task)
