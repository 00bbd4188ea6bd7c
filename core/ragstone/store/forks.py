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

_PATIENCE = 30.0  # seconds that a fork waits for what is being written; then the child inherits it after all


class ForkSafe(ABC):
    """Something that is open in one process and used by one of its threads at a time."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        _watched[id(self)] = self
        _register()

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Keep the other threads away, and a fork."""
        if self._pid != os.getpid():  # forked by something that does not run Python's hooks
            self.forked()
        with self._lock:
            yield

    @abstractmethod
    def let_go(self) -> None:
        """Close what is open, if anything is. Called with the lock held; the next use opens it again."""

    @abstractmethod
    def disown(self) -> object:
        """Forget what is open without touching it, and return it."""

    def forked(self) -> None:
        """Start anew in a forked child."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        _inherited.append(self.disown())

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        with self.alone():
            self.let_go()

    def __del__(self) -> None:
        with suppress(Exception):  # at the interpreter's end, parts of it may be gone
            if self._pid == os.getpid():
                self.let_go()

    def before_fork(self) -> bool:
        """Close what is open and keep it closed until `after_fork`; False when it is in use for too long."""
        if not self._lock.acquire(timeout=_PATIENCE):
            return False
        with suppress(Exception):  # a fork that failed would be the app's trouble
            self.let_go()
        return True

    def after_fork(self) -> None:
        """Let other threads go on, in the parent."""
        self._lock.release()


_watched: "weakref.WeakValueDictionary[int, ForkSafe]" = weakref.WeakValueDictionary()
_held: list[ForkSafe] = []
_inherited: list[object] = []  # referenced for ever: Python would close what nobody refers to
_registered: list[bool] = []


def _register() -> None:
    if not _registered and hasattr(os, "register_at_fork"):
        _registered.append(True)
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _all() -> list[ForkSafe]:
    # In one step, as other threads may add theirs meanwhile, and in one order, as two threads may fork at once.
    return [one for reference in _watched.valuerefs() if (one := reference()) is not None]


def _before() -> None:
    _held[:] = [one for one in _all() if one.before_fork()]


def _in_parent() -> None:
    for one in _held:
        one.after_fork()
    _held.clear()


def _in_child() -> None:
    _held.clear()
    for one in _all():
        one.forked()
