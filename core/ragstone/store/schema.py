"""The tables of a results database, in the SQL that SQLite and PostgreSQL both know."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ragstone.store.base import SinkError
from ragstone.store.record import COLUMNS
from ragstone.store.sqlite_file import Kind

VERSION = 1
"""Of the tables. A database of another version is refused."""

Row = Mapping[str, str | float | int | None]
Query = Callable[[str, Row], Iterable[tuple[Any, ...]]]
_TYPES = {"key": "TEXT NOT NULL", "text": "TEXT", "json": "TEXT", "real": "DOUBLE PRECISION", "integer": "BIGINT"}
_OUTCOMES = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in COLUMNS.items())
TABLES = (
    f"CREATE TABLE outcomes ({_OUTCOMES}, PRIMARY KEY (sample_id, metric, version))",
    "CREATE INDEX outcomes_by_time ON outcomes (metric, submitted_at)",
    "CREATE TABLE health (process TEXT PRIMARY KEY, at DOUBLE PRECISION, started_at DOUBLE PRECISION, counts TEXT, "
    "reasons TEXT, longest_queue BIGINT)",
    "CREATE TABLE spending (name TEXT NOT NULL, starts_at BIGINT NOT NULL, amount DOUBLE PRECISION NOT NULL, "
    "PRIMARY KEY (name, starts_at))",
)
RESULTS = Kind(noun="results database", mark=0x72616752, version=VERSION, tables=TABLES, error=SinkError)  # "ragR"
NOT_OURS = "is no ragstone database: a Monitor's SQLiteSink or SQLSink writes one"


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
        raise ValueError(
            "url: SQLite's is sqlite:///PATH of a file: ragstone opens it itself, with no driver or option"
        )
    return Path(path)
