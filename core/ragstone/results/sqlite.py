"""SQLite files: private, patient, and refused where they are another program's."""

import logging
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from ragstone.results.database import Database, DatabaseSchema
from ragstone.results.private_files import file_problem, make_private

_log = logging.getLogger("ragstone.results")
# Pages of 4 KB to which the log grows; by default 1,000. A log that fills a small disk is never given back: to move it
# into the file takes space, too.
_LOG_PAGES = 250
# Seconds of one attempt to begin while another process holds the file, and between two of them.
_ATTEMPT, _BETWEEN = 0.05, 0.01
# One statement, so that all of it is of one moment.
_MARKS = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)


class SqliteFile(Database):
    """A SQLite file, which is made, with mode 0600, at the first use.

    Args:
        path: The file.
        schema: What it holds.
        patience: Seconds to wait while another process holds it.
    """

    listed = "json_each(:ids)"
    connection: sqlite3.Connection | None

    def __init__(self, path: Path, schema: DatabaseSchema, patience: float) -> None:
        super().__init__(str(path), schema)
        self.path = path
        self._patience = patience
        self._inode = (0, 0)

    def replaced(self) -> None:
        """Say that the file was deleted or replaced while it was open, and open the one that is there, or a new one."""
        _log.warning("%s: was deleted or replaced while in use, with all that was written to it", self.path)
        self.disconnect()

    @contextmanager
    def transaction(self, removing: str = "") -> Generator[sqlite3.Connection, None, None]:
        """Do all of it or nothing, with the file's write lock from the start."""
        with self._used("BEGIN IMMEDIATE") as connection:
            if removing:
                connection.execute("PRAGMA secure_delete = ON")
            yield connection

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """Read what is of one moment."""
        if self.schema.tables and not os.access(self.path.parent, os.W_OK) and self.path.exists():
            reader = SqliteFile(self.path, replace(self.schema, tables=()), self._patience)
            with closing(reader), reader.reading() as connection:
                yield connection
            return
        with self._used("BEGIN") as connection:
            yield connection

    def vacuum(self, *tables: str) -> None:
        """Remove what was deleted from the log, and with a table's name from the file.

        Raises:
            Exception: The schema's error: another process still reads the file; call it again.
        """
        with self._used("") as connection:
            if tables:
                connection.execute("VACUUM")
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise self.schema.error(f"{self.path}: is in use, and its log still holds removed texts; try again")

    @contextmanager
    def _used(self, begin: str) -> Generator[sqlite3.Connection, None, None]:
        with self._explained():
            connection = self._begun(begin)
            try:
                with connection:
                    yield connection
            except sqlite3.Error:
                # The next use starts afresh. Where the disk is full, this gives back the log's part.
                self.disconnect()
                raise
            finally:
                self.lock.release()

    def _begun(self, begin: str) -> sqlite3.Connection:
        """Take the lock and begin. While another process holds the file, the lock is free in between, for a fork."""
        until = time.monotonic() + self._patience
        while True:
            self.lock.acquire()
            try:
                connection = self._connected()
                connection.execute(f"PRAGMA busy_timeout = {1_000 * _ATTEMPT:.0f}")
                connection.execute(begin)
                # A plain BEGIN locks nothing.
                if begin == "BEGIN":
                    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
                connection.execute(f"PRAGMA busy_timeout = {1_000 * self._patience:.0f}")
                return connection
            except BaseException as error:
                self.disconnect()
                self.lock.release()
                if not isinstance(error, sqlite3.Error) or "locked" not in str(error) or time.monotonic() >= until:
                    raise
            time.sleep(_BETWEEN)

    def _connected(self) -> sqlite3.Connection:
        if self.connection is not None and self._inode != _inode_of(self.path):
            self.replaced()
        if self.connection is None:
            self.connection, self._inode = self._connect(), _inode_of(self.path)
        return self.connection

    def _connect(self) -> sqlite3.Connection:
        uri = self.path.absolute().as_uri()
        if self.schema.tables:
            make_private(self.path)
            return self._prepared(f"{uri}?mode=rwc")
        try:
            return self._prepared(f"{uri}?mode=ro")
        except sqlite3.OperationalError:
            # Even a reader writes beside a file in WAL mode. In a read-only folder no other process writes either.
            log, folder = self.path.with_name(f"{self.path.name}-wal"), self.path.parent
            if os.access(folder, os.W_OK) or not os.access(self.path, os.R_OK) or (log.exists() and log.stat().st_size):
                raise
            return self._prepared(f"{uri}?immutable=1")

    def _prepared(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, timeout=_ATTEMPT, uri=True, isolation_level=None, check_same_thread=False)
        # Another program may have written a text that is not UTF-8.
        connection.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
        try:
            if not self._is_made(connection):
                self._make(connection)
            if self.schema.tables:
                # Another process may do it right now, or the disk cannot.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA journal_mode = WAL")
                # What is killed loses nothing of it.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, connection: sqlite3.Connection) -> None:
        if not self.schema.tables:
            raise self.schema.error(f"{self.path}: is empty; a Monitor's SQLiteSink or SQLSink writes results")
        marks = f"PRAGMA application_id = {self.schema.mark}", f"PRAGMA user_version = {self.schema.version}"
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            # Of two processes the second finds it made.
            if not self._is_made(connection):
                for statement in (*self.schema.tables, *marks):
                    connection.execute(statement)

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are there; False for an empty file. Another program's, or another version, is refused."""
        schema = self.schema
        ((mark, version, tables),) = connection.execute(_MARKS).fetchall()
        if (mark, version) == (schema.mark, schema.version):
            return True
        if mark == schema.mark:
            another = f"rename the file, or name another one as the {schema.noun}"
            raise schema.error(f"{self.path}: {schema.of_another_version(version, another)}")
        if mark or version or tables:
            raise schema.error(f"{self.path}: is no {schema.noun}; name another file as the {schema.noun}")
        return False

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if not self.schema.tables:
                problem = f"cannot be read: {text}"
            elif "not a database" in text or "malformed" in text:
                noun = self.schema.noun
                problem = f"is damaged, or not a ragstone {noun} ({text}); move it away, or name another file"
            elif "locked" in text:
                problem = f"{text}; another process has held it for {self._patience:g} seconds"
            else:
                problem = file_problem(self.path, text)
            raise self.schema.error(f"{self.path}: {problem}") from error


def _inode_of(path: Path) -> tuple[int, int]:
    """What tells a file from another that has taken its name; (0, 0) where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
