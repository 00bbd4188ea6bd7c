"""What is kept of live traffic beside its outcomes: a process's health, and what people said of answers."""

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


class Feedback(BaseModel):
    """What a person said of an answer, after it was given.

    Attributes:
        sample_id: The sample's id.
        value: "thumbs_up", "thumbs_down", or a word of the app's own.
        comment: What the person wrote beside it.
        at: When, in seconds since 1970 (UTC). The latest one of a sample counts.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sample_id: str
    value: str
    comment: str | None = None
    at: float
