"""A results database in a SQLite file: opening, migrating, and one transaction at a time."""

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ragstone.store.errors import SinkError
from ragstone.store.places import wrong_place
from ragstone.store.private_files import make_private
from ragstone.store.schema import SCHEMA, VERSIONS, AddColumn, Column, Index, Migration, Schema, State, Table
from ragstone.store.sqlite_file import SqliteFile, committed

_BUSY_SECONDS = 5.0  # SQLite waits that long for another process's lock, without queueing up fairly
_PATIENCE = 15.0
_TYPES = {"key": "TEXT", "text": "TEXT", "real": "REAL", "integer": "INTEGER"}


class SqliteDatabase(SqliteFile):
    """One process's way into the file. Any thread may use it; they take turns.

    Args:
        path: The file. It is made at the first transaction.
        schema: What this program knows.

    Attributes:
        schema: What this program knows.
    """

    def __init__(self, path: Path, schema: Schema = SCHEMA) -> None:
        super().__init__(path)
        self.schema = schema

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Do all of it or nothing, with the file's write lock from the start.

        Raises:
            SinkError: The file cannot be opened or is none of ours, another process holds it, or the disk is full.
        """
        with self.alone():
            connection = self._opened()
            try:
                with self._begun(connection):
                    self.schema.missing(_state(connection), str(self._path))  # a newer program may have been here
                    yield connection
            except sqlite3.Error as error:
                self.let_go()  # whatever it was, the next try starts afresh
                raise SinkError(self._explain(error)) from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._replaced():
            self.let_go()  # deleted or replaced meanwhile: what goes into the old file is lost
        if self._connection is None:
            make_private(self._path)
            try:
                connection = sqlite3.connect(
                    self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
                try:
                    self._prepare(connection)
                except BaseException:
                    connection.close()
                    raise
            except sqlite3.Error as error:
                raise SinkError(self._explain(error)) from error
            return self._keep(connection)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        with self._begun(connection):  # of two processes, the second finds the work done
            for migration in self.schema.missing(_state(connection), str(self._path)):
                self._migrate(connection, migration)
        _patiently(
            connection, "PRAGMA journal_mode = WAL"
        )  # where it cannot be (some network disks), it stays as it is
        connection.execute("PRAGMA synchronous = NORMAL")

    def _migrate(self, connection: sqlite3.Connection, migration: Migration) -> None:
        found = _state(connection)
        if found is None:
            connection.execute(_ddl(VERSIONS))
            found = State(0, 0)
            connection.execute("INSERT INTO ragstone_schema (version, oldest_writer) VALUES (0, 0)")
        for step in migration.steps:
            connection.execute(_ddl(step))
        connection.execute(
            "UPDATE ragstone_schema SET version = ?, oldest_writer = ?",
            (found.version + 1, max(found.oldest_writer, migration.oldest_writer)),
        )

    @contextmanager
    def _begun(self, connection: sqlite3.Connection) -> Generator[None, None, None]:
        _patiently(connection, "BEGIN IMMEDIATE")  # a plain BEGIN fails at once when it comes to write
        with committed(connection):
            yield

    def _explain(self, error: sqlite3.Error) -> str:
        text = str(error)
        place = wrong_place(self._path, "ragstone.db")
        if place is not None:
            return f"{self._path}: {place}"
        advice = (words for parts, words in _ADVICE if any(part in text for part in parts))
        return f"{self._path}: {text}; {next(advice, 'nothing was written')}"


_ADVICE = (
    (("not a database", "malformed"), "it is no SQLite database or a damaged one: move it away or name another file"),
    (("already exists",), "it is another program's: name a file of its own for ragstone"),
    (("unable to open", "readonly"), "the file and its folder must be writable for this process"),
    (("full", "disk I/O"), "is there room on the disk?"),
    (("locked",), f"another process has held it for {_PATIENCE:.0f} seconds"),
)


def _state(connection: sqlite3.Connection) -> State | None:
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ragstone_schema'").fetchone()
    if there is None:
        return None
    row: tuple[int, int] | None = connection.execute("SELECT version, oldest_writer FROM ragstone_schema").fetchone()
    return None if row is None else State(*row)


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not _taken(connection, statement, last=time.monotonic() > end):
        time.sleep(0.05)  # some are refused without waiting, such as a change of the journal


def _taken(connection: sqlite3.Connection, statement: str, *, last: bool) -> bool:
    try:
        connection.execute(statement).fetchall()
    except sqlite3.OperationalError as error:
        if last or "locked" not in str(error):
            raise
        return False
    return True


def _ddl(step: Table | Index | AddColumn) -> str:
    if isinstance(step, Index):
        return f"CREATE INDEX {step.name} ON {step.table} ({', '.join(step.columns)})"
    if isinstance(step, AddColumn):
        return f"ALTER TABLE {step.table} ADD COLUMN {_column(step.column)}"
    parts = [*map(_column, step.columns), *([f"PRIMARY KEY ({', '.join(step.key)})"] if step.key else [])]
    return f"CREATE TABLE {step.name} ({', '.join(parts)})"


def _column(column: Column) -> str:
    return f"{column.name} {_TYPES[column.kind]}{'' if column.null else ' NOT NULL'}"
