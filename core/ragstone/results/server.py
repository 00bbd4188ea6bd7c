"""A results database on a PostgreSQL server, through SQLAlchemy: its URL, its connection, its errors."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
    from sqlalchemy.pool import NullPool
except ImportError as _error:
    raise ImportError(
        f'a database URL needs SQLAlchemy: pip install "ragstone[sql]" ({_error})', name=_error.name
    ) from _error

from ragstone.results.connection import ForkSafe, Kind, Query

_CONNECT_SECONDS = 10
_MAKING = 0x7261_6773_746F_6E65  # PostgreSQL's lock for it has a number: "ragstone"
_AT_ONCE = 500


class _Statements:
    """SQLAlchemy's connection with sqlite3's methods."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, /) -> "sa.CursorResult[Any]":
        return self._connection.execute(sa.text(sql), parameters)

    def executemany(self, sql: str, parameters: Iterable[Mapping[str, Any]], /) -> None:
        self._connection.execute(sa.text(sql), list(parameters))


class ServerDatabase(ForkSafe[sa.Engine]):
    """One process's way into the database, by one connection. Any thread may use it; they take turns.

    Args:
        url: The database, checked.
        kind: What it holds.
    """

    def __init__(self, url: sa.URL, kind: Kind) -> None:
        super().__init__()
        self._url = url
        self._kind = kind

    @contextmanager
    def transaction(self, removing: str = "") -> Generator[_Statements, None, None]:
        """Do all of it or nothing; with a table's name, once no other transaction reads that table.

        Raises:
            SinkError: The database cannot be reached, refuses, or is none that this version can write to.
        """
        with self.lock, _explained(self._url, self._kind.error):
            try:
                if self.opened is None:
                    self.opened = _engine(self._url, pool_pre_ping=True, pool_size=1, max_overflow=0)
                    with self.opened.begin() as connection:
                        _make(connection, shown_url(self._url), self._kind)
                with self.opened.begin() as connection:
                    if removing:
                        connection.execute(sa.text(f"LOCK TABLE {removing}"))
                    yield _Statements(connection)
            except (SQLAlchemyError, self._kind.error):
                self.reopen()  # another may have dropped the tables, or another server may answer
                raise

    def vacuum(self, *tables: str) -> None:
        """Let what was deleted from the tables be written over."""
        if not tables:
            return
        with _explained(self._url, self._kind.error), _engine(self._url, poolclass=NullPool).connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(sa.text(f"VACUUM {', '.join(tables)}"))

    def shut(self, opened: sa.Engine) -> None:
        """Close the connection."""
        opened.dispose()


@contextmanager
def reading(url: sa.URL, kind: Kind) -> Generator[Query, None, None]:
    """Give what answers queries: all of one moment, and without a change.

    Args:
        url: The database, checked.
        kind: What it holds. Its error says that it cannot be read, is of another version, or another program's.
    """
    engine = _engine(url, poolclass=NullPool)
    try:
        with _explained(url, kind.error), engine.connect() as connection:
            connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if not sa.inspect(connection).has_table("ragstone_schema"):
                raise kind.error(f"{shown_url(url)}: is not a ragstone database; a Monitor's SQLSink writes one")
            _check_version(connection, shown_url(url), kind)
            streamed = connection.execution_options(yield_per=_AT_ONCE)  # as they come, not all at once
            yield lambda sql, parameters: map(tuple, streamed.execute(sa.text(sql), parameters))
    finally:
        engine.dispose()


def read_url(url: str) -> sa.URL:
    """Return the URL, checked, with psycopg as the driver where it names none.

    Raises:
        ImportError: The driver is not installed.
        ValueError: It is no URL, or names another database than PostgreSQL, or a driver for async code.

    Example:
        >>> read_url("postgres://me@db.test/rag").drivername
        'postgresql+psycopg'
    """
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        example = "postgresql+psycopg://user:password@host/name"
        raise ValueError(f"url: is not a database URL; write {example}") from None  # the text may be a password
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "postgresql":
        raise ValueError(f"url: {parsed.drivername!r} is not supported; use PostgreSQL or sqlite:///PATH")
    try:
        dialect = parsed.get_dialect()
        dialect.import_dbapi()
    except NoSuchModuleError:
        raise ValueError(f"url: SQLAlchemy has no driver {parsed.drivername!r} (is it installed?)") from None
    except ImportError as error:
        extra = ': pip install "ragstone[sql]"' if parsed.drivername == "postgresql+psycopg" else ""
        raise ImportError(f"url: {parsed.drivername} needs a driver{extra} ({error})", name=error.name) from error
    if dialect.is_async:
        raise ValueError(f"url: {parsed.drivername} is an async driver; use another, such as postgresql+psycopg")
    return parsed


def shown_url(url: sa.URL) -> str:
    """Return the URL for names and messages: without the password, and without the query, which may hold another.

    Example:
        >>> shown_url(sa.make_url("postgresql+psycopg://me:secret@db.test:5433/rag?sslpassword=secret"))
        'postgresql+psycopg://me@db.test:5433/rag'
    """
    bare = sa.URL.create(url.drivername, url.username, None, url.host, url.port, url.database)
    return bare.render_as_string(hide_password=True)


def _engine(url: sa.URL, **options: object) -> sa.Engine:
    connect = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    # READ COMMITTED is what the account's sums are made for.
    isolation = "READ COMMITTED"
    return sa.create_engine(url, isolation_level=isolation, hide_parameters=True, connect_args=connect, **options)


def _make(connection: sa.Connection, where: str, kind: Kind) -> None:
    """Make the tables unless they are there, one process at a time."""
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MAKING})
    if not sa.inspect(connection).has_table("ragstone_schema"):
        for statement in ("CREATE TABLE ragstone_schema (version BIGINT)", *kind.tables):
            connection.execute(sa.text(statement))
        connection.execute(sa.text("INSERT INTO ragstone_schema VALUES (:version)"), {"version": kind.version})
    _check_version(connection, where, kind)


def _check_version(connection: sa.Connection, where: str, kind: Kind) -> None:
    version = connection.execute(sa.text("SELECT version FROM ragstone_schema")).scalar()
    if version is None or not (kind.oldest or kind.version) <= version <= kind.version:
        raise kind.error(
            f"{where}: was made by another ragstone ({kind.noun} version {version}, this one reads {kind.version}); "
            "use that ragstone, or another database or schema"
        )


@contextmanager
def _explained(url: sa.URL, explained: type[Exception]) -> Generator[None, None, None]:
    try:
        yield
    except SQLAlchemyError as error:
        text = str(getattr(error, "orig", None) or error).strip().split("\n(Background on this error")[0]
        for secret in _secrets(url):
            text = text.replace(secret, "***")
        hint = ""
        if "already exists" in text:
            hint = "; it is another program's: give ragstone a database or a schema of its own"
        # The driver's own text may hold the password.
        raise explained(f"{shown_url(url)}: {type(error).__name__}: {text}{hint}") from None


def _secrets(url: sa.URL) -> list[str]:
    user = url.set(query={}).render_as_string(hide_password=False).partition("://")[2].rpartition("@")[0]
    secrets = [url.password, user.partition(":")[2]]  # as it is, and as it is written in a URL
    secrets += [str(value) for name, value in url.query.items() if "password" in name]
    return [secret for secret in secrets if secret]
