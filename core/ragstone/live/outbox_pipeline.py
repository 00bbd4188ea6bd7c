"""A pipeline with an outbox: samples are written ahead, finished ones forgotten, and what was left is taken up."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from ragstone.live.counters import FlushResult
from ragstone.live.delivery import MOST_WAITING, Item
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Pending
from ragstone.live.pipeline import Pipeline
from ragstone.live.settings import Settings
from ragstone.live.worker import Task, TaskQueue
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback

_BATCH = 500
_UNWRITTEN = 10_000  # samples that may wait to be spooled: a burst comes faster than a disk writes
_FIRST_WAIT, _LONGEST_WAIT = 30.0, 3_600.0  # after a judge's failure; eleven tries last about four hours
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BETWEEN_ADOPTIONS = 15.0
_SECONDS_AFTER_FAILURE = 1.0
_SECONDS_FOR_LAST_TURN = 5.0

T = TypeVar("T")


class OutboxPipeline(Pipeline):
    """A pipeline whose tasks and outcomes lie in a file, too, so that the process may be killed.

    A new task waits in `arrivals` until one thread, turn by turn, has written it; only then it waits for the workers.
    While the file cannot be used, what cannot be written is judged and delivered from memory.
    """

    def __init__(self, settings: Settings, path: Path) -> None:
        super().__init__(settings)
        self._path = path
        self._versions = dict(iter(settings.metrics))  # by name
        self._turn_lock = threading.Lock()
        self._outbox: Outbox | None = None
        self._gone = False
        self._use_at = self._look_at = self._adopt_at = -1.0
        self._arrivals = TaskQueue()
        self._unwritten: list[Task] = []  # arrivals on their way into the file
        self._unwritten_bytes = 0
        self._feedback: deque[Feedback] = deque()
        self._finished: deque[Task] = deque()
        self._rows: deque[int] = deque()  # of outcomes that were delivered
        self._empty_polls = 0  # how often nothing was left to be taken up, or the file could not be looked into
        self._enough_polls = 0
        self._hurry = False
        self._put_off_too = False

    def take_up(self) -> None:
        """Begin with what an earlier process left, although no sample came yet."""
        if not self.closed:
            self.start()

    def put(self, task: Task) -> None:
        """Let a new task wait to be written."""
        self._arrivals.put(task)
        self.wake()

    def forget(self, before: float) -> None:
        """Remove what is from before a time, in the file and wherever a sink keeps it."""
        super().forget(before)
        with self._turn_lock:
            if self._outbox is not None:
                self._outbox.forget(before=before)

    def feedback(self, feedback: Feedback) -> None:
        """Let what a person said wait to be written."""
        if self.closed or len(self._feedback) >= _UNWRITTEN:
            raise RuntimeError("the monitor is closed, or too many samples wait to be written")
        self.start()
        self._feedback.append(feedback)
        self.wake()

    def waiting(self) -> int:
        """Return how many samples wait, to be written or judged."""
        return len(self.queue) + len(self._arrivals)

    def waiting_bytes(self) -> int:
        """Return the size of the samples that wait, to be written or judged."""
        return self.queue.bytes + self._arrivals.bytes + self._unwritten_bytes

    def drain(self) -> list[Task]:
        """Take out the tasks that wait, to be written or judged."""
        return [*super().drain(), *self._arrivals.drain()]

    def makes_room(self, task: Task) -> bool:
        """Spool a task by that rule: its turn finds no room in memory and leaves it in the file."""
        if self._settings.queue.when_full != "spool":
            return super().makes_room(task)
        size = self._arrivals.bytes + self._unwritten_bytes + task.size
        most = max(_UNWRITTEN, self._settings.queue.size)
        return len(self._arrivals) < most and size <= self._settings.queue.bytes

    def done(self, task: Task) -> None:
        """Take back a task that has nothing left to do."""
        self._finished.append(task)
        self.wake()
        self.settle(task)

    def delivered(self, rows: list[int]) -> None:
        """Forget outcomes that a sink has taken."""
        self._rows.extend(rows)
        self.wake()

    def leave(self, task: Task) -> None:
        """Hand on what came of a task; the file has the rest, if it ever had it."""
        if task.saved:
            self.counters.settle("spooled", "outbox", len(task.todo))
            task.todo = []
        super().leave(task)

    def flush(self, timeout: float | None, *, put_off: bool = False) -> FlushResult:
        """Wait until nothing is left to do that is due, or with `put_off` that is not."""
        if not self.closed:
            self._put_off_too, self._enough_polls = put_off, 0
            self.start()  # there may be something in the outbox
        try:
            return super().flush(timeout)
        finally:
            self._put_off_too = False

    def idle(self) -> bool:
        """Return whether nothing is left to do, also after two more looks into the file."""
        if not super().idle():
            self._enough_polls = 0
            return False
        if not self._settings.queue.workers:
            return not self._busy()
        self._enough_polls = self._enough_polls or self._empty_polls + 2  # the first may have begun before
        self._hurry = True
        self.wake()
        return self._empty_polls >= self._enough_polls and not self._busy()

    def _busy(self) -> bool:
        """Return whether anything waits to be written that can be written."""
        if len(self._arrivals) or self._unwritten:
            return True
        return bool(self._finished or self._rows or self._feedback) and time.monotonic() >= self._use_at

    # --- turns ------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Write what waits, and once a second, or in a hurry now, take up what is left if there is room."""
        with self._turn_lock:
            if self._gone:
                return
            hurry, self._hurry = self._hurry, False
            written = self._write()
            if not self._settings.queue.workers:
                return  # what cannot be written waits until it can
            if not written:
                self._go_on_without()
            elif hurry or time.monotonic() >= self._look_at:
                self._look()

    def _transact(self, work: Callable[[Outbox], T]) -> T | None:
        """Do some work in one transaction; None when the file could not be used, which is counted.

        It is tried again soon: a file that is locked or full now need not be so for long.
        """
        if time.monotonic() < self._use_at:
            return None
        try:
            if self._outbox is None:
                self._outbox = Outbox(self._path)
                self._look_at = self._adopt_at = -1.0
                self._fall_behind()  # what an earlier process could not deliver
            with self._outbox.transaction():
                return work(self._outbox)
        except Exception as error:
            self.counters.failed("outbox", error)
            self._use_at = self._look_at = time.monotonic() + _SECONDS_AFTER_FAILURE
            self._empty_polls += 1
            return None

    def _fall_behind(self) -> None:
        for delivery in self.deliveries.values():
            delivery.behind = True

    def _room(self) -> tuple[int, int]:
        """Return how many more tasks, and bytes, may wait in memory to be judged."""
        if not self._settings.queue.workers:
            return 0, 0
        return self._settings.queue.size - len(self.queue), self._settings.queue.bytes - self.queue.bytes

    def _write(self, *, leave: bool = False) -> bool:
        """Write a batch, and unless all is left to others keep in memory what there is room for; False on failure."""
        if not self._write_feedback():
            return False
        self._unwritten_bytes += self._arrivals.bytes  # counted twice for a moment, rather than not at all
        self._unwritten += self._arrivals.drain(_BATCH - len(self._unwritten))
        self._unwritten_bytes = sum(task.size for task in self._unwritten)
        done = [self._finished[place] for place in range(min(_BATCH, len(self._finished)))]
        rows = [self._rows[place] for place in range(min(_BATCH, len(self._rows)))]
        if not (self._unwritten or done or rows) and self._outbox is not None:
            return True
        written = self._transact(partial(self._write_batch, done, rows, leave=leave))
        if written is None:
            return False
        mine, counted, items = written
        for task in mine:
            task.saved = True
            self.queue.put(task)
        self._unwritten, self._unwritten_bytes = [], 0
        self.counters.settle("spooled", "outbox", counted["spooled"])
        self.counters.settle("duplicate", "in_outbox", counted["duplicate"])
        for name, delivery in self.deliveries.items():
            delivery.put([item for sink, item in items if sink == name])
        for _ in done:
            self._finished.popleft()
        for _ in rows:
            self._rows.popleft()
        return True

    def _write_feedback(self) -> bool:
        """Write what people said; False on failure."""
        feedback = list(self._feedback)
        if not feedback:
            return True

        def write(outbox: Outbox) -> bool:
            for each in feedback:
                outbox.say(each)
            return True

        if not self._transact(write):
            return False
        for _ in feedback:
            self._feedback.popleft()
        return True

    def _write_batch(
        self, done: list[Task], rows: list[int], outbox: Outbox, *, leave: bool
    ) -> tuple[list[Task], Counter[str], list[tuple[str, Item]]]:
        """Return the tasks that this process takes, the numbers of the others, and what is to be delivered."""
        mine: list[Task] = []
        counted: Counter[str] = Counter()
        items: list[tuple[str, Item]] = []
        free, free_bytes = (0, 0) if leave else self._room()
        for task in self._unwritten:
            fits = free > 0 and free_bytes >= task.size
            if not outbox.add(task, mine=fits):
                counted["duplicate"] += len(task.todo)
            elif fits:
                mine.append(task)
                free, free_bytes = free - 1, free_bytes - task.size
            else:
                counted["spooled"] += len(task.todo)
        for task in done:
            if task.retries:
                outbox.put_off(_rest(task, task.attempts + 1), min(_LONGEST_WAIT, _FIRST_WAIT * 2**task.attempts))
            elif task.foreign:
                outbox.put_off(_rest(task, task.attempts), 0.0)
            else:
                outbox.remove(task.sample_id)
            items += self._keep(outbox, task)
        outbox.delivered(rows)
        return mine, counted, items

    def _keep(self, outbox: Outbox, task: Task) -> list[tuple[str, Item]]:
        sinks = list(self.deliveries)
        return [(sink, Item(row, record)) for record in task.records for sink, row in outbox.keep(record, sinks)]

    def _look(self) -> None:
        """Take up samples without an owner, and outcomes that a sink has not taken yet."""
        now, (free, free_bytes) = time.monotonic(), self._room()
        self._look_at = now + _SECONDS_BETWEEN_LOOKS
        most = max(0, min(free, _BATCH)) if free_bytes > 0 else 0
        first_too = not len(self.queue)

        def look(outbox: Outbox) -> tuple[list[tuple[Pending, bool]], dict[str, list[tuple[int, Record | Feedback]]]]:
            if now >= self._adopt_at:
                self._adopt_at = now + _SECONDS_BETWEEN_ADOPTIONS
                if outbox.adopt():
                    self._fall_behind()
            if outbox.share_feedback(list(self.deliveries)):
                self._fall_behind()
            claimed = outbox.claim(
                most,
                sorted(self._versions),
                most_bytes=free_bytes,
                first_too=first_too,
                put_off_too=self._put_off_too,
            )
            return claimed, {
                name: outbox.undelivered(name, MOST_WAITING)
                for name, delivery in self.deliveries.items()
                if delivery.behind and not delivery.waiting() and not self._rows
            }

        if (seen := self._transact(look)) is None:
            return
        claimed, undelivered = seen
        for pending, left_by_us in claimed:
            self._claimed(pending, left_by_us=left_by_us)
        for name, rows in undelivered.items():
            self.deliveries[name].behind = len(rows) == MOST_WAITING
            self.deliveries[name].put([Item(row, record) for row, record in rows])
        if claimed or undelivered:
            self._look_at = -1.0  # there may be more
        elif most > 0 and not any(delivery.behind for delivery in self.deliveries.values()):
            self._empty_polls += 1

    def _claimed(self, pending: Pending, *, left_by_us: bool) -> None:
        """Queue what this monitor has a metric for, of another version if need be; leave the rest to others."""
        todo = [
            choice if choice[:2] in self._settings.metrics else choice._replace(version=self._versions[choice.metric])
            for choice in pending.todo
            if choice.metric in self._versions
        ]
        foreign = [choice for choice in pending.todo if choice.metric not in self._versions]
        if left_by_us:
            self.counters.settle("spooled", "outbox", -len(todo))
        else:
            self.counters.accept(len(todo))
        sample_id, at, attempts = pending.sample_id, pending.submitted_at, pending.attempts
        task = Task(pending.sample, sample_id, at, todo, pending.origin, attempts, foreign=foreign, saved=True)
        self.queue.put(task)

    # --- without the file, and at the end ---------------------------------------------------------------------

    def _go_on_without(self) -> None:
        """Judge and deliver from memory what cannot be written down. The next start may do some of it again."""
        tasks, self._unwritten, self._unwritten_bytes = [*self._unwritten, *self._arrivals.drain()], [], 0
        for task in tasks:
            free, free_bytes = self._room()
            if free > 0 and free_bytes >= task.size:
                self.queue.put(task)
            else:
                self.counters.settle("dropped", "outbox_failed", len(task.todo))
        self.deliver([self._feedback.popleft() for _ in range(len(self._feedback))])
        for _ in range(len(self._finished)):
            task = self._finished.popleft()
            self.deliver(task.records)
            task.records = []
            if task.saved and len(self._finished) < MOST_WAITING:
                self._finished.append(task)  # its row goes when the file can be written again

    def put_away(self, left: list[Task]) -> None:
        """Write what waits, and leave the tasks to whoever comes next.

        It waits some seconds for a turn under way, which may queue further tasks; after them, nothing is written.
        """
        self._gone = True
        written = False
        if self._turn_lock.acquire(timeout=_SECONDS_FOR_LAST_TURN):
            try:
                left = [*left, *self.queue.drain()]
                self._use_at = -1.0
                written = self._write_the_rest(left)
                left, self._unwritten = [*left, *self._unwritten], []
            finally:
                self._turn_lock.release()
        if not written:
            super().put_away([*left, *self._arrivals.drain()])
            self.deliver([self._feedback.popleft() for _ in range(len(self._feedback))])
            while self._finished:
                self.deliver(self._finished.popleft().records)

    def let_go(self) -> None:
        """Forget what the sinks took at the very end, and let go of the file."""
        if self._turn_lock.acquire(timeout=_SECONDS_FOR_LAST_TURN):
            try:
                if rows := list(self._rows):
                    self._transact(lambda outbox: outbox.delivered(rows))
                if self._outbox is not None:
                    self._outbox.close()
                    self._outbox = None
            finally:
                self._turn_lock.release()

    def _write_the_rest(self, left: list[Task]) -> bool:
        """Write all that waits and is left; False when it could not be written."""
        while len(self._arrivals) or self._unwritten or self._finished or self._rows or self._feedback:
            if not self._write(leave=True):
                return False

        def put_off(outbox: Outbox) -> int:
            for task in left:
                outbox.put_off(_rest(task, task.attempts), 0.0)
                self._keep(outbox, task)
            return sum(len(task.todo) for task in left)

        spooled = self._transact(put_off)
        if spooled is None:
            return False
        self.counters.settle("spooled", "outbox", spooled)
        for task in left:
            self.settle(task)
        return True


def _rest(task: Task, attempts: int) -> Pending:
    """Return what of a task has no outcome, as the outbox keeps it."""
    todo = [*task.retries, *task.todo, *task.foreign]
    return Pending(task.sample, task.sample_id, task.submitted_at, todo, task.origin, attempts)
