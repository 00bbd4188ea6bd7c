"""Outcomes in any database that SQLAlchemy reaches, PostgreSQL above all."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.store.base import Health, Sink
from ragstone.store.schema import Row, health_row, outcome_row

if TYPE_CHECKING:
    from sqlalchemy import URL

    from ragstone.store.record import Record
    from ragstone.store.sql_database import SQLLedger


class SQLSink(Sink):
    """Keeps outcomes in a database that any number of processes and machines may share.

    Needs the extra `ragstone[sql]`. Nothing is connected before the first write, which makes the tables. An outcome
    replaces the one of the same sample, metric and version. Tested with PostgreSQL and SQLite; other databases that
    SQLAlchemy knows take the same statements, with a delete and an insert in place of an upsert.

    Args:
        url: The database, as SQLAlchemy writes it: "postgresql+psycopg://user:password@host/name". "postgres://" and
            "postgresql://" mean that too. Where other tables of the same names are there, let it use a schema of its
            own: "?options=-csearch_path%3Dragstone". Pickling the sink writes the password down.

    Attributes:
        name: "sql:" and the URL without password and query.

    Raises:
        ImportError: SQLAlchemy or the database's driver is not installed.
        ValueError: The URL is none, or names a database in memory or a driver for async code.

    Example:
        >>> SQLSink("postgresql://me:secret@db.test/rag")
        SQLSink('postgresql+psycopg://me@db.test/rag')
    """

    def __init__(self, url: "str | URL") -> None:
        try:
            from ragstone.store.sql_database import SqlDatabase, read_url, shown_url
        except ImportError as error:
            raise ImportError(
                f'SQLSink needs SQLAlchemy: pip install "ragstone[sql]" ({error})', name=error.name
            ) from error
        self._url = read_url(url)
        self._shown = shown_url(self._url)
        self.name = f"sql:{self._shown}"
        self._database = SqlDatabase(self._url, self._shown)

    def __repr__(self) -> str:
        return f"SQLSink({self._shown!r})"

    def __reduce__(self) -> "tuple[type[SQLSink], tuple[str]]":
        return type(self), (self._url.render_as_string(hide_password=False),)

    def write(self, records: "Sequence[Record]") -> None:
        """Keep the records, all or none.

        Raises:
            SinkError: They could not be kept: the database cannot be reached, refuses, or has a schema that this
                version cannot write to. The message says which, never the password.
        """
        if records:
            self._upsert("outcomes", [outcome_row(record) for record in records])

    def health(self, health: Health) -> None:
        """Keep a process's counters in place of its earlier ones.

        Raises:
            SinkError: As for `write`.
        """
        self._upsert("health", [health_row(health)])

    def ledger(self) -> "SQLLedger":
        """Return the account that all processes on this database share."""
        from ragstone.store.sql_database import SQLLedger

        return SQLLedger(self._database)

    def close(self) -> None:
        """Close the connection. A later `write` opens another."""
        self._database.close()

    def _upsert(self, name: str, rows: Sequence[Row]) -> None:
        with self._database.transaction() as connection:
            self._database.upsert(connection, name, rows)
