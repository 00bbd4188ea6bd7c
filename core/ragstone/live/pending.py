"""Samples that wait to be scored, as the outbox keeps them; and notes of those that were forgotten."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import TypeAdapter

from ragstone.plain import clean_key, to_json
from ragstone.results.record import sample_fields
from ragstone.sample import Sample

Row = TypeVar("Row", bound=Mapping[str, Any])
_NOTE = "INSERT INTO forgotten VALUES (:name, :at) ON CONFLICT (name) DO UPDATE SET at = excluded.at"
_REMEMBERED = 30 * 86_400.0  # seconds; no process has a sample in hand for so long


class Choice(NamedTuple):
    """A metric that is to score a sample, and how it came to be chosen.

    Attributes:
        metric: The metric's name.
        version: The metric's version.
        rate: The probability with which a sample like this one is chosen.
        by: "rate", or the name of the rule that chose it.
        drawn: Whether sampling at the metric's rate chose the sample, too, where `by` is a rule.
    """

    metric: str
    version: str
    rate: float
    by: str
    drawn: bool = False

    @property
    def represents(self) -> bool:
        """Whether sampling alone would have chosen the sample: only such samples stand for all traffic."""
        return self.drawn or self.by == "rate"


@dataclass(slots=True)
class Pending:
    """A sample with the metrics that are still to score it.

    Attributes:
        sample: A snapshot.
        sample_id: Its id.
        submitted_at: When the app handed it over, in seconds since 1970 (UTC).
        todo: The metrics that are still to score it.
        origin: What the sinks noted at that moment.
        attempts: How often it was tried before.
    """

    sample: Sample
    sample_id: str
    submitted_at: float
    todo: list[Choice]
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    attempts: int = 0

    def to_json(self) -> str:
        """Return what the outbox keeps: the sample, its origin and its metrics, all in ASCII. Never raises."""
        sample = sample_fields(self.sample)
        todo = [choice if choice.drawn else choice[:4] for choice in self.todo]  # as earlier versions read it
        return to_json({"sample": sample, "submitted_at": self.submitted_at, "origin": self.origin, "todo": todo})

    @classmethod
    def from_json(cls, sample_id: str, text: str, attempts: int) -> "Pending":
        """Return what the outbox kept.

        Raises:
            ValueError: The text is something else.
        """
        try:
            return _ADAPTER.validate_python({**json.loads(text), "sample_id": sample_id, "attempts": attempts})
        except (RecursionError, TypeError) as error:
            raise ValueError(f"not a sample of the outbox: {error}") from None


_ADAPTER = TypeAdapter(Pending)


class _Connection(Protocol):
    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> Any: ...  # noqa: ANN401 - two libraries'


def note_forgotten(connection: _Connection, ids: Iterable[str]) -> None:
    """Note that samples which were submitted until now are forgotten, as digests of their ids.

    So no process brings back what it had in hand.
    """
    now = time.time()
    connection.execute("DELETE FROM forgotten WHERE at < :at", {"at": now - _REMEMBERED})
    for name in sorted(_digest(clean_key(sample_id)) for sample_id in ids):
        connection.execute(_NOTE, {"name": name, "at": now})


def not_forgotten(connection: _Connection, rows: Sequence[Row], at: str) -> list[Row]:
    """Return the rows whose `sample_id`, which is clean, was not forgotten since the time in their column `at`."""
    since = {"since": min(row[at] for row in rows)}
    noted = dict(map(tuple, connection.execute("SELECT name, at FROM forgotten WHERE at >= :since", since)))
    return [row for row in rows if not noted or row[at] > noted.get(_digest(row["sample_id"]), -1.0)]


def _digest(sample_id: str) -> str:
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
