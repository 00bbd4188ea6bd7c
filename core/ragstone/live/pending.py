"""Samples that wait to be scored, as the outbox keeps them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import TypeAdapter

from ragstone.plain import to_json
from ragstone.results.record import sample_fields
from ragstone.sample import Sample


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
        return to_json({"sample": sample, "submitted_at": self.submitted_at, "origin": self.origin, "todo": self.todo})

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
