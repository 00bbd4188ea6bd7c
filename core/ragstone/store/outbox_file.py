"""The outbox's file: opening it, making its tables, and one transaction at a time."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress

from ragstone.store.private_files import make_private
from ragstone.store.sqlite_file import SqliteFile, committed

_VERSION = 1
_MARK = 0x7261674F  # "ragO": tells an outbox from other programs' databases
_BUSY_SECONDS = 5.0
_TABLES = (
    """CREATE TABLE samples (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, metrics TEXT NOT NULL, owner TEXT,
        left_by TEXT, attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0, body TEXT NOT NULL)""",
    "CREATE INDEX samples_by_owner ON samples (owner, not_before, seq)",
    """CREATE TABLE records (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL, owner TEXT, body TEXT NOT NULL)""",
    "CREATE INDEX records_by_sink ON records (sink, owner, seq)",
)


class OutboxError(RuntimeError):
    """The file is no outbox that this version can use."""


class OutboxFile(SqliteFile):
    """One process's way into the file. It is closed while the process forks, and opened again when it is used.

    Args:
        path: The file; made by the first transaction when it is not there.
    """

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Do all of it or nothing, with the write lock from the start.

        Raises:
            OutboxError: The file is something else, or of a newer version.
            sqlite3.Error: The file cannot be opened, read or written, or others hold it for too long.
        """
        with self.alone():
            connection = self._opened()
            try:
                with _begun(connection):
                    yield connection
            except sqlite3.Error:
                self.let_go()  # the next try starts afresh; where the disk is full, this gives back the journal's part
                raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._replaced():
            self.let_go()  # deleted or replaced meanwhile: what goes into the old file is lost
        if self._connection is None:
            make_private(self._path)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return self._keep(connection)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        try:
            with _begun(connection):  # of two processes that make the file, the second finds it made
                self._make_tables(connection)
        except sqlite3.DatabaseError as error:
            if "not a database" not in str(error) and "malformed" not in str(error):
                raise
            raise OutboxError(f"{self._path}: is no SQLite file ({error}); name another file as the outbox") from None
        with suppress(sqlite3.OperationalError):  # while another process opens it, too: it does the same
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # what is killed loses nothing; a power cut the last moment

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if mark != _MARK:
            if tables or version:
                raise OutboxError(f"{self._path}: is another program's database; name a file of its own as the outbox")
            for statement in (*_TABLES, f"PRAGMA application_id = {_MARK}", f"PRAGMA user_version = {_VERSION}"):
                connection.execute(statement)
        elif version > _VERSION:
            raise OutboxError(
                f"{self._path}: was made by a newer ragstone (outbox version {version}, this one knows {_VERSION}); "
                "upgrade ragstone, or name another file as the outbox"
            )


@contextmanager
def _begun(connection: sqlite3.Connection) -> Generator[None, None, None]:
    connection.execute("BEGIN IMMEDIATE")  # a plain BEGIN fails at once when it comes to write
    with committed(connection):
        yield
