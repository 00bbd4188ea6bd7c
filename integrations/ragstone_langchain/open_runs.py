"""The runs that are open, by their id, and what was gathered below each that will be a sample."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

MAX_OPEN = 2_000
"""How many topmost runs may be open at once; beyond, the one that was silent longest is given up."""

TTL = 3600.0
"""After how many seconds without any event a topmost run is given up."""

MAX_FOUND = 1_000
"""How many searches one sample may hold; beyond, it is given up: it is the app's main loop, and no answer. Of the
steps that name contexts or pass documents on, the last so many are kept."""

_RECENT = 8_192  # ended runs that are known for a while: what they still start is no new topmost run

Kind = Literal["chain", "step", "tool", "retriever", "model"]
"""What a run is. A step is a chain that only words or parses (a prompt, a parser), and never a sample."""

Standing = Literal["sample", "undecided", "buried"]
"""What the runs below a topmost one are: parts of a sample, outside of any, or of no interest."""


@dataclass(slots=True)
class Gathered:
    """What is known of a run that will be a sample.

    Attributes:
        run_id: Its id.
        name: Its name.
        tags: Its tags.
        metadata: Its metadata.
        inputs: What it was given; None where it is streamed, until its end.
        question: The question in these inputs, read before the app could change them.
        found: The texts that each outermost retriever and each tool returned, in the order of their start.
        told: The texts that the app named itself (`ragstone.contexts`), by the run in which it did.
        passed: The texts of the documents that each step passed on, in the order of their end.
        interrupted: Whether a node has interrupted a graph.
        unfinished: Whether parts of it were still running when it ended.
    """

    run_id: UUID
    name: str
    tags: tuple[str, ...]
    metadata: dict[str, object]
    inputs: object = None
    question: str | None = None
    found: "dict[Run, Sequence[str]]" = field(default_factory=dict["Run", Sequence[str]])
    told: "dict[Run, Sequence[str]]" = field(default_factory=dict["Run", Sequence[str]])
    passed: "dict[Run, Sequence[str]]" = field(default_factory=dict["Run", Sequence[str]])
    interrupted: bool = False
    unfinished: bool = False

    @property
    def has_found(self) -> bool:
        """Whether a retriever or tool has found anything outside of chains that failed."""
        return any(texts and not run.is_in_vain for run, texts in tuple(self.found.items()))

    def leave_out_failed(self) -> None:
        """Forget the texts of chains that failed and whose failure the app survived: the answer rests on others."""
        for texts in (self.found, self.told, self.passed):
            for run in [run for run in texts if run.is_in_vain]:
                del texts[run]

    def passed_on(self) -> list[str]:
        """Return the texts that steps passed on, each once; a step that passes on some of those before has chosen."""
        known: list[str] = []
        for texts in self.passed.values():
            known = list(dict.fromkeys(texts if set(texts) <= set(known) else [*known, *texts]))
        return known


class Top:
    """A topmost run: one whose parent is unknown, or one that stands differently from its parent.

    Attributes:
        number: Its id as a number, of which Python keeps sets faster than of ids.
        standing: What the runs below it are.
        gathered: What was gathered, for a sample that is still open; None otherwise.
        open: The numbers of the open runs: itself, and those below it.
        touched: When the last event of any of them came, by the monotonic clock.
    """

    __slots__ = ("gathered", "number", "open", "standing", "touched")

    def __init__(self, run_id: UUID, standing: Standing, gathered: Gathered | None = None) -> None:
        self.number = run_id.int
        self.standing: Standing = standing
        self.gathered = gathered
        self.open: set[int] = set()
        self.touched = 0.0


class Run:
    """A run.

    Attributes:
        top: The topmost run that it belongs to.
        parent: The run that started it; None for a topmost one.
        retrieving: Whether it is a retriever, or inside of one.
        failed: Whether it is a chain that failed.
    """

    __slots__ = ("failed", "parent", "retrieving", "top")

    def __init__(self, top: Top, parent: "Run | None", retrieving: bool) -> None:
        self.top = top
        self.parent = parent
        self.retrieving = retrieving
        self.failed = False

    @property
    def is_in_vain(self) -> bool:
        """Whether it, or a run that it is inside of, has failed."""
        run: Run | None = self
        while run is not None and not run.failed:
            run = run.parent
        return run is not None

    def is_inside(self, other: "Run") -> bool:
        """Say whether another run has started it, directly or not."""
        run = self.parent
        while run is not None and run is not other:
            run = run.parent
        return run is other


class OpenRuns:
    """The open runs of one process, shared by all threads and tasks.

    Its lock may be taken again by the thread that holds it: closing an abandoned stream ends runs, and the garbage
    collector may do so anywhere. In a forked child it starts empty.
    """

    def __init__(self) -> None:
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._lock = threading.RLock()
        self._open: dict[int, Run] = {}
        self._tops: OrderedDict[int, Top] = OrderedDict()  # the one that was silent longest comes first
        self._ended: dict[int, Run] = {}
        self._ended_before: dict[int, Run] = {}
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._open)

    def look_up(self, run_id: UUID, parent_run_id: UUID | None) -> tuple[bool, Run | None]:
        """Say whether a run is open already, and return its parent if that is open or has ended lately."""
        if self._process != os.getpid():  # forked: the lock may be held by a thread that is not in this process
            self._start_afresh()
        with self._lock:
            return run_id.int in self._open, None if parent_run_id is None else self._known(parent_run_id.int)

    def get(self, run_id: UUID) -> Run | None:
        """Return a run that is open, or has ended lately."""
        if self._process != os.getpid():
            self._start_afresh()
        with self._lock:
            return self._known(run_id.int)

    def get_open(self, run_id: UUID) -> Run | None:
        """Return a run that is open."""
        if self._process != os.getpid():
            self._start_afresh()
        with self._lock:
            return self._open.get(run_id.int)

    def _known(self, number: int) -> Run | None:
        return self._open.get(number) or self._ended.get(number) or self._ended_before.get(number)

    def start(self, run_id: UUID, kind: Kind, parent: Run | None, top: Top) -> int:
        """Open a run below a topmost one, or as one; return how many samples were given up to make room."""
        number = run_id.int
        above = parent if parent is not None and parent.top is top else None
        inner = above is not None and above.retrieving
        run = Run(top, above, inner or kind == "retriever")
        given_up = 0
        with self._lock:
            top.touched = time.monotonic()
            if top.number == number:
                given_up = self._make_room(top.touched - TTL)
                self._tops[number] = top
            elif top.number in self._tops:
                self._tops.move_to_end(top.number)
            self._open[number] = run
            top.open.add(number)
            if top.gathered is not None and not inner and kind in ("retriever", "tool"):
                top.gathered.found[run] = ()
                if len(top.gathered.found) > MAX_FOUND:
                    self._drop(top)
                    given_up += 1
        return given_up

    def end(self, run_id: UUID) -> tuple[Run | None, Gathered | None]:
        """Close a run; return it, and what was gathered if with it a sample is complete.

        Of a run that is not open nothing is returned: it was given up, has ended already, or began before the handler
        was there.
        """
        if self._process != os.getpid():
            self._start_afresh()
        with self._lock:
            run = self._close(run_id.int)
            if run is None:
                return None, None
            top = run.top
            if top.number != run_id.int:
                top.touched = time.monotonic()
                if top.number in self._tops:
                    self._tops.move_to_end(top.number)
                return run, None
            gathered = top.gathered
            if gathered is not None:
                gathered.unfinished = bool(top.open)
            self._drop(top)
            return run, gathered

    def add_found(self, run: Run, texts: Sequence[str], *, instead: bool = False) -> None:
        """Add what a retriever or tool returned; instead of what was found inside of it, if it chose from that."""
        with self._lock:
            gathered = run.top.gathered
            if gathered is None or run not in gathered.found:
                return
            if instead:
                for inner in [other for other in gathered.found if other.is_inside(run)]:
                    del gathered.found[inner]
            gathered.found[run] = texts

    def has_found(self, run: Run) -> bool:
        """Say whether anything was found inside of a run."""
        with self._lock:
            gathered = run.top.gathered
            return gathered is not None and any(texts and one.is_inside(run) for one, texts in gathered.found.items())

    def add_told(self, run: Run, texts: Sequence[str]) -> None:
        """Add contexts that the app named; each counts once."""
        with self._lock:
            gathered = run.top.gathered
            if gathered is not None:
                _keep(gathered.told, run, list(dict.fromkeys([*gathered.told.get(run, ()), *texts])))

    def add_passed(self, run: Run, texts: Sequence[str]) -> None:
        """Add documents that a step passed on."""
        with self._lock:
            gathered = run.top.gathered
            if gathered is not None:
                _keep(gathered.passed, run, texts)

    def _make_room(self, oldest_allowed: float) -> int:
        given_up = 0
        while self._tops:
            top = self._tops[next(iter(self._tops))]
            if len(self._tops) < MAX_OPEN and top.touched >= oldest_allowed:
                break
            given_up += top.gathered is not None
            self._drop(top)
        return given_up

    def _drop(self, top: Top) -> None:
        """Forget a topmost run; what is open below it may still end or start runs, which then count for nothing."""
        top.gathered = None
        self._tops.pop(top.number, None)
        while top.open:
            self._close(top.open.pop())

    def _close(self, number: int) -> Run | None:
        run = self._open.pop(number, None)
        if run is not None:
            run.top.open.discard(number)
            if len(self._ended) >= _RECENT:
                self._ended_before, self._ended = self._ended, {}
            self._ended[number] = run
        return run


def _keep(texts: dict[Run, Sequence[str]], run: Run, more: Sequence[str]) -> None:
    texts[run] = more
    if len(texts) > MAX_FOUND:
        del texts[next(iter(texts))]
