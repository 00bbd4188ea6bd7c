"""Samples that wait to be scored: one queue with two stores, this process's memory and the outbox's file."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from sys import getsizeof
from typing import Any, ClassVar

from ragstone.live.counters import Counters, Status
from ragstone.live.delivery import Delivery, Item
from ragstone.live.pending import Choice, Pending
from ragstone.live.settings import Queue
from ragstone.plain import is_list, is_mapping
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback


@dataclass(slots=True)
class Task(Pending):
    """A sample, the metrics that are still to score it, and what came of the others.

    Attributes:
        records: The outcomes so far.
        retries: The metrics whose judge failed, to be tried again later.
        settled: What the evaluations are to be counted as once the queue has the task's outcomes, with the reason.
        foreign: The metrics that another monitor is to score it by.
        size: The bytes that its texts take.
    """

    records: list[Record] = field(default_factory=list[Record])
    retries: list[Choice] = field(default_factory=list[Choice])
    settled: list[tuple[Status, str]] = field(default_factory=list[tuple[Status, str]])
    foreign: list[Choice] = field(default_factory=list[Choice])
    size: int = field(init=False)

    def __post_init__(self) -> None:
        sample = self.sample
        texts = [sample.user_input, sample.response, sample.reference, *sample.retrieved_contexts]
        texts += [turn.content for turn in sample.history]
        self.size = sum(map(getsizeof, texts)) + _size(sample.metadata)


def _size(value: Any) -> int:  # noqa: ANN401 - of JSON
    """Return the bytes that a plain value takes, but for the containers themselves."""
    if is_mapping(value):
        return sum(map(getsizeof, value)) + sum(map(_size, value.values()))
    return sum(map(_size, value)) if is_list(value) else getsizeof(value)


class TaskQueue(ABC):
    """Samples that wait to be scored, first in, first out, and their outcomes on the way to the sinks.

    Any thread and any signal handler may use it.

    Args:
        options: How much may wait.
        counters: Where the fate of each evaluation is counted.
        deliveries: Where outcomes go, by the sink's name.

    Attributes:
        keeps: Whether it outlives the process, so that an earlier one may have left something in it.
        most_attempts: How often a sample is tried whose judge fails.
        ended: Set when nothing more is judged.
        in_file: Evaluations that wait in the file, and that no process has in hand.
    """

    keeps: ClassVar[bool]
    most_attempts: ClassVar[int]

    def __init__(self, options: Queue, counters: Counters, deliveries: Mapping[str, Delivery]) -> None:
        self.ended = threading.Event()
        self.in_file = 0
        self._options = options
        self._counters = counters
        self._deliveries = deliveries
        self._ready: SimpleQueue[Task | None] = SimpleQueue()
        # Re-entrant: a signal handler may submit while we count.
        self._lock = threading.RLock()
        self._tasks = self._bytes = 0

    def put(self, task: Task) -> None:
        """Add a new sample. Returns at once."""
        with self._lock:
            if self.ended.is_set():  # it was on its way when the monitor was closed
                self._counters.cut_off(len(task.todo))
                return
            self._count(task)
            self._add(task)

    def take(self) -> Task | None:
        """Wait for the oldest and take it out; None ends the thread that takes it."""
        return self._taken(block=True)

    @abstractmethod
    def done(self, task: Task) -> None:
        """Bring a task's outcomes to the sinks; nothing of it is left to do."""

    @abstractmethod
    def put_off(self, task: Task) -> None:
        """Bring a task's outcomes to the sinks, and keep what is left of it to be done later."""

    def count(self) -> tuple[int, int]:
        """Count the tasks that wait in this process, and their bytes."""
        return self._tasks, self._bytes

    def has_room(self, task: Task) -> bool:
        """Whether one more task may wait."""
        return self._tasks < self._options.size and self._bytes + task.size <= self._options.bytes

    def drop(self) -> bool:
        """Drop the task that waited longest; False where none can be taken out."""
        with suppress(Empty):
            if (task := self._taken(block=False)) is not None:
                self._counters.settle("dropped", "queue_full", len(task.todo))
                task.todo.clear()
                self.done(task)
                return True
            self._ready.put(None)
        return False

    @abstractmethod
    def say(self, feedback: Feedback) -> None:
        """Bring what a person said to the sinks."""

    def delivered(self, rows: Sequence[int]) -> None:  # noqa: B027 - in memory there is nothing to do; likewise below
        """Forget outcomes that a sink has taken, by their rows in the store."""

    def ask(self, *, put_off: bool) -> None:  # noqa: B027
        """Ask for what earlier processes left.

        Args:
            put_off: Whether to take, too, what they put off until a time that has not come.
        """

    def has_more(self) -> bool:
        """Whether there is, or may be, something that was asked for."""
        return False

    def busy(self) -> bool:
        """Whether something is on its way into the store that can be stored now."""
        return False

    def maintain(self) -> None:  # noqa: B027
        """Store what waits to be stored. Called again and again on one thread."""

    def end(self, left: Iterable[Task]) -> None:
        """Take no more tasks, and put off those that wait and those that were left."""
        with self._lock:
            self.ended.set()
        for task in [*left, *self._drain()]:
            self.put_off(task)

    def close(self) -> None:  # noqa: B027
        """Close the store; the deliveries have ended."""

    @abstractmethod
    def _add(self, task: Task) -> None:
        """Add a task that is counted."""

    def _count(self, task: Task, sign: int = 1) -> None:
        with self._lock:
            self._tasks += sign
            self._bytes += sign * task.size

    def _taken(self, *, block: bool) -> Task | None:
        task = self._ready.get(block)
        if task is not None:
            self._count(task, -1)
        return task

    def _drain(self) -> list[Task]:
        """Take out all, and end the threads that would take them."""
        tasks: list[Task | None] = []
        with suppress(Empty):
            while True:
                tasks.append(self._taken(block=False))
        for _ in range(self._options.workers):
            self._ready.put(None)
        return [task for task in tasks if task is not None]

    def _settle(self, task: Task) -> None:
        while task.settled:
            self._counters.settle(*task.settled.pop())


class MemoryQueue(TaskQueue):
    """Keeps tasks in memory: what a process leaves is lost."""

    keeps = False
    most_attempts = 1

    def done(self, task: Task) -> None:
        """Bring a task's outcomes to the sinks."""
        self._deliver(task.records)
        task.records = []
        self._settle(task)

    def put_off(self, task: Task) -> None:
        """Bring a task's outcomes to the sinks, and add what is left of it, unless it is too late."""
        self.done(task)
        self.put(task)

    def say(self, feedback: Feedback) -> None:
        """Bring what a person said to the sinks."""
        self._deliver([feedback])

    def _add(self, task: Task) -> None:
        self._ready.put(task)

    def _deliver(self, records: Sequence[Record | Feedback]) -> None:
        for delivery in self._deliveries.values():
            delivery.put([Item(None, record) for record in records])
