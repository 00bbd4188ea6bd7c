"""What was forgotten, and when: what was submitted before that moment is not written any more, by no process."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from ragstone.results.clean import clean_text
from ragstone.results.database import Transaction

Row = TypeVar("Row", bound=Mapping[str, Any])
TABLE = "CREATE TABLE forgotten (name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)"
_NOTE = "INSERT INTO forgotten VALUES (:name, :at) ON CONFLICT (name) DO UPDATE SET at = excluded.at"
# Seconds; a note of a later time is of a clock that was wrong.
_AHEAD = 60.0
# Seconds; no process has a sample in hand for so long.
_REMEMBERED = 30 * 86_400.0


def note_forgotten(connection: Transaction, ids: Iterable[str], user: str = "") -> None:
    """Note that what was submitted so far of these samples, or of a user, is forgotten. Digests are stored."""
    now = time.time()
    connection.execute("DELETE FROM forgotten WHERE at < :at", {"at": now - _REMEMBERED})
    names = [_digest_of_name(each) for each in ids] + ([_digest_of_name(clean_text(user), b"user")] if user else [])
    for name in sorted(names):
        connection.execute(_NOTE, {"name": name, "at": now})


def not_forgotten(connection: Transaction, rows: Sequence[Row], at: str = "submitted_at") -> list[Row]:
    """Return the rows that were not forgotten since the time in their column `at`, by sample or by user."""
    times = {"since": min(row[at] for row in rows), "until": time.time() + _AHEAD}
    query = "SELECT name, at FROM forgotten WHERE at >= :since AND at <= :until"
    noted = dict(map(tuple, connection.execute(query, times)))
    if not noted:
        return list(rows)
    kept: list[Row] = []
    for row in rows:
        names = _digest_of_name(row["sample_id"]), _digest_of_name(user_of(row), b"user")
        if all(row[at] > noted.get(name, -1.0) for name in names):
            kept.append(row)
    return kept


def user_of(row: Mapping[str, Any]) -> str:
    """Find whose a row is: by its column, else by the sample's metadata; "" where neither says."""
    return row.get("user_id") or clean_text(facts_in(row.get("sample") or "")[2])


def facts_in(body: str) -> tuple[str, float, str]:
    """Return the sample's id, time and user in a sample, an outcome or a feedback as it is kept; "" for no user."""
    try:
        values: dict[str, Any] = json.loads(body)
        sample = values.get("sample") or values
        sample_id = values.get("sample_id") or values.get("id") or sample.get("id") or ""
        at = values.get("submitted_at") or values.get("at") or time.time()
        user = values.get("user_id") or sample.get("metadata", {}).get("user_id") or ""
        return str(sample_id), float(at), str(user)
    except (AttributeError, TypeError, ValueError, RecursionError):
        # It is damaged.
        return "", time.time(), ""


def _digest_of_name(name: str, kind: bytes = b"") -> str:
    return blake2b(name.encode(), digest_size=16, person=kind).hexdigest()
