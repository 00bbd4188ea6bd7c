"""A sample on its way through the monitor, the queue in which it waits, and what the parts of the way share."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from queue import Empty, SimpleQueue
from sys import getsizeof
from typing import TYPE_CHECKING, cast

from ragstone.monitor.counters import Counters, Status
from ragstone.monitor.settings import Settings
from ragstone.store.pending import Choice, Pending
from ragstone.store.record import Record

if TYPE_CHECKING:
    from ragstone.limits.budget import Account

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
    """Tasks that wait, first in, first out, and their bytes. Any thread and any signal handler may use it."""

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

    def get(self, *, block: bool = True) -> Task | None:
        """Take out the oldest; raise `queue.Empty` when there is none and it is not to be waited for."""
        return self._count(self._tasks.get(block), -1)

    def drain(self, most: int | None = None) -> list[Task]:
        """Take out the oldest, those that wait now, and at most so many."""
        tasks: list[Task] = []
        with suppress(Empty):
            for _ in range(len(self) if most is None else min(most, len(self))):
                tasks += filter(None, [self.get(block=False)])
        return tasks

    def _count(self, task: Task | None, sign: int) -> Task | None:
        if task is not None:
            with self._lock:
                self.bytes += sign * task.size
        return task


class DedupCache:
    """The ids of the last samples: at least `most / 2` of them, at most `most`. Any thread may use it.

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
        if len(name) > _LONG_ID:  # ids of a megabyte must not pile up
            key = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._older or key in self._newer:
                return True
            self._newer.add(key)
            if len(self._newer) >= self._half:
                self._older, self._newer = self._newer, set()
            return False


class Shared:
    """What the parts of one process's pipeline share.

    Attributes:
        settings: The monitor's.
        counters: What became of the samples.
        queue: Where tasks wait for the threads that judge.
        account: The budget's, once the threads run.
        closed: Whether no more samples are taken.
        ended: Set when all that was left was put away.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.counters = Counters()
        self.queue = TaskQueue()
        self.account: Account | None = None
        self.closed = False
        self.ended = threading.Event()

    def room(self) -> tuple[int, int]:
        """Return how many more tasks, and bytes, may wait in memory."""
        return self.settings.max_queue - len(self.queue), self.settings.max_queue_bytes - self.queue.bytes
