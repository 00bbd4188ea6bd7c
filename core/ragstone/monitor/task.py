"""A sample on its way through the monitor, and the queues in which it waits."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from queue import Empty, SimpleQueue
from sys import getsizeof
from typing import cast

from ragstone.monitor.counters import Status
from ragstone.store.pending import Choice, Pending
from ragstone.store.record import Record

_LONG_ID = 64


@dataclass(slots=True)
class Task(Pending):
    """A sample, the metrics that are still to score it, and what came of the others.

    Attributes:
        records: The outcomes so far.
        retries: The metrics whose judge failed, to be tried again later (with an outbox), and what the sinks get of
            each if it cannot be tried again.
        settled: What the evaluations are to be counted as once the task is handed on, with the reason.
        foreign: The metrics that another monitor is to score it by.
        saved: Whether the outbox has it.
        size: The bytes that the sample's texts and metadata take in memory.
    """

    records: list[Record] = field(default_factory=list[Record])
    retries: list[tuple[Choice, Record]] = field(default_factory=list[tuple[Choice, Record]])
    settled: list[tuple[Status, str]] = field(default_factory=list[tuple[Status, str]])
    foreign: list[Choice] = field(default_factory=list[Choice])
    saved: bool = False
    size: int = field(init=False)

    def __post_init__(self) -> None:
        sample = self.sample
        texts = sample.user_input, sample.response, *sample.retrieved_contexts
        self.size = sum(map(getsizeof, texts)) + _size(sample.metadata)

    @classmethod
    def of(cls, pending: Pending) -> "Task":
        """Return the task of a sample that the outbox has."""
        return cls(
            pending.sample,
            pending.sample_id,
            pending.submitted_at,
            pending.todo,
            pending.origin,
            pending.attempts,
            saved=True,
        )

    @property
    def open(self) -> int:
        """How many of the monitor's evaluations have no outcome."""
        return len(self.todo) + len(self.retries)

    def left(self, attempts: int) -> Pending:
        """Return what has no outcome, as the outbox keeps it."""
        todo = [*(choice for choice, _ in self.retries), *self.todo, *self.foreign]
        return Pending(self.sample, self.sample_id, self.submitted_at, todo, self.origin, attempts)


def _size(value: object) -> int:
    """Return the bytes that a plain value takes, but for the containers themselves."""
    if isinstance(value, Mapping):
        return sum(getsizeof(key) + _size(item) for key, item in cast("Mapping[str, object]", value).items())
    if isinstance(value, (list, tuple)):
        return sum(map(_size, cast("list[object]", value)))
    return getsizeof(value)


class TaskQueue:
    """Tasks that wait, first in, first out. Safe to use from any thread and from a signal handler.

    Attributes:
        bytes: The sum of the tasks' sizes.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.RLock()  # re-entrant: a signal handler may submit while we count
        self.bytes = 0

    def __len__(self) -> int:
        return self._tasks.qsize()

    def put(self, task: Task | None) -> None:
        """Add a task; None ends the thread that takes it."""
        self._count(task, 1)
        self._tasks.put(task)

    def get(self) -> Task | None:
        """Take out the oldest, when there is one."""
        return self._count(self._tasks.get(), -1)

    def get_nowait(self) -> Task | None:
        """Take out the oldest.

        Raises:
            queue.Empty: There is none.
        """
        return self._count(self._tasks.get_nowait(), -1)

    def drain(self, most: int | None = None) -> list[Task]:
        """Take out the oldest, those that wait now, and at most so many."""
        tasks: list[Task] = []
        with suppress(Empty):
            for _ in range(len(self) if most is None else min(most, len(self))):
                tasks += filter(None, [self.get_nowait()])
        return tasks

    def _count(self, task: Task | None, sign: int) -> Task | None:
        if task is not None:
            with self._lock:
                self.bytes += sign * task.size
        return task


class DedupCache:
    """The ids of the last samples: at least `most / 2` of them, at most `most`. Safe to use from many threads.

    Long ids are remembered by their hash, so that ids of a megabyte do not pile up.

    Example:
        >>> cache = DedupCache(10)
        >>> cache.has("a"), cache.has("a")
        (False, True)
    """

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._lock = threading.RLock()  # re-entrant: a signal handler may ask while we look
        self._older: set[str | bytes] = set()
        self._newer: set[str | bytes] = set()

    def has(self, name: str) -> bool:
        """Return whether an id was here lately, and remember it."""
        key: str | bytes = name
        if len(name) > _LONG_ID:
            key = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._older or key in self._newer:
                return True
            self._newer.add(key)
            if len(self._newer) >= self._half:
                self._older, self._newer = self._newer, set()
            return False
