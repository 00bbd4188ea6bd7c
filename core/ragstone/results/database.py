"""What a SQLite file and a PostgreSQL server have in common: one way to write, one to read, and forks.

A child must neither use nor close a connection of its parent's. For SQLite that is not enough: as long as the child
has the parent's connection in its memory, SQLite takes the parent's file locks for the child's own, and what the child
then writes through a connection of its own is lost when the parent closes (seen with SQLite 3.40).
"""

import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

# Seconds that a fork waits for what is being written; then the child inherits it after all.
_PATIENCE = 0.1


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """The schema of a database, and its mark.

    Attributes:
        noun: What it is called.
        mark: The application id of a SQLite file.
        version: The version of its tables.
        tables: The statements that make them. Whoever has none only reads, and makes nothing.
        error: Raised where a database cannot be used; it says the way out.
    """

    noun: str
    mark: int
    version: int
    tables: tuple[str, ...]
    error: type[Exception]

    def of_another_version(self, version: int, another: str) -> str:
        """Say that it has another version, what happens to old and new records, and the way out."""
        newer = (version or 0) > self.version
        age, upgrade = ("a newer", "upgrade ragstone, or ") if newer else ("an older", "")
        comes = "what a monitor would write waits, in memory only until its process ends; " if self.tables else ""
        return (
            f"was made by {age} ragstone ({self.noun} version {version}, this one reads {self.version}); what is in it "
            f"stays, for the ragstone that made it; {comes}{upgrade}{another}"
        )


class Transaction(Protocol):
    """A database while all of it or nothing is done. SQL has named parameters: `:name`."""

    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> Any:  # noqa: ANN401 - two libraries'
        """Run a statement; give its rows."""

    def executemany(self, sql: str, parameters: Sequence[Mapping[str, Any]], /) -> Any:  # noqa: ANN401 - likewise
        """Run a statement for each of the parameters."""


class Database(ABC):
    """A SQLite file or a PostgreSQL server. Any thread may use it; they take turns.

    It has at most one connection, made at the first use and closed before a fork, so that a child makes its own.

    Args:
        name: What messages call it; it holds no password.
        schema: What it holds. Another program's database is refused.

    Attributes:
        connection: The library's own; None while there is none.
        lock: Held by the thread that uses the connection, and while the process forks.
    """

    listed: ClassVar[str]
    """How its SQL reads the parameter `ids`, a list as JSON, as rows with a column `value`."""

    def __init__(self, name: str, schema: DatabaseSchema) -> None:
        self.name = name
        self.schema = schema
        self.connection: Any = None
        self.lock = threading.Lock()
        _all[id(self)] = self

    @abstractmethod
    def transaction(self, removing: str = "") -> AbstractContextManager[Transaction]:
        """Do all of it or nothing.

        Args:
            removing: For what must leave no trace: the name of a table that no other transaction may read meanwhile.

        Raises:
            Exception: The schema's error: the database cannot be reached, refuses, or is none that this version can
                use.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """Read one moment of the database, also without the right to write, and without waiting for writers."""

    @abstractmethod
    def vacuum(self, *tables: str) -> None:
        """Remove deleted rows from a file and its log, without a table from its log; a server reuses the space."""

    def disconnect(self) -> None:
        """Close the connection, if there is one. The lock is held; the next use makes another."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Close the connection. The next use makes another."""
        with self.lock:
            self.disconnect()

    def __del__(self) -> None:
        # At the interpreter's end, parts of it may be gone.
        with suppress(Exception):
            self.disconnect()


_all: "weakref.WeakValueDictionary[int, Database]" = weakref.WeakValueDictionary()
_held: list[Database] = []
# Referenced for ever: Python closes what has no reference.
_inherited: list[object] = []


def _before_fork() -> None:
    # In one step, as other threads may add theirs meanwhile, and in one order, as two threads may fork at once.
    until = time.monotonic() + _PATIENCE
    for each in _all.valuerefs():
        if (one := each()) is not None and one.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            _held.append(one)
            one.disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()


def _in_child() -> None:
    _after_fork()
    for one in list(_all.values()):
        # Held by a thread that the child does not have.
        if one.lock.locked():
            _inherited.append(one.connection)
            one.connection, one.lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
