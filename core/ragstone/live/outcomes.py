"""Outcomes in a database: a row each, which replaces the one of the same sample, metric and version."""

from collections.abc import Iterable, Sequence
from typing import Any

from ragstone.live.forgetting import not_forgotten, user_of
from ragstone.results.clean import clean_key, clean_text
from ragstone.results.database import Transaction
from ragstone.results.record import COLUMNS, Record, to_row

_TYPES = {"key": "TEXT NOT NULL", "text": "TEXT", "json": "TEXT", "real": "DOUBLE PRECISION", "integer": "BIGINT"}
_COLUMNS = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in COLUMNS.items())
TABLES = (
    f"CREATE TABLE outcomes ({_COLUMNS}, counted BIGINT, PRIMARY KEY (sample_id, metric, version))",
    "CREATE INDEX outcomes_to_count ON outcomes (scored_at) WHERE watched IS NOT NULL AND counted IS NULL",
    "CREATE INDEX outcomes_by_time ON outcomes (metric, submitted_at)",
    "CREATE INDEX outcomes_by_scoring ON outcomes (scored_at)",
    "CREATE INDEX outcomes_by_group ON outcomes (coalesce(of_group, thread_id)) WHERE counted = 1",
)
_KEY = ("sample_id", "metric", "version")
_OF_USER = (
    "SELECT sample_id, user_id, sample FROM outcomes WHERE user_id = :user OR (user_id IS NULL AND sample LIKE :key)"
)


def upsert(table: str, columns: Iterable[str], key: Sequence[str]) -> str:
    """Return the statement that writes a row, in place of one of the same key."""
    names = list(columns)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    values = ", ".join(f":{name}" for name in names)
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608 - names of ours
    return f"{insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


_WRITE = upsert("outcomes", COLUMNS, _KEY)


def write_outcomes(connection: Transaction, records: Sequence[Record]) -> int:
    """Write the records that were not forgotten since their samples were submitted; return how many were."""
    by_key = {tuple(str(row[name]) for name in _KEY): row for row in map(to_row, records)}
    # In one order: no two processes wait for each other.
    rows = [by_key[key] for key in sorted(by_key)]
    if kept := not_forgotten(connection, rows):
        connection.executemany(_WRITE, kept)
    return len(rows) - len(kept)


def has_outcome(connection: Transaction, sample_id: str) -> bool:
    """Whether an outcome of a sample is there."""
    query = "SELECT 1 FROM outcomes WHERE sample_id = :sample_id LIMIT 1"
    return bool(connection.execute(query, {"sample_id": clean_key(sample_id)}).fetchall())


def outcomes_by_reason(connection: Transaction) -> dict[str, int]:
    """Count the outcomes: scores under "", others by the reason why there is none."""
    query = (
        "SELECT CASE WHEN status = 'scored' THEN '' ELSE reason END AS why, count(*) FROM outcomes "
        "GROUP BY why ORDER BY 2 DESC, 1"
    )
    return dict(map(tuple, connection.execute(query).fetchall()))


def used_between(connection: Transaction, since: float, until: float) -> dict[str, int]:
    """Add up what was used by outcomes that were found in a span of time: "calls", "input" and "output" tokens."""
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in ("llm_calls", "input_tokens", "output_tokens"))
    query = f"SELECT {sums} FROM outcomes WHERE scored_at >= :since AND scored_at < :until"  # noqa: S608 - names of ours
    (row,) = connection.execute(query, {"since": since, "until": until}).fetchall()
    return dict(zip(("calls", "input", "output"), map(int, row), strict=True))


def samples_of(connection: Transaction, user: str) -> set[str]:
    """Return the ids of a user's samples, also where `keep` left the user out and the sample is stored."""
    found = connection.execute(_OF_USER, {"user": clean_text(user), "key": '%"user_id"%'}).fetchall()
    rows: list[dict[str, Any]] = [dict(zip(("sample_id", "user_id", "sample"), row, strict=True)) for row in found]
    return {str(row["sample_id"]) for row in rows if user_of(row) == clean_text(user)}
