"""The queue whose store is the outbox's file: what is in it outlives the process."""

import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from ragstone.live.counters import Counters, Fate
from ragstone.live.delivery import Delivery, Outgoing
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Pending
from ragstone.live.queue import MemoryQueue
from ragstone.live.settings import Settings
from ragstone.results.traffic import Feedback

_BATCH = 500
_SECONDS_FOR_LAST_BATCH = 5.0

Step = Generator[None, None, None]
"""A change of the file: it runs to its `yield` inside the transaction, and on once that is on disk."""


class FileQueue(MemoryQueue):
    """Keeps samples in the outbox, and those that this process is to judge in memory, too.

    A new sample is written before it is judged, and its outcomes before they are delivered; one thread writes, many
    changes in a transaction. While the file cannot be used, all of that waits.

    Args:
        settings: The monitor's.
        counters: Where the fate of each evaluation is counted.
        delivery: Where outcomes go.
        path: The outbox.
    """

    keeps: ClassVar[bool] = True
    most_attempts: ClassVar[int] = 11

    def __init__(self, settings: Settings, counters: Counters, delivery: Delivery, path: Path) -> None:
        super().__init__(settings.queue, counters, delivery)
        self._settings = settings
        self._waits = settings.waits
        self._path = path
        self._judges = settings.queue.workers > 0
        # By name, the version that this process has.
        self._versions = dict(iter(settings.metrics))
        self._new: deque[Pending] = deque()
        self._judged: deque[Pending] = deque()
        self._feedback: deque[Feedback] = deque()
        self._delivered: deque[int] = deque()
        self._unwritten: tuple[deque[Any], ...] = (self._new, self._judged, self._feedback, self._delivered)
        self._writing = threading.Lock()
        self._outbox: Outbox | None = None
        self._use_at = self._look_at = self._adopt_at = -1.0
        # How often the file was asked for more, and up to which time it was looked into.
        self._asked = self._looked = 0
        self._put_off_too = self._found = False

    def done(self, task: Pending) -> None:
        """Write down a sample's outcomes, for the sinks, and what is left of it."""
        self._judged.append(task)
        self._wake()

    def drop(self) -> bool:
        """Drop the sample that waited longest, also one that is not written yet."""
        with self._lock:
            if super().drop():
                return True
            if self._new:
                task = self._new.popleft()
                self._not_added(task, "dropped", "queue_full")
                task.todo.clear()
                return True
        return False

    def add_feedback(self, feedback: Feedback) -> None:
        """Write down what a person said, for the sinks; RuntimeError where too much waits to be written."""
        if len(self._feedback) >= self._waits.outcomes:
            raise RuntimeError("feedback: too much waits for the outbox, which cannot be written")
        self._feedback.append(feedback)
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
        """Whether the look that was asked for is still to come, or something may still come from the file."""
        return self._judges and (self._looked < self._asked or self._found)

    def busy(self) -> bool:
        """Whether something waits to be written, and can be."""
        return any(self._unwritten) and time.monotonic() >= self._use_at

    def maintain(self) -> None:
        """Write a batch, and look into the file once in a while."""
        with self._held() as mine:
            if mine:
                self._write()

    def end(self, left: Iterable[Pending]) -> None:
        """Write down all that waits."""
        with self._held() as mine:
            # A batch that was being written may have made further samples ready.
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
            for task in self._judged:
                # Its row is as it was: the next start does it again.
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
            for name, sink in self._delivery.sinks.items():
                sink.in_outbox = in_outbox.get(name, 0)
            self.in_file = self._evaluations(outbox, mine=True)

    def _evaluations(self, outbox: Outbox, *, mine: bool) -> int:
        return sum(n for (name, _), n in outbox.waiting(mine=mine).items() if name in self._versions)

    def _add(self, task: Pending) -> None:
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
        usable = now >= self._use_at
        looks = self._judges and not self.ended.is_set() and (now >= self._look_at or self._looked < asked)
        if usable and (looks or any(self._unwritten)):
            try:
                self._write_batch(looks=looks)
            except Exception as error:
                usable = self._found = False
                self._use_at = time.monotonic() + self._waits.outbox
                self._counters.failed("outbox", error)
        if looks or not usable:
            self._looked = asked
        return usable

    def _write_batch(self, *, looks: bool) -> None:
        outbox = self._opened()
        # Before a batch is taken: what these took is in it, and is not handed to them again.
        behind = [name for name, sink in self._delivery.sinks.items() if sink.behind and not sink.waiting()]
        with self._lock:
            batches = [[each[i] for i in range(min(len(each), _BATCH))] for each in self._unwritten]
        new, judged, feedback, rows = batches
        steps = [self._write_new(task, outbox) for task in new] + [self._write_judged(task, outbox) for task in judged]
        if looks:
            steps.append(self._look(outbox, behind if len(self._delivered) == len(rows) else []))
        with outbox.transaction():
            for each in feedback:
                outbox.add_feedback(each)
            outbox.delivered(rows)
            for step in steps:
                next(step)
        for step in steps:
            next(step, None)
        for written, batch in zip(self._unwritten[1:], batches[1:], strict=True):
            for _ in batch:
                written.popleft()

    def _opened(self) -> Outbox:
        if self._outbox is None:
            self._outbox = Outbox(self._path, self._waits.locked)
            # What an earlier process could not deliver.
            self._fall_behind()
        return self._outbox

    def _fall_behind(self) -> None:
        for sink in self._delivery.sinks.values() if self._judges else ():
            sink.behind = True

    def _write_new(self, task: Pending, outbox: Outbox) -> Step:
        """Write down a new sample, as this process's or, where it does not judge, as anybody's."""
        mine = self._judges and not self.ended.is_set()
        fate: Fate = "spooled"
        reason = "outbox"
        try:
            if not outbox.add(task, mine=mine):
                gone = outbox.is_forgotten(task)
                fate, reason = ("dropped", "forgotten") if gone else ("duplicate", "in_outbox")
        except sqlite3.DataError:
            # Larger than SQLite keeps.
            fate, reason = "dropped", "too_large"
        yield
        with self._lock:
            if not task.todo:
                # It was dropped meanwhile.
                self.done(task)
                return
            self._new.popleft()
        if mine and fate == "spooled":
            self._ready.put(task)
        else:
            self._not_added(task, fate, reason)

    def _not_added(self, task: Pending, fate: Fate, reason: str) -> None:
        self._count(task, -1)
        self._counters.settle(fate, reason, len(task.todo))

    def _write_judged(self, task: Pending, outbox: Outbox) -> Step:
        """Write down the outcomes of a sample, and what of it is still to be done."""
        if task.left:
            first, longest = self._waits.judge
            outbox.put_off(task, min(longest, first * 2**task.attempts) if task.retries else 0.0)
        else:
            outbox.remove(task.sample_id)
        kept = [(record, outbox.keep(record, list(self._delivery.sinks))) for record in task.records]
        yield
        for record, rows in kept:
            for name, sink in self._delivery.sinks.items():
                if name in rows:
                    sink.put([Outgoing(rows[name], record)])
                else:
                    sink.left_out()
        self._settle(task)
        self._counters.settle("spooled", "outbox", len(task.todo))
        self.in_file += len(task.retries) + len(task.todo)
        if task.todo:
            self._look_at = -1.0

    def _look(self, outbox: Outbox, behind: Sequence[str]) -> Step:
        """Claim samples without an owner, and outcomes that a sink has not taken yet."""
        now, options, sinks = time.monotonic(), self._options, self._delivery.sinks
        asked = self._looked < self._asked
        put_off, self._put_off_too = self._put_off_too, False
        self._look_at = now + self._waits.looks
        if now >= self._adopt_at or asked:
            self._adopt_at = now + self._waits.adoptions
            if outbox.adopt():
                self._fall_behind()
        if outbox.share_feedback(list(sinks)):
            self._fall_behind()
        # While samples wait in memory, a look may have to leave some in the file.
        waiting = self.samples > 0
        most, most_bytes = options.size - self.samples, options.bytes - self.bytes
        claimed = outbox.claim(
            max(0, min(most, _BATCH)) if most_bytes > 0 else 0,
            sorted(self._versions),
            longest=self._waits.judge[1],
            most_bytes=most_bytes,
            first_too=not self._ready.qsize(),
            put_off_too=put_off,
        )
        undelivered = {name: outbox.undelivered(name, self._waits.outcomes) for name in behind}
        # Other processes may have claimed some since the last count.
        in_file = self._evaluations(outbox, mine=False) if asked or self._found else None
        in_outbox = outbox.records() if any(sink.behind for sink in sinks.values()) else {}
        yield
        for task, left_by_us in claimed:
            self._add_claimed(task, left_by_us=left_by_us)
        if in_file is not None:
            self.in_file = in_file
        for name, records in undelivered.items():
            sinks[name].catch_up([Outgoing(row, record) for row, record in records])
        for name, sink in sinks.items():
            sink.in_outbox = in_outbox.get(name, 0) if sink.behind else 0
        self._found = waiting or bool(claimed) or any(sink.behind for sink in sinks.values())
        if claimed or any(undelivered.values()):
            self._look_at = -1.0

    def _add_claimed(self, task: Pending, *, left_by_us: bool) -> None:
        """Queue what this monitor has a metric for, of another version if need be; leave the rest to others."""
        todo, task.todo = task.todo, []
        for choice in todo:
            if choice.metric not in self._versions:
                task.foreign.append(choice)
            elif choice[:2] in self._settings.metrics:
                task.todo.append(choice)
            else:
                task.todo.append(choice._replace(version=self._versions[choice.metric]))
        self.in_file = max(0, self.in_file - len(task.todo))
        if left_by_us:
            self._counters.settle("spooled", "outbox", -len(task.todo))
        else:
            self._counters.accept(len(task.todo))
        self._count(task)
        self._ready.put(task)
