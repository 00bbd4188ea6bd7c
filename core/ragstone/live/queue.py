"""The one queue between the parts of a monitor: samples that wait to be scored, in this process's memory."""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import ClassVar

from ragstone.live.counters import Counters
from ragstone.live.delivery import Delivery
from ragstone.live.pending import Pending
from ragstone.live.settings import Queue
from ragstone.results.traffic import Feedback


class MemoryQueue:
    """Samples that wait to be scored, first in, first out, and their outcomes on the way to the sinks.

    Any thread and any signal handler may use it. Its samples are lost when the process ends.

    Args:
        options: How much may wait.
        counters: Where the fate of each evaluation is counted.
        delivery: Where outcomes go.

    Attributes:
        keeps: Whether it outlives the process, so that an earlier one may have left something in it.
        most_attempts: How often a sample is tried whose judge fails.
        ended: Set when nothing more is judged.
        samples: How many wait in memory.
        bytes: The memory that they take.
        longest: The most that ever waited at once.
        in_file: Evaluations that wait in a file, and that no process works on.
    """

    keeps: ClassVar[bool] = False
    most_attempts: ClassVar[int] = 1

    def __init__(self, options: Queue, counters: Counters, delivery: Delivery) -> None:
        self.ended = threading.Event()
        self.samples = self.bytes = self.longest = self.in_file = 0
        self._options = options
        self._counters = counters
        self._delivery = delivery
        self._ready: SimpleQueue[Pending | None] = SimpleQueue()
        # Two of its kind would wait for ever where a signal handler wakes the thread that it interrupts.
        self._bell: SimpleQueue[None] = SimpleQueue()
        # Re-entrant: a signal handler may submit while we count.
        self._lock = threading.RLock()

    def put(self, task: Pending) -> None:
        """Add a new sample. Returns at once."""
        with self._lock:
            if self.ended.is_set():
                # It was on its way when the monitor was closed.
                self._counters.cut_off(len(task.todo))
                return
            self._count(task)
            self._add(task)

    def take(self, *, block: bool = True) -> Pending | None:
        """Take out the sample that waited longest; None ends the thread that takes it."""
        task = self._ready.get(block)
        if task is not None:
            self._count(task, -1)
        return task

    def done(self, task: Pending) -> None:
        """Bring a sample's outcomes to the sinks. What is left of it is added again, unless it is too late."""
        self._delivery.put(task.records)
        task.records = []
        self._settle(task)
        if task.todo:
            self.put(task)

    def fits(self, task: Pending) -> bool:
        """Whether one more sample may wait."""
        return self.samples < self._options.size and self.bytes + task.size <= self._options.bytes

    def drop(self) -> bool:
        """Drop the sample that waited longest; False where none can be taken out."""
        with suppress(Empty):
            if (task := self.take(block=False)) is not None:
                self._counters.settle("dropped", "queue_full", len(task.todo))
                task.todo.clear()
                self.done(task)
                return True
            self._ready.put(None)
        return False

    def add_feedback(self, feedback: Feedback) -> None:
        """Bring what a person said to the sinks."""
        self._delivery.put([feedback])

    def delivered(self, rows: Sequence[int]) -> None:
        """Remove outcomes that a sink has taken, by their rows in the store."""

    def ask(self, *, put_off: bool) -> None:
        """Ask for what earlier processes left, also, by `put_off`, for what they put off until a time to come."""

    def has_more(self) -> bool:
        """Whether what was asked for may still come."""
        return False

    def busy(self) -> bool:
        """Whether something is on its way into the store that can be stored now."""
        return False

    def maintain(self) -> None:
        """Store what waits to be stored. Called again and again on one thread."""

    def wait(self, seconds: float) -> None:
        """Wait until there may be something to store, or the queue has ended."""
        with suppress(Empty):
            self._bell.get(timeout=seconds)

    def end(self, left: Iterable[Pending]) -> None:
        """Have nothing more taken out, and keep what waits and what was left."""
        with self._lock:
            self.ended.set()
        for task in [*left, *self._drain()]:
            self.done(task)
        self._wake()

    def close(self) -> None:
        """Close the store; the sinks are closed."""

    def _add(self, task: Pending) -> None:
        self._ready.put(task)

    def _wake(self) -> None:
        if self._bell.empty():
            self._bell.put(None)

    def _count(self, task: Pending, sign: int = 1) -> None:
        with self._lock:
            self.samples += sign
            self.bytes += sign * task.size
            self.longest = max(self.longest, self.samples)

    def _drain(self) -> Sequence[Pending]:
        """Take out all, and end the threads that would take them."""
        tasks: list[Pending | None] = []
        with suppress(Empty):
            while True:
                tasks.append(self.take(block=False))
        for _ in range(self._options.workers):
            self._ready.put(None)
        return [task for task in tasks if task is not None]

    def _settle(self, task: Pending) -> None:
        while task.settled:
            self._counters.settle(*task.settled.pop())
