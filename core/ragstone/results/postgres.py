"""A database on a PostgreSQL server, through psycopg: its URL, its connection, its errors."""

import re
import socket
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import quote

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as _error:
    raise ImportError(
        f'a database URL needs psycopg: pip install "ragstone[sql]" ({_error})', name=_error.name
    ) from _error

from ragstone.results.database import Database, DatabaseSchema

# A connection that goes silent without an end (a failover, a NAT that forgets it) is found dead in a minute.
_DEFAULTS: Mapping[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# How many times as long as a transaction reading may take.
_READING = 10
# PostgreSQL's lock for making tables has a number: "ragstone".
_MAKING = 0x7261_6773_746F_6E65
_AT_ONCE = 500
_SCHEMES = ("postgresql+psycopg", "postgresql", "postgres")
_PARAMETER = re.compile(r":([a-z_]+)")

Connection = psycopg.Connection[tuple[Any, ...]]


class _Statements:
    """psycopg's connection with sqlite3's methods and named parameters.

    With `cursors`, the server keeps the rows of each query until they are read, or these are closed.
    """

    def __init__(self, connection: Connection, cursors: ExitStack | None = None) -> None:
        self._connection = connection
        self._cursors = cursors
        self._queries = 0

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, /) -> Any:  # noqa: ANN401 - as sqlite3's
        if self._cursors is None:
            return self._connection.execute(_psycopg_sql(sql), parameters or {})
        self._queries += 1
        cursor = self._cursors.enter_context(self._connection.cursor(name=f"ragstone_{self._queries}"))
        cursor.itersize = _AT_ONCE
        return cursor.execute(_psycopg_sql(sql), parameters or {})

    def executemany(self, sql: str, parameters: Sequence[Mapping[str, Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_psycopg_sql(sql), parameters)


def _psycopg_sql(sql: str) -> bytes:
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")).encode()


class ServerDatabase(Database):
    """A database on a PostgreSQL server.

    Args:
        url: The database, as a user writes it.
        schema: What it holds.
        patience: Seconds that a transaction may take. Then its connection is cut, and the next one connects anew: what
            is between may acknowledge all and pass on nothing. None: any time.

    Raises:
        ValueError: It is no URL, or names another database than PostgreSQL, or another driver than psycopg.
    """

    listed = "json_array_elements_text(CAST(:ids AS json))"
    connection: Connection | None

    def __init__(self, url: str, schema: DatabaseSchema, patience: float | None) -> None:
        self._options = options_of(url)
        super().__init__(name_of(self._options), schema)
        self._patience = patience

    @contextmanager
    def transaction(self, removing: str = "") -> Generator[_Statements, None, None]:
        """Do all of it or nothing; with a table's name, once no other transaction reads that table."""
        with self._used(None if removing else self._patience) as connection, connection.transaction():
            if removing:
                connection.execute(f"LOCK TABLE {removing}".encode())
            yield _Statements(connection)

    @contextmanager
    def reading(self) -> Generator[_Statements, None, None]:
        """Read one moment of the database, also without the right to write; rows come one by one."""
        seconds = self._patience and _READING * self._patience
        with self._used(seconds) as connection, connection.transaction(), ExitStack() as cursors:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _Statements(connection, cursors)

    def vacuum(self, *tables: str) -> None:
        """Let what was deleted from the tables be written over."""
        # By a connection of its own: it may take minutes, and holds up no write.
        if tables:
            with self._explained(), self._connect() as connection:
                connection.execute(f"VACUUM {', '.join(tables)}".encode())

    @contextmanager
    def _used(self, seconds: float | None) -> Generator[Connection, None, None]:
        with self.lock, self._explained():
            try:
                connection = self._answering() or self._prepared()
                with _within(seconds, connection):
                    yield connection
            except (psycopg.Error, self.schema.error):
                # Another may have dropped the tables, or another server may answer.
                self.disconnect()
                raise

    def _answering(self) -> Connection | None:
        """The connection, unless the server was started anew meanwhile."""
        if self.connection is not None:
            try:
                with _within(self._patience, self.connection):
                    self.connection.execute("SELECT 1")
            except NoAnswer:
                raise
            except psycopg.Error:
                self.disconnect()
        return self.connection

    def _prepared(self) -> Connection:
        """A new connection to a database whose tables are there: made by one process at a time, if at all."""
        self.connection = connection = self._connect()
        with _within(self._patience, connection), connection.transaction():
            if self.schema.tables:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
            if connection.execute("SELECT to_regclass('ragstone_schema')").fetchall() == [(None,)]:
                self._make(connection)
            ((version,),) = connection.execute("SELECT max(version) FROM ragstone_schema").fetchall()
        if version != self.schema.version:
            another = self.schema.of_another_version(version, "name another database or schema")
            raise self.schema.error(f"{self.name}: {another}")
        return connection

    def _make(self, connection: Connection) -> None:
        if not self.schema.tables:
            raise self.schema.error(f"{self.name}: is not a ragstone database; a Monitor's SQLSink writes one")
        for statement in ("CREATE TABLE ragstone_schema (version BIGINT)", *self.schema.tables):
            connection.execute(statement.encode())
        connection.execute("INSERT INTO ragstone_schema VALUES (%s)", [self.schema.version])

    def _connect(self) -> Connection:
        connection = psycopg.connect(autocommit=True, **{**_DEFAULTS, **self._options})
        # What the alarms' sums are made for.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except psycopg.Error as error:
            text = str(error).strip()
            for name, secret in self._options.items():
                if "password" in name:
                    text = text.replace(str(secret), "***").replace(quote(str(secret), safe=""), "***")
            hint = ""
            if "already exists" in text:
                hint = "; it is another program's: give ragstone a database or a schema of its own"
            # The driver's own text may hold the password.
            raise self.schema.error(f"{self.name}: {type(error).__name__}: {text}{hint}") from None


class NoAnswer(psycopg.OperationalError):
    """A server, or what is before it, was silent for too long."""


@contextmanager
def _within(seconds: float | None, connection: Connection) -> Generator[None, None, None]:
    """Cut a connection if what is done takes longer than so many seconds; None: it may take any time."""
    if seconds is None:
        yield
        return
    lock, was_cut = threading.Lock(), threading.Event()

    def cut() -> None:
        with lock, suppress(OSError, psycopg.Error):
            # When all is done, its number may be another connection's.
            if not timer.finished.is_set():
                was_cut.set()
                # This wakes who waits for it.
                with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as duplicate:
                    duplicate.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
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
            timer.cancel()


def options_of(url: str) -> dict[str, Any]:
    """The options of a connection that a URL names.

    Raises:
        ValueError: It is no URL, or names another database than PostgreSQL, or another driver than psycopg.

    Example:
        >>> options_of("postgresql+psycopg://me@db.test/rag")
        {'user': 'me', 'dbname': 'rag', 'host': 'db.test'}
    """
    scheme, _, rest = url.partition("://")
    try:
        options = conninfo_to_dict(f"postgresql://{rest}")
    except psycopg.ProgrammingError:
        options = {"port": "unknown"}
    if scheme not in _SCHEMES or "@" in str(options.get("host")) or not str(options.get("port", 0)).isdecimal():
        # Without its text, which may be a password.
        raise ValueError(
            "url: is not a PostgreSQL URL; write postgresql+psycopg://user:password@host/name, "
            "or the path of a SQLite file"
        )
    return options


def name_of(options: Mapping[str, Any]) -> str:
    """The URL for names and messages: without the password, and without the query, which may hold another.

    Example:
        >>> name_of(options_of("postgresql://me:secret@db.test:5433/rag?sslpassword=secret"))
        'postgresql+psycopg://me@db.test:5433/rag'
    """
    user = f"{quote(options['user'])}@" if "user" in options else ""
    port = f":{options['port']}" if "port" in options else ""
    return f"postgresql+psycopg://{user}{options.get('host', '')}{port}/{quote(options.get('dbname', ''))}"
