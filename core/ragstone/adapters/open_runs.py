"""The runs of an app that are open: recorded as its framework reports them, until their topmost one has ended."""

import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, is_dataclass
from itertools import repeat
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.runs import Run

MOST_OPEN = 10_000
"""Trees that are open at once; beyond that the one that was silent longest is given up."""
MOST_CHARACTERS = 10_000_000
MOST_IN_PROMPTS = 2_000_000
"""Characters that models of one tree are given and say: beyond that none of its calls is known."""
# Characters that a begin or an end counts as: so a tree has at most 10,000 runs.
_EVENT = 500
# An agent's prompt has all messages before it, which are texts that are there already.
_REFERENCE = 10
_SILENCE = 3_600.0
_REMEMBERED = 10_000
_NO_TEXT = (int, float, type(None))
# Levels of a value that are looked into for its texts.
_DEPTH = 6

GivenUp = Literal["never_ended", "too_large"]

ADVICE_FOR_ALL = {
    "abandoned": "the app stopped reading the stream before its end: the answer is incomplete",
    "cancelled": "the app or its user cancelled the run",
    "declined": "your fields= returned None",
    "excluded": "your where= rejected it",
    "fields_failed": "your fields= raised, or did not return a sample: see errors and the log",
    "only_retrieval": "no answer followed the retrieval: call monitor.submit(Sample(...)) where the app answers",
    "where_failed": "your where= raised: see errors and the log",
}
"""What to do about runs that gave no sample, by reason, whichever framework reports them."""


R = TypeVar("R", bound=Run)


@dataclass(slots=True, eq=False)
class _Tree(Generic[R]):
    root: R
    counted: set[int] = field(default_factory=set[int])
    size: int = 0
    touched: float = 0.0
    in_calls: int = 0
    counted_in_calls: set[int] = field(default_factory=set[int])


