"""Feedback on answers in a database: a row each, of which a sample's latest counts."""

from collections.abc import Sequence

from ragstone.live.forgetting import not_forgotten
from ragstone.live.outcomes import upsert
from ragstone.results.clean import clean_key, clean_real, clean_text
from ragstone.results.database import Transaction
from ragstone.results.traffic import Feedback

TABLE = (
    "CREATE TABLE feedback (sample_id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, value TEXT NOT NULL, comment TEXT, "
    "PRIMARY KEY (sample_id, at))"
)
_WRITE = upsert("feedback", Feedback.model_fields, ["sample_id", "at"])


def write_feedback(connection: Transaction, feedback: Sequence[Feedback]) -> int:
    """Write feedback on samples that were not forgotten since; return how many were."""
    rows = [
        {
            "sample_id": clean_key(each.sample_id),
            "value": clean_text(each.value),
            "comment": None if each.comment is None else clean_text(each.comment),
            "at": clean_real(each.at),
        }
        for each in sorted(feedback, key=lambda each: (each.sample_id, each.at))
    ]
    if kept := (rows and not_forgotten(connection, rows, "at")):
        connection.executemany(_WRITE, kept)
    return len(rows) - len(kept)
