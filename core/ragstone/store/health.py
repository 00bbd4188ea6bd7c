"""A process's counters, as a sink keeps them."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


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
