"""Samples that were forgotten: noted as digests of their ids, so that no process brings back what it had in hand."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

from ragstone.plain import clean_key

Row = TypeVar("Row", bound=Mapping[str, Any])
TABLE = "CREATE TABLE forgotten (name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)"
_NOTE = "INSERT INTO forgotten VALUES (:name, :at) ON CONFLICT (name) DO UPDATE SET at = excluded.at"
_REMEMBERED = 30 * 86_400.0  # seconds; no process has a sample in hand for so long


class _Connection(Protocol):
    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> Any: ...  # noqa: ANN401 - two libraries'


def note(connection: _Connection, ids: Iterable[str]) -> None:
    """Note that samples which were submitted until now are forgotten."""
    now = time.time()
    connection.execute("DELETE FROM forgotten WHERE at < :at", {"at": now - _REMEMBERED})
    for name in sorted(_name(clean_key(sample_id)) for sample_id in ids):
        connection.execute(_NOTE, {"name": name, "at": now})


def not_forgotten(connection: _Connection, rows: Sequence[Row], at: str) -> list[Row]:
    """Return the rows whose `sample_id`, which is clean, was not forgotten since the time in their column `at`."""
    since = {"since": min(row[at] for row in rows)}
    noted = dict(map(tuple, connection.execute("SELECT name, at FROM forgotten WHERE at >= :since", since)))
    return [row for row in rows if not noted or row[at] > noted.get(_name(row["sample_id"]), -1.0)]


def _name(sample_id: str) -> str:
    return blake2b(sample_id.encode(), digest_size=16).hexdigest()


def facts_in(body: str) -> tuple[str, float, str]:
    """Return the sample's id, time and user in a sample, an outcome or a feedback as it is kept; "" for no user."""
    try:
        values: dict[str, Any] = json.loads(body)
        sample = values.get("sample") or values
        sample_id = values.get("sample_id") or values.get("id") or sample.get("id") or ""
        at = values.get("submitted_at") or values.get("at") or time.time()
        user = values.get("user_id") or sample.get("metadata", {}).get("user_id") or ""
        return str(sample_id), float(at), str(user)
    except (AttributeError, TypeError, ValueError, RecursionError):  # it is damaged
        return "", time.time(), ""
