"""The tables of a results database, which monitors write and reports read."""

from pathlib import Path
from urllib.parse import unquote

from ragstone.results.connection import Kind
from ragstone.results.record import COLUMNS

_TYPES = {"key": "TEXT NOT NULL", "text": "TEXT", "json": "TEXT", "real": "DOUBLE PRECISION", "integer": "BIGINT"}
_OUTCOMES = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in COLUMNS.items())
FORGOTTEN = "CREATE TABLE forgotten (name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)"
_TABLES = (
    f"CREATE TABLE outcomes ({_OUTCOMES}, counted BIGINT, PRIMARY KEY (sample_id, metric, version))",
    "CREATE INDEX outcomes_to_count ON outcomes (scored_at) WHERE alerts IS NOT NULL AND counted IS NULL",
    "CREATE INDEX outcomes_by_time ON outcomes (metric, submitted_at)",
    "CREATE TABLE feedback (sample_id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, value TEXT NOT NULL, comment TEXT, "
    "PRIMARY KEY (sample_id, at))",
    "CREATE TABLE health (process TEXT PRIMARY KEY, at DOUBLE PRECISION, started_at DOUBLE PRECISION, counts TEXT, "
    "reasons TEXT, longest_queue BIGINT)",
    "CREATE TABLE spending (name TEXT NOT NULL, starts_at BIGINT NOT NULL, amount DOUBLE PRECISION NOT NULL, "
    "PRIMARY KEY (name, starts_at))",
    FORGOTTEN,
    "CREATE TABLE tallies (name TEXT NOT NULL, slice TEXT NOT NULL, number BIGINT NOT NULL, samples BIGINT NOT NULL, "
    "total DOUBLE PRECISION NOT NULL, stakes TEXT NOT NULL, PRIMARY KEY (name, slice))",
    "CREATE TABLE alarms (name TEXT NOT NULL, slice TEXT NOT NULL, announced BIGINT NOT NULL, alarm TEXT NOT NULL, "
    "PRIMARY KEY (name, slice))",
)


def results_database(error: type[Exception]) -> Kind:
    """Describe a results database to whoever opens it and raises such errors."""
    mark = 0x72616752  # "ragR"
    return Kind("results database", mark, 3, _TABLES, error)


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
