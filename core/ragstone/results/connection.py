"""Connections to databases: closed while the process forks. Every SQLite file is opened here: private, and patient.

A child must neither use nor close a connection of its parent's. For SQLite that is not enough: as long as the child
has the parent's connection in its memory, SQLite takes the parent's file locks for the child's own, and what the child
then writes through a connection of its own is lost when the parent closes (seen with SQLite 3.40).
"""

import logging
import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ragstone.results.private_files import explain, make_private

T = TypeVar("T")
_log = logging.getLogger("ragstone.results")
Query = Callable[[str, Mapping[str, Any]], Iterable[tuple[Any, ...]]]
"""Takes SQL with named parameters, and gives rows."""
_LOG_PAGES = 250  # of 4 KB: how long the log of a SQLite file grows; by default it is 1,000
_TRY = 0.05  # seconds of a try to begin while another process holds a SQLite file
_BETWEEN_TRIES = 0.01
_PATIENCE = 0.1  # seconds that a fork waits for what is being written; then the child inherits it after all


class ForkSafe(ABC, Generic[T]):
    """Something that one thread at a time uses. It is closed before a fork, so that a child opens its own.

    Attributes:
        opened: What is open; None while nothing is.
        lock: Held by the thread that uses it, and while the process forks.
    """

    def __init__(self) -> None:
        self.opened: T | None = None
        self.lock = threading.Lock()
        _all[id(self)] = self

    @abstractmethod
    def shut(self, opened: T) -> None:
        """Close what was open."""

    def reopen(self) -> None:
        """Close what is open, if anything is. The lock is held; the next use opens it again."""
        opened, self.opened = self.opened, None
        if opened is not None:
            self.shut(opened)

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        with self.lock:
            self.reopen()

    def __del__(self) -> None:
        with suppress(Exception):  # at the interpreter's end, parts of it may be gone
            self.reopen()


_all: "weakref.WeakValueDictionary[int, ForkSafe[Any]]" = weakref.WeakValueDictionary()
_locked: list[ForkSafe[Any]] = []
_inherited: list[object] = []  # referenced for ever: Python closes what has no reference


def _before_fork() -> None:
    # In one step, as other threads may add theirs meanwhile, and in one order, as two threads may fork at once.
    until = time.monotonic() + _PATIENCE
    for each in _all.valuerefs():
        if (one := each()) is not None and one.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            _locked.append(one)
            with suppress(Exception):  # a fork that failed would be the app's trouble
                one.reopen()


def _after_fork() -> None:
    while _locked:
        _locked.pop().lock.release()


def _in_child() -> None:
    _after_fork()
    for one in list(_all.values()):
        if one.lock.locked():  # by a thread that the child does not have
            _inherited.append(one.opened)
            one.opened, one.lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


class Transaction(Protocol):
    """A database while all of it or nothing is done. SQL has named parameters: `:name`."""

    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> Any:  # noqa: ANN401 - two libraries'
        """Run a statement; give its rows."""

    def executemany(self, sql: str, parameters: Sequence[Mapping[str, Any]], /) -> Any:  # noqa: ANN401 - likewise
        """Run a statement for each of the parameters."""


class Database(Protocol):
    """A SQLite file or a PostgreSQL server; it knows none of its tables. Any thread may use it; they take turns."""

    def transaction(self, removing: str = "") -> AbstractContextManager[Transaction]:
        """Do all of it or nothing.

        Args:
            removing: For what must leave no trace: the name of a table that no other transaction may read meanwhile.
        """
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """Read what is of one moment, also where nothing may be written."""
        ...

    def vacuum(self, *tables: str) -> None:
        """Remove what was deleted: from a file and its log, without a table from its log; a server reuses the space."""

    def close(self) -> None:
        """Close the connection. The next use opens another."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: what it is called, its mark (an application id), version, statements that make it, its error."""

    noun: str
    mark: int
    version: int
    tables: tuple[str, ...]
    error: type[Exception]

    def of_another_version(self, version: int, another: str) -> str:
        """Say that it is of another version, what becomes of what is in it and of what comes, and what to do."""
        newer = (version or 0) > self.version
        age, upgrade = ("a newer", "upgrade ragstone, or ") if newer else ("an older", "")
        comes = "what a monitor would write waits, in memory only until its process ends; " if self.tables else ""
        return (
            f"was made by {age} ragstone ({self.noun} version {version}, this one reads {self.version}); what is in it "
            f"stays, for the ragstone that made it; {comes}{upgrade}{another}"
        )


