"""The runs under way: which span belongs to which root, and nothing kept for long of those that never end."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from llama_index.core.schema import MetadataMode, NodeWithScore

from ragstone_llama_index.responses import texts_of

MOST_OPEN = 10_000  # runs at once; the oldest are given up for more
LONGEST = 3600.0  # seconds that a run may take


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a run when it begins."""

    id: str
    question: str | None
    metadata: Mapping[str, object]


@dataclass(slots=True, eq=False)
class Run:
    """All that happens beneath one root; `asked` is None where nobody wants to know of it."""

    id: str
    asked: Asked | None
    open: set[str] = field(default_factory=set[str])
    error: BaseException | None = None
    over: bool = False


@dataclass(slots=True, eq=False)
class Span:
    """One call under way, and the contexts that were found in it so far.

    Attributes:
        seen: The nodes that a response synthesizer was given. Their texts are taken when they are asked for: most
            answers name these very nodes.
        retrieved: The texts that were retrieved since, by retrievers or by inner engines; which of them a synthesizer
            still to come will be given is yet to be seen.
    """

    run: Run
    parent: "Span | None"
    seen: list[NodeWithScore] = field(default_factory=list[NodeWithScore])
    retrieved: list[str] = field(default_factory=list[str])

    def found(self, mode: MetadataMode) -> list[str]:
        """Return all of them; those of nodes that were seen with the metadata of a mode."""
        return [*texts_of(self.seen, mode), *self.retrieved]

    def pass_on(self) -> None:
        """Let the parent have what was found."""
        if self.parent is not None and (self.seen or self.retrieved):  # most calls find nothing
            self.parent.seen += self.seen
            self.parent.retrieved += self.retrieved

    def retrieve(self, contexts: Iterable[str]) -> None:
        """Let the parent have what this call retrieved, in place of what was retrieved within it."""
        if self.parent is not None:
            self.parent.retrieved += contexts

    def synthesize(self, nodes: Iterable[NodeWithScore]) -> None:
        """Let the parent have what this call was given; it was chosen from what was retrieved before."""
        if self.parent is not None:
            self.parent.retrieved.clear()
            self.parent.seen += nodes


_T = TypeVar("_T")


class Aging(Generic[_T]):
    """Things by key, in the order they came, of which the oldest go when there are too many or they are too old.

    Example:
        >>> aging = Aging[str](most=2)
        >>> [aging.add(number, f"thing {number}") for number in range(3)]
        [[], [], ['thing 0']]
        >>> aging.pop(2), aging.pop(0)
        ('thing 2', None)
    """

    def __init__(self, most: int = MOST_OPEN, seconds: float = LONGEST) -> None:
        self._most = most
        self._seconds = seconds
        self._kept: dict[object, tuple[float, _T]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, key: object, thing: _T) -> list[_T]:
        """Add one, and return those that go for it."""
        now = time.monotonic()
        self._kept[key] = (now, thing)
        gone: list[_T] = []
        while self._kept:
            oldest = next(iter(self._kept))
            begun, old = self._kept[oldest]
            if len(self._kept) <= self._most and now - begun <= self._seconds:
                break
            del self._kept[oldest]
            gone.append(old)
        return gone

    def pop(self, key: object) -> _T | None:
        """Take one out; None: it is not there."""
        kept = self._kept.pop(key, None)
        return None if kept is None else kept[1]


class OpenRuns:
    """Finds the run of a span by its parent's id. Safe to use from any thread.

    Args:
        never_ended: Is told, with no lock held, of each run that is given up.
    """

    def __init__(self, never_ended: Callable[[Run], object]) -> None:
        self._never_ended = never_ended
        self.forget()

    def forget(self) -> None:
        """Begin anew, as in a process that was just forked: the runs of the parent end there."""
        self._lock = threading.RLock()  # re-entrant: a signal handler of the app may ask something, too
        self._spans: dict[str, Span] = {}
        self._runs = Aging[Run]()

    def __len__(self) -> int:
        return len(self._spans) + len(self._runs)

    def get(self, id_: str | None) -> Span | None:
        """Return an open span."""
        return None if id_ is None else self._spans.get(id_)

    def begin(self, id_: str, asked: Asked | None) -> None:
        """Open a root."""
        run = Run(id_, asked, {id_})
        with self._lock:
            if id_ in self._spans:  # told twice
                return
            self._spans[id_] = Span(run, None)
            gone = self._runs.add(id_, run)
            for old in gone:
                for one in old.open:
                    self._spans.pop(one, None)
        for old in gone:
            if old.asked is not None and not old.over:
                self._never_ended(old)

    def enter(self, id_: str, parent: Span, *, plain: bool = False) -> None:
        """Open a span beneath another. A plain one finds nothing by itself: its parent stands for it."""
        run = parent.run
        with self._lock:
            if id_ not in self._spans:
                self._spans[id_] = parent if plain else Span(run, parent)
                run.open.add(id_)

    def leave(self, id_: str) -> Span | None:
        """Close a span; None: it is not open."""
        with self._lock:
            span = self._spans.pop(id_, None)
            if span is None:
                return None
            run = span.run
            run.open.discard(id_)
            if id_ == run.id:
                run.over = True
            if not run.open:
                self._runs.pop(run.id)
            return span

    def end(self, id_: str) -> bool:
        """Close a root with all beneath it; return whether it was open."""
        with self._lock:
            span = self._spans.pop(id_, None)
            if span is None:
                return False
            for one in span.run.open:
                self._spans.pop(one, None)
            self._runs.pop(span.run.id)
            return True
