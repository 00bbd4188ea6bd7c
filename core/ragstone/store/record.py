"""What goes to a sink: one outcome, with what must be known of its sample."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from ragstone.outcome import Outcome
from ragstone.sample import Sample


class Record(BaseModel):
    """One outcome on its way to the sinks. `(sample_id, outcome.metric, outcome.version)` tells it from all others.

    Attributes:
        sample_id: The sample's id, the trace it came from.
        outcome: The outcome. Without `store_text` it holds no text of the app's: verdicts keep their ids, words,
            probabilities and the places of their evidence.
        judge: The judge's `model`.
        submitted_at: When the app handed the sample over, in seconds since 1970 (UTC).
        scored_at: When the outcome was there, likewise.
        rate: The probability with which a sample like this one was chosen; 1.0 where a rule chose it.
        chosen_by: "rate", or the rule that chose it.
        origin: What a sink noted where the sample was submitted (`trace_id` and `span_id` of OpenTelemetry).
        sample: The sample's texts and metadata; None unless the monitor stores them (`store_text=True`).

    Example:
        >>> from ragstone import Unscored
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> record = Record(sample_id="a", outcome=nothing, judge="j", submitted_at=0.0, scored_at=1.5)
        >>> Record.model_validate_json(record.model_dump_json()) == record
        True
    """

    model_config = ConfigDict(frozen=True, extra="ignore")  # one that a newer version put aside can still be read

    sample_id: str
    outcome: Outcome
    judge: str
    submitted_at: float
    scored_at: float
    rate: float = 1.0
    chosen_by: str = "rate"
    origin: Mapping[str, str] = Field(default_factory=dict[str, str])
    sample: Sample | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others: sample id, metric, version."""
        return self.sample_id, self.outcome.metric, self.outcome.version
