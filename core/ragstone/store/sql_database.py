"""A results database anywhere that SQLAlchemy reaches: its URL, connecting, migrating, transactions, the account."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import OperationalError as SQLiteOperationalError
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from ragstone.plain import KEY_LENGTH
from ragstone.store.base import SinkError
from ragstone.store.forks import ForkSafe
from ragstone.store.ledger import forgotten, total, windows
from ragstone.store.private_files import make_private
from ragstone.store.schema import SCHEMA, VERSIONS, AddColumn, Column, Index, Kind, Migration, Row, Schema, State, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SQLiteInsert
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry
    from sqlalchemy.types import TypeEngine

    from ragstone.limits.budget import Entry

_CONNECT_SECONDS = 10
_BUSY_SECONDS = 15
_MIGRATING = 0x7261_6773_746F_6E65  # PostgreSQL's lock for it has a number: "ragstone"
_TYPES: "dict[Kind, TypeEngine[Any]]" = {
    # MySQL, Oracle and SQL Server have no keys of unlimited length.
    "key": sa.String(KEY_LENGTH).with_variant(sa.Text(), "postgresql", "sqlite"),
    "text": sa.Text(),
    "real": sa.Double(),
    "integer": sa.BigInteger(),
}


class SqlDatabase(ForkSafe):
    """One process's way into the database, by one connection. Any thread may use it; they take turns.

    Args:
        url: The database, checked.
        where: Its name for messages, without the password.
        schema: What this program knows.

    Attributes:
        schema: What this program knows.
    """

    def __init__(self, url: sa.URL, where: str, schema: Schema = SCHEMA) -> None:
        super().__init__()
        self.schema = schema
        self._url = url
        self._where = where
        self._engine: sa.Engine | None = None
        self._tables = {name: _table(schema.table(name)) for name in ("outcomes", "health", "spending")}
        self._versions = _table(VERSIONS)
        self._migrated = False

    def table(self, name: str) -> sa.Table:
        """Return a table as SQLAlchemy sees it."""
        return self._tables[name]

    @contextmanager
    def transaction(self) -> Generator[sa.Connection, None, None]:
        """Do all of it or nothing.

        Raises:
            SinkError: The database cannot be reached, refuses, or is none that this version can write to.
        """
        with self.alone():
            try:
                if not self._migrated:
                    with self._opened().begin() as connection:
                        self._migrate(connection)
                self._migrated = True
                with self._opened().begin() as connection:
                    # Reading the row keeps a newer program from migrating before this transaction has ended.
                    self.schema.missing(self._state(connection), self._where)
                    yield connection
            except SQLAlchemyError as error:
                self._migrated = False  # another may have dropped the tables, or another server may answer
                raise SinkError(self._explain(error)) from None  # the driver's own text may hold the password

    def let_go(self) -> None:
        """Close the connection."""
        engine, self._engine, self._migrated = self._engine, None, False
        if engine is not None:
            engine.dispose()

    def disown(self) -> object:
        """Forget the connection without closing it."""
        engine, self._engine, self._migrated = self._engine, None, False
        return engine

    def upsert(self, connection: sa.Connection, name: str, rows: Sequence[Row]) -> None:
        """Write rows, in place of those that are there by their key. Of two with one key, the later one counts."""
        table, keys = self.table(name), self.schema.table(name).key
        by_key = {tuple(str(row[key]) for key in keys): row for row in rows}
        # All columns by name, as a newer program may have added some; rows in one order, so that none deadlock.
        values = [{column.name: by_key[key].get(column.name) for column in table.columns} for key in sorted(by_key)]
        insert = self.insert(table)
        if insert is not None:
            changes = {column.name: insert.excluded[column.name] for column in table.columns if column.name not in keys}
            connection.execute(insert.on_conflict_do_update(index_elements=list(keys), set_=changes), values)
            return
        same = sa.and_(*(table.c[key] == sa.bindparam(f"old_{key}") for key in keys))
        connection.execute(table.delete().where(same), [{f"old_{key}": row[key] for key in keys} for row in values])
        connection.execute(table.insert(), values)

    def insert(self, table: sa.Table) -> "PostgresInsert | SQLiteInsert | None":
        """Return an insert that knows ON CONFLICT; None where the database does not."""
        if self._url.get_backend_name() == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as postgres_insert

            return postgres_insert(table)
        if self._url.get_backend_name() == "sqlite":
            from sqlalchemy.dialects.sqlite import insert as sqlite_insert

            return sqlite_insert(table)
        return None

    def _opened(self) -> sa.Engine:
        if self._engine is None:
            self._engine = _engine(self._url)
        return self._engine

    def _migrate(self, connection: sa.Connection) -> None:
        if connection.dialect.name == "postgresql":  # one process at a time, also while there is no table to lock
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATING)))
        there = sa.inspect(connection).has_table(VERSIONS.name)
        if there and not self.schema.missing(self._state(connection), self._where):
            return
        if not there:
            connection.execute(CreateTable(self._versions))
            connection.execute(self._versions.insert(), {"version": 0, "oldest_writer": 0})
        elif connection.dialect.name == "postgresql":  # wait for those that are writing, as they have read the row
            connection.execute(sa.text(f"LOCK TABLE {VERSIONS.name} IN ACCESS EXCLUSIVE MODE"))
        for migration in self.schema.missing(self._state(connection), self._where):
            self._step(connection, migration)

    def _step(self, connection: sa.Connection, migration: Migration) -> None:
        state = self._state(connection)
        for step in migration.steps:
            connection.execute(_ddl(step, self._tables, connection.dialect))
        connection.execute(
            self._versions.update(),
            {"version": state.version + 1, "oldest_writer": max(state.oldest_writer, migration.oldest_writer)},
        )

    def _state(self, connection: sa.Connection) -> State:
        row = connection.execute(sa.select(self._versions.c.version, self._versions.c.oldest_writer)).first()
        return State(0, 0) if row is None else State(int(row.version), int(row.oldest_writer))

    def _explain(self, error: SQLAlchemyError) -> str:
        text = str(getattr(error, "orig", None) or error).strip().split("\n(Background on this error")[0]
        for secret in _secrets(self._url):
            text = text.replace(secret, "***")
        hint = ""
        if "already exists" in text:
            hint = "; it is another program's: give ragstone a database or a schema of its own"
        return f"{self._where}: {type(error).__name__}: {text}{hint}"


class SQLLedger:
    """The account that all processes on one database share. Windows older than two days are forgotten.

    Args:
        database: The database; see `SQLSink.ledger`.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._spending = database.table("spending")

    def spend(self, entries: "Sequence[Entry]", /) -> str | None:
        """Enter all amounts, or none: then return the name of the limit that refused. Atomic between processes.

        Raises:
            SinkError: The database cannot be reached. Nothing is spent then.
        """
        if not entries:
            return None
        new = False
        with self._database.transaction() as connection:
            # One window after the other, in the same order everywhere: so no two transactions wait for each other.
            sums: list[dict[str, object]] = []
            for (name, starts_at), mine in windows(entries).items():
                before = self._locked(connection, name, starts_at)
                if before is None:
                    new, before = True, self._made(connection, name, starts_at)
                amount = total(before, mine)
                if amount is None:
                    connection.rollback()  # with the empty windows that were made
                    return mine[0].name
                sums.append({"old_name": name, "old_start": starts_at, "amount": amount})
            same = sa.and_(
                self._spending.c.name == sa.bindparam("old_name"),
                self._spending.c.starts_at == sa.bindparam("old_start"),
            )
            connection.execute(self._spending.update().where(same), sums)
        if new:
            with suppress(SinkError):  # it is spent all the same; the next window tries again
                self._forget(forgotten(entries))
        return None

    def _locked(self, connection: sa.Connection, name: str, starts_at: int) -> float | None:
        """Keep a window's row from other transactions and return its sum; None where there is no row."""
        columns = self._spending.c
        row = sa.select(columns.amount).where(columns.name == name, columns.starts_at == starts_at)
        return connection.execute(row.with_for_update()).scalar()

    def _made(self, connection: sa.Connection, name: str, starts_at: int) -> float:
        """Make a window's row and keep it; return its sum, which is not 0 where another transaction was first."""
        row = {"name": name, "starts_at": starts_at, "amount": 0.0}
        insert = self._database.insert(self._spending)
        amount = None
        while amount is None:  # once, unless another transaction forgets it at this moment
            if insert is not None:
                connection.execute(insert.on_conflict_do_nothing(), row)
            else:
                with suppress(IntegrityError), connection.begin_nested():
                    connection.execute(self._spending.insert(), row)
            amount = self._locked(connection, name, starts_at)
        return amount

    def _forget(self, before: int) -> None:
        old = self._spending.c.starts_at < before
        with self._database.transaction() as connection:
            connection.execute(self._spending.delete().where(old))


