"""Which database a URL means."""

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError


def read(url: str | sa.URL) -> sa.URL:
    """Return the URL, checked, with psycopg as PostgreSQL's driver where it names none.

    Raises:
        ImportError: The driver is not installed.
        ValueError: It is no URL, or names an unknown database, one in memory, or a driver for async code.

    Example:
        >>> read("postgres://me@db.test/rag").drivername
        'postgresql+psycopg'
    """
    try:
        found = sa.make_url(url)
    except (ArgumentError, ValueError):
        example = "postgresql+psycopg://user:password@host/name"
        raise ValueError(f"url: is no database URL; write it as {example}") from None  # the text may be a password
    if found.drivername in ("postgres", "postgresql"):
        found = found.set(drivername="postgresql+psycopg")
    try:
        dialect = found.get_dialect()
        dialect.import_dbapi()
    except NoSuchModuleError:
        raise ValueError(
            f"url: SQLAlchemy knows no database {found.drivername!r} (is its package installed?)"
        ) from None
    except ImportError as error:
        extra = ': pip install "ragstone[sql]"' if found.drivername == "postgresql+psycopg" else ""
        raise ImportError(f"url: {found.drivername} needs a driver{extra} ({error})", name=error.name) from error
    if dialect.is_async:
        raise ValueError(f"url: {found.drivername} is for async code; name a driver such as postgresql+psycopg")
    if found.get_backend_name() == "sqlite" and found.database in (None, "", ":memory:"):
        raise ValueError("url: names a database in memory, which no second connection could read; name a file")
    return found


def shown(url: sa.URL) -> str:
    """Return the URL for names and messages: without the password, and without the query, which may hold another.

    Example:
        >>> shown(sa.make_url("postgresql+psycopg://me:secret@db.test:5433/rag?sslpassword=secret"))
        'postgresql+psycopg://me@db.test:5433/rag'
    """
    bare = sa.URL.create(url.drivername, url.username, None, url.host, url.port, url.database)
    return bare.render_as_string(hide_password=True)
