"""Outcomes in a SQLite file."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.store.base import Health, Sink, SinkError
from ragstone.store.schema import (
    SCHEMA,
    VERSIONS,
    AddColumn,
    Column,
    Index,
    Row,
    Schema,
    State,
    Table,
    health_row,
    outcome_row,
)
from ragstone.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from ragstone.store.ledger import SQLiteLedger
    from ragstone.store.record import Record

_PATIENCE = 15.0
_TYPES = {"key": "TEXT", "text": "TEXT", "real": "REAL", "integer": "INTEGER"}


class SQLiteSink(Sink):
    """Keeps outcomes in a SQLite file that any number of threads and processes on one machine may share.

    The file is made at the first write. An outcome replaces the one of the same sample, metric and version.

    Args:
        path: The file. Its folder must be there.

    Attributes:
        path: The file, as an absolute path.
        name: "sqlite:" and the path.

    Raises:
        ValueError: The path is ":memory:", which no second connection could read.

    Example:
        >>> import sqlite3, tempfile
        >>> from ragstone import Unscored
        >>> from ragstone.sinks import Record
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = SQLiteSink(Path(folder) / "ragstone.db")
        ...     sink.write([Record("a", nothing, judge="j", scored_at=1.5)])
        ...     sink.close()
        ...     reader = sqlite3.connect(sink.path)
        ...     print(reader.execute("SELECT sample_id, reason FROM outcomes").fetchall())
        ...     reader.close()
        [('a', 'timeout')]
    """

    def __init__(self, path: str | os.PathLike[str] = "ragstone.db") -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise ValueError(f"path: is {os.fspath(path)!r}; name a file, such as 'ragstone.db'")
        self.path = Path(path).absolute()
        self.name = f"sqlite:{self.path}"
        self._database = SqliteDatabase(self.path)

    def __repr__(self) -> str:
        return f"SQLiteSink({str(self.path)!r})"

    def __reduce__(self) -> "tuple[type[SQLiteSink], tuple[Path]]":
        return type(self), (self.path,)

    def write(self, records: "Sequence[Record]") -> None:
        """Keep the records, all or none.

        Raises:
            SinkError: They could not be kept: another process has held the file for 15 seconds, the disk is full, the
                file is none that this version can write to. The message says what to do.
        """
        if records:
            self._upsert("outcomes", [outcome_row(record) for record in records])

    def health(self, health: Health) -> None:
        """Keep a process's counters in place of its earlier ones.

        Raises:
            SinkError: As for `write`.
        """
        self._upsert("health", [health_row(health)])

    def ledger(self) -> "SQLiteLedger":
        """Return the account that all processes on this file share."""
        from ragstone.store.ledger import SQLiteLedger

        return SQLiteLedger(self._database)

    def close(self) -> None:
        """Close the file. A later `write` opens it again."""
        self._database.close()

    def _upsert(self, name: str, rows: Sequence[Row]) -> None:
        table = self._database.schema.table(name)
        names = [column.name for column in table.columns]  # all by name: a newer program may have added some
        changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in table.key)
        insert = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"  # noqa: S608 - names of ours
        values = [{name: row.get(name) for name in names} for row in rows]
        with self._database.transaction() as connection:
            connection.executemany(f"{insert} ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}", values)


class SqliteDatabase(SqliteFile):
    """A results database in a SQLite file: migrated when it is opened. A file that was replaced is begun anew.

    Args:
        path: The file. It is made at the first transaction.
        schema: What this program knows.

    Attributes:
        schema: What this program knows.
    """

    def __init__(self, path: Path, schema: Schema = SCHEMA) -> None:
        super().__init__(path, _PATIENCE, SinkError)
        self.schema = schema

    def ready(self, connection: sqlite3.Connection) -> bool:
        """Whether the file has seen all migrations."""
        return not self.schema.missing(_state(connection), str(self.path))

    def make(self, connection: sqlite3.Connection) -> None:
        """Do the migrations that the file has not seen."""
        state = _state(connection)
        missing = self.schema.missing(state, str(self.path))
        if state is None:
            connection.execute(_ddl(VERSIONS))
            state = State(0, 0)
            connection.execute("INSERT INTO ragstone_schema (version, oldest_writer) VALUES (0, 0)")
        for migration in missing:
            for step in migration.steps:
                connection.execute(_ddl(step))
            state = State(state.version + 1, max(state.oldest_writer, migration.oldest_writer))
        connection.execute("UPDATE ragstone_schema SET version = ?, oldest_writer = ?", state)


def _state(connection: sqlite3.Connection) -> State | None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ragstone_schema'").fetchone() is None:
        return None
    row: tuple[int, int] | None = connection.execute("SELECT version, oldest_writer FROM ragstone_schema").fetchone()
    return None if row is None else State(*row)


def _ddl(step: Table | Index | AddColumn) -> str:
    if isinstance(step, Index):
        return f"CREATE INDEX {step.name} ON {step.table} ({', '.join(step.columns)})"
    if isinstance(step, AddColumn):
        return f"ALTER TABLE {step.table} ADD COLUMN {_column(step.column)}"
    parts = [*map(_column, step.columns), *([f"PRIMARY KEY ({', '.join(step.key)})"] if step.key else [])]
    return f"CREATE TABLE {step.name} ({', '.join(parts)})"


def _column(column: Column) -> str:
    return f"{column.name} {_TYPES[column.kind]}{'' if column.null else ' NOT NULL'}"