def read_url(url: str | sa.URL) -> sa.URL:
    """Return the URL, checked, with psycopg as PostgreSQL's driver where it names none.

    Raises:
        ImportError: The driver is not installed.
        ValueError: It is no URL, or names an unknown database, one in memory, or a driver for async code.

    Example:
        >>> read_url("postgres://me@db.test/rag").drivername
        'postgresql+psycopg'
    """
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        example = "postgresql+psycopg://user:password@host/name"
        raise ValueError(f"url: is no database URL; write it as {example}") from None  # the text may be a password
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    try:
        dialect = parsed.get_dialect()
        dialect.import_dbapi()
    except NoSuchModuleError:
        raise ValueError(
            f"url: SQLAlchemy knows no database {parsed.drivername!r} (is its package installed?)"
        ) from None
    except ImportError as error:
        extra = ': pip install "ragstone[sql]"' if parsed.drivername == "postgresql+psycopg" else ""
        raise ImportError(f"url: {parsed.drivername} needs a driver{extra} ({error})", name=error.name) from error
    if dialect.is_async:
        raise ValueError(f"url: {parsed.drivername} is for async code; name a driver such as postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ValueError("url: names a database in memory, which no second connection could read; name a file")
    return parsed


def shown_url(url: sa.URL) -> str:
    """Return the URL for names and messages: without the password, and without the query, which may hold another.

    Example:
        >>> shown_url(sa.make_url("postgresql+psycopg://me:secret@db.test:5433/rag?sslpassword=secret"))
        'postgresql+psycopg://me@db.test:5433/rag'
    """
    bare = sa.URL.create(url.drivername, url.username, None, url.host, url.port, url.database)
    return bare.render_as_string(hide_password=True)


def _secrets(url: sa.URL) -> list[str]:
    user = url.set(query={}).render_as_string(hide_password=False).partition("://")[2].rpartition("@")[0]
    secrets = [url.password, user.partition(":")[2]]  # as it is, and as it is written in a URL
    secrets += [str(value) for name, value in url.query.items() if "password" in name]
    return [secret for secret in secrets if secret]


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        options: dict[str, str] = {}
        connect: dict[str, int] = {}
        if url.get_backend_name() == "postgresql":
            options["isolation_level"] = "READ COMMITTED"  # what the account's row locks are made for
            if "connect_timeout" not in url.query:
                connect["connect_timeout"] = _CONNECT_SECONDS
        return sa.create_engine(
            url, pool_pre_ping=True, pool_size=1, max_overflow=0, hide_parameters=True, connect_args=connect, **options
        )
    # Opened for one transaction only: SQLite's connections must not be inherited by a forked child.
    engine = sa.create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "do_connect", _sqlite_connecting)
    event.listen(engine, "connect", _sqlite_connected)
    event.listen(engine, "begin", _sqlite_begun)
    return engine


