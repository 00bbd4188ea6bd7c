"""The open runs of an app: which call belongs to which sample, and what was collected in it."""

import itertools
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

MOST_OPEN = 2_000  # roots that are open at once; beyond, the one that was silent longest is given up
TTL = 3600.0  # seconds without any event after which a root is given up
MOST_COLLECTED = 1_000  # items that a sample keeps of each source; the oldest go first
_PRECISION = 0.1  # seconds within which the events of a root count as one
_REMEMBERED = 8_192  # ended runs that are still known: what they start late is no new root

S = TypeVar("S", bound="OpenSample")
Item = tuple["Run[Any]", Sequence[Any]]
"""A run with the values that it has yielded."""


@dataclass(slots=True, eq=False)
class OpenSample:
    """What is known so far of the sample that a root will be; an integration adds its own fields.

    Attributes:
        question: The question, where it is known when the run begins.
        metadata: The run's metadata.
        collected: What was collected beneath the root: by source, runs with their values, as they came.
        unfinished: Whether runs beneath the root were still open when it ended.
    """

    question: str | None = None
    metadata: dict[str, object] = field(default_factory=dict[str, object])
    collected: "dict[str, list[Item]]" = field(default_factory=dict[str, "list[Item]"])
    unfinished: bool = False

    def items(self, source: str, within: "Run[Any] | None" = None) -> "list[Item]":
        """Return what was collected under a source, inside of a run or anywhere."""
        items = list(self.collected.get(source, ()))
        return items if within is None else [item for item in items if item[0].is_inside(within)]

    def leave_out_failed(self) -> None:
        """Drop what was collected in runs that failed: where the app survived that, its answer rests on others."""
        for source, items in self.collected.items():
            self.collected[source] = [item for item in items if not item[0].in_vain]


@dataclass(slots=True, eq=False)
class Root(Generic[S]):
    """A tree of runs.

    Attributes:
        key: The key of its topmost run.
        sample: The sample in the making; None where it is none, or no longer.
        transparent: Whether runs beneath it may be samples of their own.
        open: The keys of its open runs.
        over: Whether it has ended or was given up.
        touched: When its last event came, by the monotonic clock.
    """

    key: Hashable
    sample: S | None
    transparent: bool
    open: set[Hashable] = field(default_factory=set[Hashable])
    over: bool = False
    touched: float = 0.0


@dataclass(slots=True, eq=False)
class Run(Generic[S]):
    """One call: its tree, the run that started it (None for the topmost one), its kind, its number, whether it failed.

    The kind is in the integration's words, and the integration sets `failed`.
    """

    root: Root[S]
    parent: "Run[S] | None"
    kind: str
    order: int
    failed: bool = False

    def lineage(self) -> Iterator["Run[S]"]:
        """Yield the run itself, then what it is inside of, from the inside out."""
        run: Run[S] | None = self
        while run is not None:
            yield run
            run = run.parent

    @property
    def in_vain(self) -> bool:
        """Whether it, or a run that it is inside of, has failed."""
        return any(run.failed for run in self.lineage())

    def is_inside(self, other: "Run[S]") -> bool:
        """Say whether another run has started it, directly or not."""
        return self is not other and any(run is other for run in self.lineage())


_TREES: "weakref.WeakSet[RunTree[Any]]" = weakref.WeakSet()


