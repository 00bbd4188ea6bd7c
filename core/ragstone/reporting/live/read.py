"""Reading a results database without changing it: a file of SQLite, or a URL through SQLAlchemy."""

import contextlib
import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from ragstone.store.schema import SCHEMA

if TYPE_CHECKING:
    import sqlite3

    import sqlalchemy

    Row = tuple[Any, ...]

_AT_ONCE = 500
_NOT_OURS = "is no ragstone database: it has no table ragstone_schema; a Monitor's SQLiteSink or SQLSink writes one"


class DatabaseError(Exception):
    """A database cannot be read. The message names it, says what is wrong with it and what to do."""


class Database(Protocol):
    """A database that was opened for reading; all that is read of it is of one moment."""

    name: str

    def rows(self, sql: str, parameters: "Mapping[str, float | str]", /) -> "Iterator[Row]":
        """Yield a query's rows as they come. `:name` stands for a parameter."""
        ...


@contextlib.contextmanager
def open_database(database: str | os.PathLike[str]) -> Generator[Database, None, None]:
    """Open a database, for reading alone, for as long as the block runs.

    Args:
        database: The path of a SQLite file, or an SQLAlchemy URL ("postgresql+psycopg://user@host/name").

    Raises:
        DatabaseError: There is none, it is another program's, it cannot be read, or its schema is too new.
        ImportError: A URL needs SQLAlchemy or a driver that is not installed; the message says what to install.
    """
    given = os.fspath(database)
    scheme, is_url, rest = given.partition("://")
    if not is_url:
        opened = _open_file(Path(given))
    elif scheme.partition("+")[0] == "sqlite":  # SQLAlchemy would make a file that is not there
        opened = _open_file(Path(unquote(rest.removeprefix("/").partition("?")[0])))
    else:
        opened = _open_url(given)
    with opened as found:
        _check_schema(found)
        yield found


def _check_schema(database: Database) -> None:
    rows = list(database.rows("SELECT version, oldest_writer FROM ragstone_schema", {}))
    if not rows:
        raise DatabaseError(f"{database.name}: {_NOT_OURS}")
    version, oldest = rows[0]
    known = SCHEMA.state.version
    if oldest > known:  # what still takes this version's rows can be read by it too
        raise DatabaseError(
            f"{database.name}: was written by a newer ragstone (its schema is version {version}, this one knows "
            f"{known}); upgrade ragstone here"
        )


@contextlib.contextmanager
def _open_file(path: Path) -> Generator[Database, None, None]:
    import sqlite3  # only where it is used: importing ragstone stays cheap

    if not path.exists():
        raise DatabaseError(f"{path}: no such file; give the path of a Monitor's SQLiteSink, or a database URL")
    if not path.is_file():
        raise DatabaseError(f"{path}: is no file; give the path of a Monitor's SQLiteSink, or a database URL")
    try:
        with contextlib.closing(_connect(path)) as connection:
            yield _File(str(path), connection)
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text or "no such table: ragstone_schema" in text:
            raise DatabaseError(f"{path}: {_NOT_OURS}") from error
        raise DatabaseError(f"{path}: cannot be read: {text}") from error


def _connect(path: Path) -> "sqlite3.Connection":
    import sqlite3

    uri = path.absolute().as_uri()
    try:
        return _begun(f"{uri}?mode=ro")
    except sqlite3.OperationalError:
        # Even a reader writes beside a file in WAL mode. In a folder that takes no writing nobody else does either.
        if os.access(path.parent, os.W_OK) or not os.access(path, os.R_OK) or _has_log(path):
            raise
        return _begun(f"{uri}?immutable=1")


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _begun(uri: str) -> "sqlite3.Connection":
    import sqlite3

    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0)
    try:
        connection.text_factory = _decoded
        connection.execute("BEGIN")  # all queries see one moment
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # here the file is really opened
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _as_text(value: object) -> object:
    return _decoded(value) if isinstance(value, bytes) else value


class _File:
    def __init__(self, name: str, connection: "sqlite3.Connection") -> None:
        self.name = name
        self._connection = connection

    def rows(self, sql: str, parameters: Mapping[str, float | str], /) -> "Iterator[Row]":
        with contextlib.closing(self._connection.execute(sql, dict(parameters))) as cursor:
            for row in cursor:
                # A BLOB where a text should be is another program's doing, and no reason to fail.
                yield tuple(map(_as_text, row)) if bytes in map(type, row) else row


@contextlib.contextmanager
def _open_url(url: str) -> Generator[Database, None, None]:
    try:
        from sqlalchemy import NullPool, create_engine
        from sqlalchemy.exc import ProgrammingError, SQLAlchemyError

        from ragstone.store.sql_url import read, shown
    except ImportError as error:
        message = f'a database URL needs SQLAlchemy: pip install "ragstone[sql]" ({error})'
        raise ImportError(message, name=error.name) from error
    try:
        parsed = read(url)
    except ValueError as error:
        raise DatabaseError(str(error)) from None
    name = shown(parsed)
    engine = create_engine(parsed, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            if parsed.get_backend_name() == "postgresql":  # all queries see one moment, and none can write
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            yield _Server(name, connection)
    except SQLAlchemyError as error:
        if isinstance(error, ProgrammingError) and "ragstone_schema" in str(error):
            raise DatabaseError(f"{name}: {_NOT_OURS}") from None
        raise DatabaseError(f"{name}: cannot be read: {_told(error, parsed.password)}") from None
    finally:
        engine.dispose()


def _told(error: Exception, password: object) -> str:
    """Return what the driver says, on one line, without the password, which some drivers repeat."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    return text.replace(str(password), "***") if password else text


class _Server:
    def __init__(self, name: str, connection: "sqlalchemy.Connection") -> None:
        self.name = name
        self._connection = connection

    def rows(self, sql: str, parameters: Mapping[str, float | str], /) -> "Iterator[Row]":
        from sqlalchemy import text

        options = {"yield_per": _AT_ONCE}  # as they come, not all at once
        with self._connection.execute(text(sql), dict(parameters), execution_options=options) as found:
            for row in found:
                yield tuple(row)