class OpenRuns(Generic[R]):
    """The trees of runs of one process whose topmost run is open. Threads and tasks share it; a forked child has none.

    Args:
        given_up: Called with the topmost run of a tree that will not end, and the reason: "never_ended" where 10,000
            others are open or no event came for an hour, "too_large" at 10,000 runs or 10,000,000 characters of text.
            Each run counts as 1,000 characters.

    Example:
        >>> runs = OpenRuns[Run](print)
        >>> runs.begin(Run("app", "chain", inputs="Who wrote Emma?"))
        True
        >>> runs.begin(Run("search", "retriever"), "app")
        True
        >>> runs.end("search", ["Emma is a novel by Jane Austen."]).parent.id
        'app'
        >>> [run.output for run in runs.end("app", "Jane Austen.").walk()]
        [['Emma is a novel by Jane Austen.']]
    """

    def __init__(self, given_up: Callable[[R, GivenUp], object]) -> None:
        self._given_up = given_up
        self.forget()
        _ALL.add(self)

    def forget(self) -> None:
        """Start afresh, with no run open."""
        # The garbage collector may close a stream, and so end runs, while this thread holds the lock.
        self._lock = threading.RLock()
        self._runs: dict[Hashable, tuple[Run, _Tree[R]]] = {}
        # The tree that was silent longest comes first.
        self._trees: OrderedDict[Hashable, _Tree[R]] = OrderedDict()
        # Hashes, because LlamaIndex' ids are long.
        self._over: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._trees)

    def get(self, run_id: Hashable) -> Run | None:
        """Return a run of a tree that is open."""
        return self._runs[run_id][0] if run_id in self._runs else None

    def top_of(self, run_id: Hashable) -> R | None:
        """Return the topmost run of the open tree that a run is in."""
        return self._runs[run_id][1].root if run_id in self._runs else None

    def with_top(self, run_id: Hashable) -> tuple[Run, R] | tuple[None, None]:
        """Return a run of a tree that is open, and the topmost one of that."""
        run, tree = self._runs.get(run_id, (None, None))
        return (None, None) if run is None or tree is None else (run, tree.root)

    def begin(self, run: Run, parent_id: Hashable = None) -> bool:
        """Open a run below another one, or as the topmost of its tree where nothing is known of that one.

        It is False, and nothing is opened, where the run is there already, or begins below what has ended or was
        given up.
        """
        with self._lock:
            above = self._runs.get(parent_id)
            over = hash(parent_id) in self._over and parent_id not in self._runs
            # What goes on for long stays known.
            if over:
                self._remember(parent_id)
            if over or run.id in self._runs:
                self._remember(run.id)
                return False
            if above is None:
                longest = next(iter(self._trees.values()), None)
                full = len(self._trees) >= MOST_OPEN
                if longest is not None and (full or longest.touched < time.monotonic() - _SILENCE):
                    self._close(longest, "never_ended")
                root: Any = run
                tree = self._trees[run.id] = _Tree(root)
                # The app holds its inputs itself, as long as they are held here, so they do not count.
                _characters(run.inputs, tree.counted)
            else:
                run.parent, tree = above
                run.parent.inside.append(run)
            self._runs[run.id] = run, tree
            return self._has_space(tree, run.inputs)

    def end(self, run_id: Hashable, output: object = None, error: BaseException | None = None) -> Run | None:
        """Close a run; None where it is not open. With the topmost one its tree is complete."""
        with self._lock:
            run, tree = self._runs.get(run_id, (None, None))
            if run is None or tree is None or not run.open:
                return None
            run.output, run.error, run.open = output, error, False
            if run is tree.root:
                self._close(tree)
            return run if run is tree.root or self._has_space(tree, output) else None

    def note_call(self, run_id: Hashable, call: ModelCall) -> None:
        """Note what a model was given, and what it said once it has ended. Beyond 2,000,000 characters none is kept."""
        with self._lock:
            run, tree = self._runs.get(run_id, (None, None))
            if run is None or tree is None or tree.in_calls > MOST_IN_PROMPTS:
                return
            run.call = call
            tree.in_calls += _REFERENCE * len(call.prompt) + _characters(
                [call.prompt, call.said], tree.counted_in_calls
            )
            if tree.in_calls > MOST_IN_PROMPTS:
                for each in tree.root.walk():
                    each.call = None

    def _has_space(self, tree: _Tree[R], value: object) -> bool:
        tree.touched = time.monotonic()
        tree.size += _EVENT + (0 if value is None else _characters(value, tree.counted))
        if tree.root.id in self._trees:
            self._trees.move_to_end(tree.root.id)
        if tree.size > MOST_CHARACTERS:
            self._close(tree, "too_large")
        return tree.size <= MOST_CHARACTERS

    def _close(self, tree: _Tree[R], given_up: GivenUp | None = None) -> None:
        self._trees.pop(tree.root.id, None)
        runs: list[Run] = [tree.root]
        for run in runs:
            runs += run.inside
            self._runs.pop(run.id, None)
        # The topmost one and what is open are forgotten last.
        runs.reverse()
        runs.sort(key=attrgetter("open"))
        self._remember(*map(_id_of, runs))
        if given_up is not None:
            self._given_up(tree.root, given_up)

    def _remember(self, *run_ids: Hashable) -> None:
        for run_id in run_ids:
            self._over[hash(run_id)] = None
            self._over.move_to_end(hash(run_id))
            # At once: what grew for a moment stays large.
            if len(self._over) > _REMEMBERED:
                self._over.popitem(last=False)


_id_of = attrgetter("id")
_ALL: "weakref.WeakSet[OpenRuns[Any]]" = weakref.WeakSet()


def _forget_all() -> None:
    for runs in _ALL:
        runs.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _characters(value: object, counted: set[int]) -> int:
    """Count the characters of a value's texts, without those that were counted before."""
    size = 0
    # One loop, because each call of a framework's comes here twice.
    waiting = [(value, _DEPTH)]
    while waiting:
        each, depth = waiting.pop()
        whole: Any = each
        inner: Any = ()
        if isinstance(each, str):
            if id(each) not in counted:
                counted.add(id(each))
                size += len(each)
        elif isinstance(each, _NO_TEXT) or not depth:
            continue
        elif isinstance(each, (list, tuple)):
            # An embedding has thousands of numbers.
            if each and not (isinstance(each[0], _NO_TEXT) and isinstance(each[-1], _NO_TEXT)):
                inner = whole
        elif isinstance(each, (dict, Mapping)):
            inner = whole.values()
        elif (isinstance(each, BaseModel) or is_dataclass(each)) and id(each) not in counted:
            counted.add(id(each))
            inner = getattr(each, "__dict__", {}).values()
        waiting += zip(inner, repeat(depth - 1))
    return size
