"""A results database on a PostgreSQL server, through psycopg: its URL, its connection, its errors."""

import re
import socket
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as _error:
    raise ImportError(
        f'a database URL needs psycopg: pip install "ragstone[sql]" ({_error})', name=_error.name
    ) from _error

from ragstone.results.connection import ForkSafe, Kind, Query

# A connection that goes silent without an end (a failover, a NAT that forgets it) is found dead in a minute.
_DEFAULTS: Mapping[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_READING = 10  # times as long as a transaction may take
_MAKING = 0x7261_6773_746F_6E65  # PostgreSQL's lock for it has a number: "ragstone"
_AT_ONCE = 500
_SCHEMES = ("postgresql+psycopg", "postgresql", "postgres")
_PARAMETER = re.compile(r":([a-z_]+)")

Connection = psycopg.Connection[tuple[Any, ...]]


class _Statements:
    """psycopg's connection with sqlite3's methods and named parameters."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, /) -> "psycopg.Cursor[tuple[Any, ...]]":
        return self._connection.execute(_psycopg_sql(sql), parameters or {})

    def executemany(self, sql: str, parameters: Sequence[Mapping[str, Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_psycopg_sql(sql), parameters)


def _psycopg_sql(sql: str) -> bytes:
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")).encode()


class ServerDatabase(ForkSafe[Connection]):
    """One process's way into the database, by one connection. Any thread may use it; they take turns.

    Args:
        url: The database, checked.
        kind: What it holds.
        patience: Seconds that a transaction may take. Then its connection is cut, and the next one connects anew: what
            is between may acknowledge all and pass on nothing.
    """

    def __init__(self, url: str, kind: Kind, patience: float) -> None:
        super().__init__()
        self._url = url
        self._kind = kind
        self._patience = patience

    @contextmanager
    def transaction(self, removing: str = "") -> Generator[_Statements, None, None]:
        """Do all of it or nothing; with a table's name, once no other transaction reads that table.

        Raises:
            SinkError: The database cannot be reached, refuses, or is none that this version can write to.
        """
        with self._used(None if removing else self._patience) as connection, connection.transaction():
            if removing:
                connection.execute(f"LOCK TABLE {removing}".encode())
            yield _Statements(connection)

    @contextmanager
    def reading(self) -> Generator[_Statements, None, None]:
        """Read what is of one moment, as a role may that cannot write, too.

        Raises:
            SinkError: As for `transaction`.
        """
        with self._used(_READING * self._patience) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _Statements(connection)

    def vacuum(self, *tables: str) -> None:
        """Let what was deleted from the tables be written over."""
        if tables:  # by a connection of its own: it may take minutes, and holds up no write
            with _explained(self._url, self._kind.error), _connected(self._url) as connection:
                connection.execute(f"VACUUM {', '.join(tables)}".encode())

    def shut(self, opened: Connection) -> None:
        """Close the connection."""
        opened.close()

    @contextmanager
    def _used(self, seconds: float | None) -> Generator[Connection, None, None]:
        with self.lock, _explained(self._url, self._kind.error):
            try:
                if self.opened is not None:
                    self._look(self.opened)
                if self.opened is None:
                    self.opened = _connected(self._url)
                    with _within(self._patience, self.opened), self.opened.transaction():
                        _make(self.opened, shown_url(self._url), self._kind)
                with _within(seconds, self.opened):
                    yield self.opened
            except (psycopg.Error, self._kind.error):
                self.reopen()  # another may have dropped the tables, or another server may answer
                raise

    def _look(self, opened: Connection) -> None:
        try:
            with _within(self._patience, opened):
                opened.execute("SELECT 1")
        except NoAnswer:
            raise
        except psycopg.Error:  # the server was started anew meanwhile
            self.reopen()


class NoAnswer(psycopg.OperationalError):
    """A server, or what is before it, was silent for too long."""


@contextmanager
def _within(seconds: float | None, connection: Connection) -> Generator[None, None, None]:
    """Cut a connection if what is done takes longer than so many seconds; None: it may take any time."""
    lock, done, was_cut = threading.Lock(), threading.Event(), threading.Event()

    def cut() -> None:
        with lock, suppress(OSError, psycopg.Error):
            if not done.is_set():  # or its number may be another connection's by now
                was_cut.set()
                of = socket.socket(fileno=connection.fileno())
                try:
                    of.shutdown(socket.SHUT_RDWR)  # which wakes who waits for it
                finally:
                    of.detach()

    timer = threading.Timer(seconds or 0.0, cut)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield
    except psycopg.Error:
        if was_cut.is_set():
            raise NoAnswer(
                f"no answer within {seconds:g} s; the connection was cut, the next try makes another"
            ) from None
        raise
    finally:
        with lock:
            done.set()
        timer.cancel()


@contextmanager
def reading(url: str, kind: Kind) -> Generator[Query, None, None]:
    """Give what answers queries: all of one moment, and without a change.

    Args:
        url: The database, checked.
        kind: What it holds. Its error says that it cannot be read, is of another version, or another program's.
    """
    with _explained(url, kind.error), _connected(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True

        def query(sql: str, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
            with connection.cursor(name="ragstone") as cursor:  # on the server: rows as they come, not all at once
                cursor.itersize = _AT_ONCE
                yield from cursor.execute(_psycopg_sql(sql), parameters)

        with connection.transaction():
            if not _is_made(connection):
                raise kind.error(f"{shown_url(url)}: is not a ragstone database; a Monitor's SQLSink writes one")
            _check_version(connection, shown_url(url), kind)
            yield query


def read_url(url: str) -> str:
    """Return the URL as PostgreSQL reads it, checked.

    Raises:
        ValueError: It is no URL, or names another database than PostgreSQL, or another driver than psycopg.

    Example:
        >>> read_url("postgresql+psycopg://me@db.test/rag")
        'postgresql://me@db.test/rag'
    """
    scheme, _, rest = url.partition("://")
    try:
        has = conninfo_to_dict(f"postgresql://{rest}")
    except psycopg.ProgrammingError:
        has = {"port": "unknown"}
    if scheme not in _SCHEMES or "@" in str(has.get("host")) or not str(has.get("port", 0)).isdecimal():
        raise ValueError(  # without its text, which may be a password
            "url: is not a PostgreSQL URL; write postgresql+psycopg://user:password@host/name, "
            "or the path of a SQLite file"
        )
    return f"postgresql://{rest}"


def shown_url(url: str) -> str:
    """Return the URL for names and messages: without the password, and without the query, which may hold another.

    Example:
        >>> shown_url("postgresql://me:secret@db.test:5433/rag?sslpassword=secret")
        'postgresql+psycopg://me@db.test:5433/rag'
    """
    has = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    user = f"{quote(has['user'])}@" if "user" in has else ""
    port = f":{has['port']}" if "port" in has else ""
    return f"postgresql+psycopg://{user}{has.get('host', '')}{port}/{quote(has.get('dbname', ''))}"


def _connected(url: str) -> Connection:
    options: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(url)}
    connection = psycopg.connect(autocommit=True, **options)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # what the alarms' sums are made for
    return connection


def _make(connection: Connection, where: str, kind: Kind) -> None:
    """Make the tables unless they are there, one process at a time."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
    if not _is_made(connection):
        for statement in ("CREATE TABLE ragstone_schema (version BIGINT)", *kind.tables):
            connection.execute(statement.encode())
        connection.execute("INSERT INTO ragstone_schema VALUES (%s)", [kind.version])
    _check_version(connection, where, kind)


def _is_made(connection: Connection) -> bool:
    return connection.execute("SELECT to_regclass('ragstone_schema')").fetchall() != [(None,)]


def _check_version(connection: Connection, where: str, kind: Kind) -> None:
    ((version,),) = connection.execute("SELECT max(version) FROM ragstone_schema").fetchall()
    if version != kind.version:
        raise kind.error(f"{where}: {kind.of_another_version(version, 'name another database or schema')}")


@contextmanager
def _explained(url: str, explained: type[Exception]) -> Generator[None, None, None]:
    try:
        yield
    except psycopg.Error as error:
        text = str(error).strip()
        for name, secret in conninfo_to_dict(url).items():
            if "password" in name:
                text = text.replace(str(secret), "***").replace(quote(str(secret), safe=""), "***")
        hint = ""
        if "already exists" in text:
            hint = "; it is another program's: give ragstone a database or a schema of its own"
        # The driver's own text may hold the password.
        raise explained(f"{shown_url(url)}: {type(error).__name__}: {text}{hint}") from None