class SqliteFile(ForkSafe[sqlite3.Connection]):
    """One process's way into a file, by at most one connection. Any thread may use it; they take turns.

    The file is made, with mode 0600, at the first use.

    Args:
        path: The file.
        kind: What it holds. Another program's file is refused.
        patience: Seconds to wait while another process holds it.
    """

    def __init__(self, path: Path, kind: Kind, patience: float) -> None:
        super().__init__()
        self.path = path
        self._kind = kind
        self._patience = patience
        self._file = (0, 0)

    def replaced(self) -> None:
        """Say that the file was deleted or replaced while it was open, and open the one that is there, or a new one."""
        _log.warning("%s: was deleted or replaced while in use, with all that was written to it", self.path)
        self.reopen()

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return a query's rows."""
        with self._used("BEGIN") as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def transaction(self, removing: str = "") -> Generator[sqlite3.Connection, None, None]:
        """Do all of it or nothing, with the file's write lock from the start."""
        with self._used("BEGIN IMMEDIATE") as connection:
            if removing:
                connection.execute("PRAGMA secure_delete = ON")
            yield connection

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """Read what is of one moment; who writes is not waited for."""
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):
            with reading_file(self.path, self._kind) as connection:
                yield connection
            return
        with self._used("BEGIN") as connection:
            yield connection

    def vacuum(self, *tables: str) -> None:
        """Remove what was deleted from the log, and with a table's name from the file.

        Raises:
            Exception: The kind's error: another process still reads the file; call it again.
        """
        with self._used("") as connection:
            if tables:
                connection.execute("VACUUM")
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise self._kind.error(f"{self.path}: is in use, and its log still holds removed texts; try again")

    def shut(self, opened: sqlite3.Connection) -> None:
        """Close the connection."""
        with suppress(sqlite3.Error):
            opened.close()

    @contextmanager
    def _used(self, begin: str) -> Generator[sqlite3.Connection, None, None]:
        with self._explained():
            connection = self._begin(begin)
            try:
                with _ended(connection) if begin else nullcontext():
                    yield connection
            except sqlite3.Error:
                self.reopen()  # the next try starts afresh; where the disk is full, this gives back the log's part
                raise
            finally:
                self.lock.release()

    def _begin(self, begin: str) -> sqlite3.Connection:
        """Take the lock and begin. While another process holds the file, the lock is free in between, for a fork."""
        until = time.monotonic() + self._patience
        while True:
            self.lock.acquire()
            try:
                connection = self._connection()
                connection.execute(f"PRAGMA busy_timeout = {1_000 * _TRY:.0f}")
                connection.execute(begin)
                if begin == "BEGIN":  # which alone locks nothing
                    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
                connection.execute(f"PRAGMA busy_timeout = {1_000 * self._patience:.0f}")
                return connection
            except BaseException as error:
                self.reopen()
                self.lock.release()
                if not isinstance(error, sqlite3.Error) or "locked" not in str(error) or time.monotonic() >= until:
                    raise
            time.sleep(_BETWEEN_TRIES)

    def _connection(self) -> sqlite3.Connection:
        if self.opened is not None and self._file != _identity(self.path):
            self.replaced()
        if self.opened is None:
            make_private(self.path)
            connection = sqlite3.connect(self.path, timeout=_TRY, isolation_level=None, check_same_thread=False)
            connection.text_factory = text_of
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self.opened, self._file = connection, _identity(self.path)
        return self.opened

    def _prepare(self, connection: sqlite3.Connection) -> None:
        kind = self._kind
        with _begun(connection, "BEGIN"):  # who only reads does not wait for who writes
            made = is_made(connection, self.path, kind)
        if not made:
            with _begun(connection):
                if not is_made(connection, self.path, kind):  # of two processes the second finds it made
                    marks = f"PRAGMA application_id = {kind.mark}", f"PRAGMA user_version = {kind.version}"
                    for statement in (*kind.tables, *marks):
                        connection.execute(statement)
        with suppress(sqlite3.OperationalError):  # another process does it right now, or the disk cannot
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # what is killed loses nothing of it
        # A log that fills a small disk is never given back: to move it into the file takes room, too.
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "not a database" in text or "malformed" in text:
                problem = (
                    f"is damaged, or not a ragstone {self._kind.noun} ({text}); move it away, or name another file"
                )
            elif "locked" in text:
                problem = f"{text}; another process has held it for {self._patience:g} seconds"
            else:
                problem = explain(self.path, text)
            raise self._kind.error(f"{self.path}: {problem}") from error


@contextmanager
def reading_file(path: Path, kind: Kind) -> Generator[sqlite3.Connection, None, None]:
    """Open a database that is there for reading alone, all of one moment; its folder may be read-only."""
    uri = path.absolute().as_uri()
    try:
        try:
            connection = _opened(f"{uri}?mode=ro")
        except sqlite3.OperationalError:
            # Even a reader writes beside a file in WAL mode. In a read-only folder no other process writes either.
            log = path.with_name(f"{path.name}-wal")
            if os.access(path.parent, os.W_OK) or not os.access(path, os.R_OK) or (log.exists() and log.stat().st_size):
                raise
            connection = _opened(f"{uri}?immutable=1")
        with closing(connection):
            if not is_made(connection, path, kind):
                raise kind.error(f"{path}: is empty; a Monitor's SQLiteSink or SQLSink writes results")
            yield connection
    except sqlite3.Error as error:
        raise kind.error(f"{path}: cannot be read: {error}") from error


def _opened(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0)
    connection.text_factory = text_of
    try:
        connection.execute("BEGIN")  # all that is read is of one moment
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # here the file is really opened
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def is_made(connection: sqlite3.Connection, path: Path, kind: Kind) -> bool:
    """Whether a file's tables are there; False for an empty file.

    Raises:
        Exception: The kind's error, where the file is another program's, or of another version.
    """
    ((mark,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
    if (mark, version) == (kind.mark, kind.version):
        return True
    if mark == kind.mark:
        another = f"rename the file, or name another one as the {kind.noun}"
        raise kind.error(f"{path}: {kind.of_another_version(version, another)}")
    if mark or version or tables:
        raise kind.error(f"{path}: is no {kind.noun}; name another file as the {kind.noun}")
    return False


def text_of(stored: bytes) -> str:
    """Return a text of a SQLite file, also where another program wrote one that is not UTF-8."""
    return stored.decode("utf-8", "backslashreplace")


@contextmanager
def _begun(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Generator[None, None, None]:
    connection.execute(begin)  # a plain BEGIN is for reading: it fails at once when it comes to write
    with _ended(connection):
        yield


@contextmanager
def _ended(connection: sqlite3.Connection) -> Generator[None, None, None]:
    try:
        yield
        connection.execute("COMMIT")  # where the disk is full, this fails and leaves the transaction open
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have ended it already
            connection.execute("ROLLBACK")
        raise


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another that has taken its name; (0, 0) where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
