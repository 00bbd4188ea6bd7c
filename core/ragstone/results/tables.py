"""What a results database is called, and where it is; monitors write it and reports read it."""

from pathlib import Path
from urllib.parse import unquote

from ragstone.results.connection import Kind


def results_database(error: type[Exception], *tables: str) -> Kind:
    """Describe a results database to whoever opens it and raises such errors.

    Who writes names the tables to make; who names none only reads, also what version 2 wrote.
    """
    return Kind("results database", 0x72616752, 3, tables, error, oldest=3 if tables else 2)  # "ragR"


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL; None for the URL of another database.

    Raises:
        ValueError: The URL names a driver, options, or no file.

    Example:
        >>> sqlite_path("sqlite:///ragstone.db").name, sqlite_path("postgresql://db.test/rag")
        ('ragstone.db', None)
    """
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    path = unquote(rest[1:])
    if scheme != "sqlite" or rest[:1] != "/" or "?" in rest or path in ("", ":memory:"):
        raise ValueError("url: for SQLite write sqlite:///PATH, without driver or options")
    return Path(path)
