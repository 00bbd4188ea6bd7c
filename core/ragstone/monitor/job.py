"""A sample on its way through the monitor."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from sys import getsizeof
from typing import cast

from ragstone.monitor.sampling import Choice
from ragstone.monitor.tally import Fate
from ragstone.plain import to_json
from ragstone.sample import Sample
from ragstone.store.record import Record


@dataclass(slots=True)
class Job:
    """A sample, the metrics that are still to score it, and what came of the others.

    Attributes:
        sample: A snapshot.
        sample_id: Its id.
        submitted_at: When the app handed it over, in seconds since 1970 (UTC).
        todo: The metrics that are still to score it.
        origin: What the sinks noted at that moment.
        records: The outcomes so far.
        again: The metrics whose judge failed, to be tried once more later (with an outbox).
        failures: What the sinks get of each of these if it cannot be tried again.
        fates: What the others are to be counted as once the job is handed on.
        foreign: The metrics that another monitor is to score it by.
        attempts: How often it was tried before.
        saved: Whether the outbox has it.
        size: The bytes that the sample's texts and metadata take in memory.
    """

    sample: Sample
    sample_id: str
    submitted_at: float
    todo: list[Choice]
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    records: list[Record] = field(default_factory=list[Record])
    again: list[Choice] = field(default_factory=list[Choice])
    failures: list[Record] = field(default_factory=list[Record])
    fates: list[tuple[Fate, str]] = field(default_factory=list[tuple[Fate, str]])
    foreign: list[Choice] = field(default_factory=list[Choice])
    attempts: int = 0
    saved: bool = False
    size: int = field(init=False)

    def __post_init__(self) -> None:
        sample = self.sample
        texts = sample.user_input, sample.response, *sample.retrieved_contexts
        self.size = sum(map(getsizeof, texts)) + _size(sample.metadata)

    @property
    def open(self) -> int:
        """How many of the monitor's evaluations have no outcome."""
        return len(self.todo) + len(self.again)

    def copy(self) -> "Job":
        """Return a job that goes on in its place."""
        return replace(
            self,
            todo=list(self.todo),
            records=list(self.records),
            again=list(self.again),
            failures=list(self.failures),
            fates=list(self.fates),
        )

    def left(self) -> "Job":
        """Return a job of all that has no outcome."""
        todo = [*self.again, *self.todo, *self.foreign]
        return Job(self.sample, self.sample_id, self.submitted_at, todo, self.origin, attempts=self.attempts)

    def to_json(self) -> str:
        """Return what the outbox keeps: the sample, its origin and its metrics, all in ASCII. Never raises."""
        sample = {name: getattr(self.sample, name) for name in self.sample.model_fields_set}
        kept = {"sample": sample, "submitted_at": self.submitted_at, "origin": self.origin, "todo": self.todo}
        return to_json(kept)

    @classmethod
    def from_json(cls, sample_id: str, text: str, attempts: int) -> "Job":
        """Return the job that the outbox kept.

        Raises:
            ValueError: The text is none.
        """
        try:
            kept = json.loads(text)
            return cls(
                sample=Sample(**kept["sample"]),
                sample_id=sample_id,
                submitted_at=float(kept["submitted_at"]),
                todo=[
                    Choice(str(metric), str(version), float(rate), str(by))
                    for metric, version, rate, by in kept["todo"]
                ],
                origin={str(name): str(value) for name, value in kept["origin"].items()},
                attempts=attempts,
                saved=True,
            )
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
            raise ValueError(f"not a sample of the outbox: {type(error).__name__}: {error}") from None


def _size(value: object) -> int:
    """Return the bytes that a plain value takes, but for the containers themselves."""
    if isinstance(value, Mapping):
        return sum(getsizeof(key) + _size(item) for key, item in cast("Mapping[str, object]", value).items())
    if isinstance(value, (list, tuple)):
        return sum(map(_size, cast("list[object]", value)))
    return getsizeof(value)
