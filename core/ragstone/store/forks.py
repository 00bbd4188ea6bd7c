"""Connections and forks: what is open is closed before the process forks, so that no child inherits it.

A child must neither use nor close a connection of its parent's. For SQLite that is not enough: as long as the child
has the parent's connection in its memory, SQLite takes the parent's file locks for the child's own, and what the child
then writes through a connection of its own is lost when the parent closes (seen with SQLite 3.40).
"""

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_PATIENCE = 30.0  # seconds that a fork waits for what is being written; then the child inherits it after all


class ForkSafe(ABC, Generic[T]):
    """Something that is open in one process and used by one of its threads at a time.

    Attributes:
        opened: What is open; None while nothing is.
        lock: Held by the thread that uses it, and while the process forks.
    """

    def __init__(self) -> None:
        self.opened: T | None = None
        self.lock = threading.Lock()
        self._pid = os.getpid()
        _watched[id(self)] = self

    @abstractmethod
    def shut(self, opened: T) -> None:
        """Close what was open."""

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Keep the other threads away, and a fork."""
        if self._pid != os.getpid():  # forked by something that does not run Python's hooks
            self.forked()
        with self.lock:
            yield

    def let_go(self) -> None:
        """Close what is open, if anything is. The lock is held; the next use opens it again."""
        opened, self.opened = self.opened, None
        if opened is not None:
            self.shut(opened)

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        with self.alone():
            self.let_go()

    def forked(self) -> None:
        """Start anew in a forked child."""
        self._pid = os.getpid()
        self.lock = threading.Lock()
        _inherited.append(self.opened)
        self.opened = None

    def __del__(self) -> None:
        with suppress(Exception):  # at the interpreter's end, parts of it may be gone
            if self._pid == os.getpid():
                self.let_go()


_watched: "weakref.WeakValueDictionary[int, ForkSafe[Any]]" = weakref.WeakValueDictionary()
_held: list[ForkSafe[Any]] = []
_inherited: list[object] = []  # referenced for ever: Python would close what nobody refers to


def _all() -> list[ForkSafe[Any]]:
    # In one step, as other threads may add theirs meanwhile, and in one order, as two threads may fork at once.
    return [each for reference in _watched.valuerefs() if (each := reference()) is not None]


def _before() -> None:
    for each in _all():
        if each.lock.acquire(timeout=_PATIENCE):
            _held.append(each)
            with suppress(Exception):  # a fork that failed would be the app's trouble
                each.let_go()


def _in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _in_child() -> None:
    _held.clear()
    for each in _all():
        each.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
