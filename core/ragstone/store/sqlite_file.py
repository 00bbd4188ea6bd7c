"""Every SQLite file of ragstone's: private, patient with other processes, closed while the process forks."""

import sqlite3
import time
from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ragstone.store.forks import ForkSafe
from ragstone.store.private_files import make_private, wrong_place

_BUSY_SECONDS = 1.0  # SQLite waits that long for another process's lock, without queueing up fairly
_ADVICE = (
    (("not a database", "malformed"), "it is no SQLite database or a damaged one: move it away or name another file"),
    (("already exists",), "it is another program's: name a file of its own for ragstone"),
    (("unable to open", "readonly"), "the file and its folder must be writable for this process"),
    (("full", "disk I/O"), "is there room on the disk?"),
)


class SqliteFile(ForkSafe):
    """One process's way into a file, by at most one connection. Any thread may use it; they take turns.

    The file is made, with mode 0600, at the first use. A subclass says what a file of its kind holds.

    Args:
        path: The file.
        patience: Seconds to wait while another process holds it.
        error: What to raise in place of SQLite's errors, with what to do; None passes SQLite's on.
    """

    def __init__(self, path: Path, patience: float, error: type[Exception] | None) -> None:
        super().__init__()
        self.path = path
        self._patience = patience
        self._error = error
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)

    @abstractmethod
    def ready(self, connection: sqlite3.Connection) -> bool:
        """Whether all tables are there. Raises where the file is another program's, or too new."""

    @abstractmethod
    def make(self, connection: sqlite3.Connection) -> None:
        """Make what is missing, inside a transaction."""

    def replaced(self) -> None:
        """Take note that the file was deleted or replaced while it was open: what went into the old one is lost."""
        self.let_go()

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return a query's rows."""
        with self._explained(), self.alone():
            return self._opened().execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Do all of it or nothing, with the file's write lock from the start."""
        with self._explained(), self.alone():
            connection = self._opened()
            try:
                with self._begun(connection):
                    self.ready(connection)  # a newer program may have been here meanwhile
                    yield connection
            except sqlite3.Error:
                self.let_go()  # the next try starts afresh; where the disk is full, this gives back the log's part
                raise

    def let_go(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def disown(self) -> object:
        """Forget the connection without closing it: it is the parent process's."""
        connection, self._connection = self._connection, None
        return connection

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._file != _identity(self.path):
            self.replaced()
        if self._connection is None:
            make_private(self.path)
            timeout = min(_BUSY_SECONDS, self._patience)
            connection = sqlite3.connect(self.path, timeout=timeout, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._file = connection, _identity(self.path)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        with self._begun(connection, "BEGIN"):  # or what is read is of before and after another made it
            ready = self.ready(connection)
        if not ready:
            with self._begun(connection):
                if not self.ready(connection):  # of two processes that make the file, the second finds it made
                    self.make(connection)
        self._patiently(connection, "PRAGMA journal_mode = WAL")  # some network disks cannot: so be it
        connection.execute("PRAGMA synchronous = NORMAL")  # what is killed loses nothing of it

    @contextmanager
    def _begun(self, connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Generator[None, None, None]:
        self._patiently(connection, begin)  # a plain BEGIN is for reading: it fails at once when it comes to write
        try:
            yield
            connection.execute("COMMIT")  # where the disk is full, this fails and leaves the transaction open
        except BaseException:
            with suppress(sqlite3.Error):  # some errors have ended it already
                connection.execute("ROLLBACK")
            raise

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> list[tuple[object, ...]]:
        end = time.monotonic() + self._patience
        while True:
            try:
                return connection.execute(statement).fetchall()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() >= end:
                    raise
            time.sleep(0.01)  # some are refused without waiting, such as a change of the journal mode

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite3.Error as error:
            if self._error is None:
                raise
            raise self._error(f"{self.path}: {self._words(str(error))}") from error

    def _words(self, text: str) -> str:
        if "locked" in text:
            return f"{text}; another process has held it for {self._patience:g} seconds"
        advice = (words for parts, words in _ADVICE if any(part in text for part in parts))
        return wrong_place(self.path, "ragstone.db") or f"{text}; {next(advice, 'nothing was written')}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: what it is called, its mark (an application id), version, statements that make it, its error."""

    noun: str
    mark: int
    version: int
    tables: tuple[str, ...]
    error: type[Exception]


class MarkedFile(SqliteFile):
    """A file of one kind, told from other programs' databases by its mark.

    Args:
        path: The file.
        kind: Its kind.
        patience: Seconds to wait while another process holds it.
        explain: Whether SQLite's errors become the kind's own.
    """

    def __init__(self, path: Path, kind: Kind, patience: float, *, explain: bool = True) -> None:
        super().__init__(path, patience, kind.error if explain else None)
        self._kind = kind

    def ready(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are there."""
        kind = self._kind
        try:
            ((mark,),) = self._patiently(connection, "PRAGMA application_id")
            ((version,),) = self._patiently(connection, "PRAGMA user_version")
            tables = self._patiently(connection, "SELECT count(*) FROM sqlite_master") != [(0,)]
        except sqlite3.DatabaseError as error:
            if "not a database" not in str(error) and "malformed" not in str(error):
                raise
            raise kind.error(
                f"{self.path}: is no {kind.noun}, or a damaged one ({error}); move it away, or name another file"
            ) from None
        if mark == kind.mark and version == kind.version:
            return True
        if mark == kind.mark:
            raise kind.error(
                f"{self.path}: was made by a newer ragstone ({kind.noun} version {version}, this one knows "
                f"{kind.version}); upgrade ragstone, or name another file as the {kind.noun}"
            )
        if mark or version or tables:
            raise kind.error(f"{self.path}: is another program's database; name a file of its own as the {kind.noun}")
        return False

    def make(self, connection: sqlite3.Connection) -> None:
        """Make the tables, and mark the file."""
        kind = self._kind
        marks = f"PRAGMA application_id = {kind.mark}", f"PRAGMA user_version = {kind.version}"
        for statement in (*kind.tables, *marks):
            connection.execute(statement)


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another that has taken its name; (0, 0) where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