def _sqlite_connecting(
    _dialect: sa.Dialect, _entry: "ConnectionPoolEntry", arguments: list[Any], _options: dict[str, Any]
) -> None:
    if not str(arguments[0]).startswith("file:"):  # a URI, whose reader chose its own terms
        make_private(Path(arguments[0]))


def _sqlite_connected(connection: "DBAPIConnection", _entry: "ConnectionPoolEntry") -> None:
    connection.isolation_level = None  # sqlite3 begins no transaction of its own
    cursor = connection.cursor()
    with suppress(SQLiteOperationalError):  # another process may be changing it right now
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _sqlite_begun(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _ddl(
    step: Table | Index | AddColumn, tables: dict[str, sa.Table], dialect: sa.Dialect
) -> "CreateTable | CreateIndex | sa.TextClause":
    if isinstance(step, Table):
        return CreateTable(_table(step))
    table = tables[step.table]
    if isinstance(step, Index):
        return CreateIndex(sa.Index(step.name, *(table.c[name] for name in step.columns)))
    column = CreateColumn(table.c[step.column.name]).compile(dialect=dialect)
    return sa.text(f"ALTER TABLE {step.table} ADD COLUMN {column}")


def _table(table: Table) -> sa.Table:
    return sa.Table(table.name, sa.MetaData(), *(_column(column, table) for column in table.columns))


def _column(column: Column, table: Table) -> "sa.Column[object]":
    key = column.name in table.key
    return sa.Column(column.name, _TYPES[column.kind], primary_key=key, nullable=column.null, autoincrement=False)
