"""A journal's SQLite file: opening it, making its tables, one transaction at a time, and errors in plain words."""

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragstone.store.private_files import make_private
from ragstone.store.sqlite_file import SqliteFile, committed

VERSION = 1
_MARK = 0x7261674A  # "ragJ": tells a journal from other programs' databases
_BUSY_SECONDS = 1.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS owners (name TEXT PRIMARY KEY, beat INTEGER NOT NULL) WITHOUT ROWID",
)


class JournalError(Exception):
    """A journal cannot be read or written; the message says why, what is safe, and what to do."""


class JournalFile(SqliteFile):
    """One way into the file. Any thread may use it; they take turns. It is closed while the process forks.

    Args:
        path: The file; made at the first use when it is not there.
        patience: Seconds to wait while another process holds the file.
    """

    def __init__(self, path: Path, patience: float) -> None:
        super().__init__(path)
        self._patience = patience

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return a query's rows.

        Raises:
            JournalError: The file cannot be opened or read, or is no journal.
        """
        with self._explained(), self.alone():
            return self._connected().execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Do all of it or nothing, with the file's write lock from the start.

        Raises:
            JournalError: The file cannot be opened or written, or is no journal.
        """
        with self._explained(), self.alone():
            connection = self._connected()
            if self._replaced():
                raise JournalError(
                    f"{self._path}: was removed or replaced while in use; what had been written to it went with it"
                )
            with self._begun(connection):
                self._is_journal(connection)  # a newer program may have been here meanwhile
                yield connection

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            make_private(self._path)
            connection = sqlite3.connect(
                self._path, timeout=min(_BUSY_SECONDS, self._patience), isolation_level=None, check_same_thread=False
            )
            try:
                with self._begun(connection, "BEGIN"):  # or what is read is of before and after another made it
                    made = self._is_journal(connection)
                if not made:
                    with self._begun(connection):  # of two processes that make the file, the second finds it made
                        self._make(connection)
                self._patiently(connection, "PRAGMA journal_mode = WAL")  # some network disks cannot: so be it
                connection.execute("PRAGMA synchronous = NORMAL")  # what is killed loses nothing of it
            except BaseException:
                connection.close()
                raise
            return self._keep(connection)
        return self._connection

    def _make(self, connection: sqlite3.Connection) -> None:
        if not self._is_journal(connection):
            for statement in (*_TABLES, f"PRAGMA application_id = {_MARK}", f"PRAGMA user_version = {VERSION}"):
                connection.execute(statement)

    def _is_journal(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are there; False where nothing is, or an older version."""
        ((mark,),) = self._patiently(connection, "PRAGMA application_id")
        ((version,),) = self._patiently(connection, "PRAGMA user_version")
        if mark == _MARK and version in range(1, VERSION + 1):
            return version == VERSION
        if mark == _MARK:
            raise JournalError(
                f"{self._path}: was made by a newer ragstone (journal version {version}, this one knows {VERSION}); "
                "upgrade ragstone, or name another file as the journal"
            )
        if mark or version or self._patiently(connection, "SELECT count(*) FROM sqlite_master") != [(0,)]:
            raise JournalError(f"{self._path}: is another program's database; name a file of its own as the journal")
        return False

    @contextmanager
    def _begun(self, connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Generator[None, None, None]:
        self._patiently(connection, begin)  # a plain BEGIN is for reading: it fails at once when it comes to write
        with committed(connection):
            yield

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
            raise JournalError(self._words(error)) from error

    def _words(self, error: sqlite3.Error) -> str:
        path, text = self._path, str(error)
        if path.is_dir():
            return f"{path}: is a folder; name a file in it, such as {path / 'journal.db'}"
        if not path.parent.is_dir():
            return f"{path}: there is no folder {path.parent}; make it, or name another file"
        if "not a database" in text or "malformed" in text:
            return f"{path}: is no journal, or is damaged ({text}); move it away or name another file"
        if "unable to open" in text or "readonly" in text:
            return f"{path}: cannot be written ({text}); the file and its folder must be writable for this process"
        if "full" in text or "disk I/O" in text:
            return f"{path}: cannot be written to ({text}); is there room on the disk?"
        if "locked" in text:
            return f"{path}: another process has held the file for {self._patience:g} seconds ({text})"
        return f"{path}: {text}"