def _forget_all() -> None:
    """Start afresh in a forked child: a thread that is not in it may hold a lock."""
    for tree in _TREES:
        tree.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class RunTree(Generic[S]):
    """The open runs of one process by key, shared by all threads and tasks. A forked child starts with none.

    Example:
        >>> tree = RunTree[OpenSample]()
        >>> tree.start("app", sample=OpenSample("Who wrote Emma?"))
        []
        >>> tree.start("search", tree.get("app"), kind="retriever")
        []
        >>> search, _ = tree.end("search")
        >>> tree.collect(search, "retrieved", ["Emma is a novel by Jane Austen."])
        1
        >>> _, sample = tree.end("app")
        >>> sample.question, [texts for _, texts in sample.items("retrieved")]
        ('Who wrote Emma?', [['Emma is a novel by Jane Austen.']])
    """

    def __init__(self) -> None:
        self.forget()
        _TREES.add(self)

    def forget(self) -> None:
        """Start afresh, with no run open."""
        # Re-entrant: the garbage collector may close an abandoned stream, and so end runs, anywhere.
        self._lock = threading.RLock()
        self._open: dict[Hashable, Run[S]] = {}
        self._roots: OrderedDict[Hashable, Root[S]] = OrderedDict()  # the one that was silent longest comes first
        self._ended: dict[Hashable, Run[S]] = {}
        self._ended_before: dict[Hashable, Run[S]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, key: Hashable, *, ended: bool = False) -> Run[S] | None:
        """Return a run that is open or, with `ended`, one that has ended lately."""
        run = self._open.get(key)
        return run if run or not ended else self._ended.get(key) or self._ended_before.get(key)

    def start(
        self,
        key: Hashable,
        parent: Run[S] | None = None,
        *,
        kind: str = "",
        sample: S | None = None,
        transparent: bool = False,
    ) -> list[S]:
        """Open a run: beneath its parent, or as a root of a sample or of none. Nothing happens where it is open.

        Returns:
            The samples of roots that were given up to make room.
        """
        with self._lock:
            if key in self._open:
                return []
            now = time.monotonic()
            given_up: list[S] = []
            if parent is None:
                given_up = self._make_room(now - TTL)
                root = self._roots[key] = Root(key, sample, transparent)
            else:
                root = parent.root
            if not root.over:
                if now - root.touched > _PRECISION:
                    self._touch(root, now)
                self._open[key] = Run(root, parent, kind, next(self._numbers))
                root.open.add(key)
            return given_up

    def end(self, key: Hashable) -> tuple[Run[S] | None, S | None]:
        """Close a run; with a root all beneath it.

        Returns:
            The run, and its sample if it was the root of one. Both are None if it is not open: it has ended already,
            was given up, or began before anybody listened.
        """
        with self._lock:
            run = self._close(key)
            if run is None:
                return None, None
            root, sample = run.root, None
            if root.key == key:
                sample = root.sample
                if sample is not None:
                    sample.unfinished = bool(root.open)
                self._drop(root)
            elif (now := time.monotonic()) - root.touched > _PRECISION:
                self._touch(root, now)
            return run, sample

    def collect(self, run: Run[S], source: str, values: Sequence[object]) -> int:
        """Add what a run has yielded to its sample, also after the run's end; return how many items it has of a source.

        Nothing is added to a sample that is complete. Of each source the last `MOST_COLLECTED` items are kept, and the
        number returned is then higher by one.
        """
        with self._lock:
            if run.root.sample is None:
                return 0
            items = run.root.sample.collected.setdefault(source, [])
            items.append((run, values))
            count = len(items)
            del items[: count - MOST_COLLECTED if count > MOST_COLLECTED else 0]
            return count

    def discard(self, within: Run[S], *sources: str) -> None:
        """Drop what was collected inside of a run, which has chosen from it or replaced it."""
        with self._lock:
            collected = {} if within.root.sample is None else within.root.sample.collected
            for source in sources:
                collected[source] = [item for item in collected.get(source, ()) if not item[0].is_inside(within)]

    def _touch(self, root: Root[S], now: float) -> None:
        root.touched = now
        self._roots.move_to_end(root.key)

    def _make_room(self, oldest_allowed: float) -> list[S]:
        given_up: list[S] = []
        while self._roots:
            root = next(iter(self._roots.values()))
            if len(self._roots) < MOST_OPEN and root.touched >= oldest_allowed:
                break
            if root.sample is not None:
                given_up.append(root.sample)
            self._drop(root)
        return given_up

    def _drop(self, root: Root[S]) -> None:
        """Forget a root; what is open below it may still end or start runs, which then count for nothing."""
        root.sample = None
        root.over = True
        self._roots.pop(root.key, None)
        while root.open:
            self._close(root.open.pop())

    def _close(self, key: Hashable) -> Run[S] | None:
        run = self._open.pop(key, None)
        if run is not None:
            run.root.open.discard(key)
            if len(self._ended) >= _REMEMBERED:
                self._ended_before, self._ended = self._ended, {}
            self._ended[key] = run
        return run
