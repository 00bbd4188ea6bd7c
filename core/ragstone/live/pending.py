"""Samples that wait to be scored, in memory and as the outbox keeps them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from ragstone.live.counters import Fate
from ragstone.plain import is_list, is_mapping, to_json
from ragstone.results.record import Record, sample_fields
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
    """A sample, the metrics that are still to score it, and what came of the others.

    Attributes:
        sample: A snapshot.
        sample_id: Its id.
        submitted_at: When the app submitted it, in seconds since 1970 (UTC).
        todo: The metrics that are still to score it.
        origin: What the sinks noted at that moment.
        attempts: How often it was tried before.
        records: The outcomes so far. These and what follows are not written to the outbox.
        retries: The metrics whose judge failed, to be tried again later.
        settled: What the evaluations are to be counted as once the queue has their outcomes, with the reason.
        foreign: The metrics that another monitor is to score it by.
        size: The bytes that its texts take.
    """

    sample: Sample
    sample_id: str
    submitted_at: float
    todo: list[Choice]
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    attempts: int = 0
    records: list[Record] = field(default_factory=list[Record], init=False)
    retries: list[Choice] = field(default_factory=list[Choice], init=False)
    settled: list[tuple[Fate, str]] = field(default_factory=list[tuple[Fate, str]], init=False)
    foreign: list[Choice] = field(default_factory=list[Choice], init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        sample = self.sample
        texts = [sample.user_input, sample.response, sample.reference, *sample.retrieved_contexts]
        texts += [turn.content for turn in sample.history]
        self.size = sum(map(getsizeof, texts)) + _size(sample.metadata)

    @property
    def left(self) -> list[Choice]:
        """The metrics that are still to score it, here or elsewhere, now or later."""
        return [*self.retries, *self.todo, *self.foreign]

    def to_json(self) -> str:
        """Write what the outbox keeps: the sample, its origin and what is left of it, all in ASCII. Never raises."""
        sample = sample_fields(self.sample)
        return to_json({"sample": sample, "submitted_at": self.submitted_at, "origin": self.origin, "todo": self.left})

    @classmethod
    def from_json(cls, sample_id: str, text: str, attempts: int) -> "Pending":
        """Read what the outbox kept.

        Raises:
            ValueError: The text is something else.
        """
        try:
            return _ADAPTER.validate_python({**json.loads(text), "sample_id": sample_id, "attempts": attempts})
        except (RecursionError, TypeError) as error:
            raise ValueError(f"not a sample of the outbox: {error}") from None


def _size(value: Any) -> int:  # noqa: ANN401 - of JSON
    """Count the bytes that a plain value takes, but for the containers themselves."""
    if is_mapping(value):
        return sum(map(getsizeof, value)) + sum(map(_size, value.values()))
    return sum(map(_size, value)) if is_list(value) else getsizeof(value)


_ADAPTER = TypeAdapter(Pending)
