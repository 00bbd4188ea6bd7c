"""How monitors stand, in a database: a row for each process, which replaces its earlier one."""

import json
from collections.abc import Mapping
from contextlib import suppress

from pydantic import BaseModel, ConfigDict, Field

from ragstone.live.outcomes import upsert
from ragstone.plain import clean_key
from ragstone.results.database import Transaction

TABLE = (
    "CREATE TABLE health (process TEXT PRIMARY KEY, at DOUBLE PRECISION, started_at DOUBLE PRECISION, counts TEXT, "
    "reasons TEXT, longest_queue BIGINT)"
)


class Health(BaseModel):
    """How one process's monitor stands.

    Attributes:
        process: A name for the process that no other has.
        at: When, in seconds since 1970 (UTC).
        started_at: When the process took its first sample, likewise.
        counts: Evaluations (one sample by one metric) by what became of them: accepted, scored, unscored, dropped,
            not_sampled, over_budget, duplicate, spooled, pending.
        reasons: The same by reason: {"dropped": {"queue_full": 3}}.
        longest_queue: The most samples that ever waited at once.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    process: str
    at: float
    started_at: float
    counts: Mapping[str, int]
    reasons: Mapping[str, Mapping[str, int]] = Field(default_factory=dict[str, Mapping[str, int]])
    longest_queue: int = 0


_NAMES = tuple(Health.model_fields)
_COUNTERS = ("counts", "reasons")
_WRITE = upsert("health", _NAMES, ["process"])


def write_health(connection: Transaction, health: Health) -> None:
    """Write a process's counters in place of its earlier ones."""
    cells = health.model_dump()
    counters = {name: json.dumps(cells[name]) for name in _COUNTERS}
    connection.execute(_WRITE, {**cells, **counters, "process": clean_key(health.process)})


def read_health(connection: Transaction) -> list[Health]:
    """Read how all monitors stand."""
    found: list[Health] = []
    for row in connection.execute(f"SELECT {', '.join(_NAMES)} FROM health").fetchall():  # noqa: S608 - names of ours
        cells = dict(zip(_NAMES, row, strict=True))
        with suppress(ValueError, TypeError, RecursionError):
            # A hand has changed it.
            counters = {name: json.loads(cells[name]) for name in _COUNTERS}
            found.append(Health.model_validate({**cells, **counters}))
    return found
