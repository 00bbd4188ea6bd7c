"""Outcomes in a SQLite file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.store.base import Sink
from ragstone.store.rows import Row, health_row, outcome_row

if TYPE_CHECKING:
    from ragstone.store.health import Health
    from ragstone.store.ledger import SQLiteLedger
    from ragstone.store.record import Record
    from ragstone.store.schema import Table


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
        ...     sink.write([Record(sample_id="a", outcome=nothing, judge="j", submitted_at=0.0, scored_at=1.5)])
        ...     sink.close()
        ...     reader = sqlite3.connect(sink.path)
        ...     print(reader.execute("SELECT sample_id, reason FROM outcomes").fetchall())
        ...     reader.close()
        [('a', 'timeout')]
    """

    def __init__(self, path: str | os.PathLike[str] = "ragstone.db") -> None:
        from ragstone.store.sqlite_database import SqliteDatabase  # loads sqlite3

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

    def health(self, health: "Health") -> None:
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
        values = [{column.name: row.get(column.name) for column in table.columns} for row in rows]
        with self._database.transaction() as connection:
            connection.executemany(_upserting(table), values)


def _upserting(table: "Table") -> str:
    # All columns by name: a newer program may have added some.
    names = [column.name for column in table.columns]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in table.key)
    insert = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"  # noqa: S608 - names of ours
    return f"{insert} ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}"
