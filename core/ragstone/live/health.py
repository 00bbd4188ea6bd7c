"""How monitors stand, in a database: a row for each process, which replaces its earlier one."""

from typing import TYPE_CHECKING

from ragstone.live.outcomes import upsert
from ragstone.plain import clean_integer, clean_key, clean_real, to_json
from ragstone.results.traffic import Health

if TYPE_CHECKING:
    from ragstone.results.connection import Transaction

TABLE = (
    "CREATE TABLE health (process TEXT PRIMARY KEY, at DOUBLE PRECISION, started_at DOUBLE PRECISION, counts TEXT, "
    "reasons TEXT, longest_queue BIGINT)"
)
_WRITE = upsert("health", Health.model_fields, ["process"])


def write_health(connection: "Transaction", health: Health) -> None:
    """Write a process's counters in place of its earlier ones."""
    row = {
        "process": clean_key(health.process),
        "at": clean_real(health.at),
        "started_at": clean_real(health.started_at),
        "counts": to_json(health.counts),
        "reasons": to_json(health.reasons),
        "longest_queue": clean_integer(health.longest_queue),
    }
    connection.execute(_WRITE, row)
