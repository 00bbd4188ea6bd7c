"""How monitors stand, in a database: a row for each process, which replaces its earlier one."""

import json
from collections.abc import Mapping
from contextlib import suppress

from pydantic import BaseModel, ConfigDict, Field

from ragstone.live.outcomes import upsert
from ragstone.results.clean import clean_key
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
        skipped: Runs of the app that gave no sample, by reason.
        missing: Samples that lacked a field which a metric requires, by the field.
        names: The names that were there where a field was missing, by the field and how often.
        read_from: Where each field of samples came from, and how often.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    process: str
    at: float
    started_at: float
    counts: Mapping[str, int]
    reasons: Mapping[str, Mapping[str, int]] = Field(default_factory=dict[str, Mapping[str, int]])
    longest_queue: int = 0
    skipped: Mapping[str, int] = Field(default_factory=dict[str, int])
    missing: Mapping[str, int] = Field(default_factory=dict[str, int])
    names: Mapping[str, Mapping[str, int]] = Field(default_factory=dict[str, Mapping[str, int]])
    read_from: Mapping[str, Mapping[str, int]] = Field(default_factory=dict[str, Mapping[str, int]])


# These stand among the reasons, as the table has no columns for them.
_AMONG_REASONS = ("skipped", "missing", "names", "read_from")
_NAMES = tuple(name for name in Health.model_fields if name not in _AMONG_REASONS)
_WRITE = upsert("health", _NAMES, ["process"])


def write_health(connection: Transaction, health: Health) -> None:
    """Write a process's counters in place of its earlier ones."""
    cells = health.model_dump()
    among = {name: cells[name] for name in _AMONG_REASONS if cells[name]}
    counters = {"counts": json.dumps(cells["counts"]), "reasons": json.dumps({**cells["reasons"], **among})}
    row = {name: cells[name] for name in _NAMES}
    connection.execute(_WRITE, {**row, **counters, "process": clean_key(health.process)})


def read_health(connection: Transaction) -> list[Health]:
    """Read how all monitors stand."""
    found: list[Health] = []
    for row in connection.execute(f"SELECT {', '.join(_NAMES)} FROM health").fetchall():  # noqa: S608 - names of ours
        cells = dict(zip(_NAMES, row, strict=True))
        with suppress(ValueError, TypeError, RecursionError):
            # A hand has changed it.
            reasons = dict(json.loads(cells["reasons"]))
            among = {name: reasons.pop(name) for name in _AMONG_REASONS if name in reasons}
            counters = {"counts": json.loads(cells["counts"]), "reasons": reasons}
            found.append(Health.model_validate({**cells, **counters, **among}))
    return found
