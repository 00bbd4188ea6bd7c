"""What `evaluate` and `aevaluate` are given: checked before anything is read or asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ragstone.batch.progress import Shown
from ragstone.metrics.base import Metric
from ragstone.metrics.options import check_count
from ragstone.sources import Source

if TYPE_CHECKING:
    from pathlib import Path

    from ragstone.store.journal.journal import Journal


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of `evaluate`, with its names and meanings.

    Raises:
        ValueError: One is out of range, or two metrics have one name.
        TypeError: `metrics` is no list of metrics.
    """

    samples: Source
    metrics: Sequence[Metric]
    fields: Mapping[str, str] | None
    repeat: int
    max_concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    call_timeout: float | None
    sample_timeout: float | None
    journal: "str | Path | Journal | None"
    share_replies: bool
    progress: Shown
    name: str

    def __post_init__(self) -> None:
        check_count("repeat", self.repeat)
        check_count("max_concurrency", self.max_concurrency)
        for argument in ("requests_per_minute", "tokens_per_minute", "call_timeout", "sample_timeout"):
            value: object = getattr(self, argument)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (number and 0 < cast("float", value) < math.inf):
                raise ValueError(f"{argument}: {value!r} is no number above 0, nor None")
        if self.progress not in (True, False, "auto"):
            raise ValueError(f"progress: {self.progress!r} is none of True, False, 'auto'")
        _check_metrics(self.metrics)


def _check_metrics(metrics: object) -> None:
    if isinstance(metrics, Metric) or not isinstance(metrics, Sequence):
        raise TypeError(f"metrics: is one {type(metrics).__name__}; pass a list of metrics")
    names: list[str] = []
    for metric in cast("Sequence[object]", metrics):
        if not isinstance(metric, Metric):
            raise TypeError(f"metrics: holds a {type(metric).__name__}; pass metrics such as ContextRelevancy(llm=...)")
        names.append(metric.name)
    if not names:
        raise ValueError("metrics: is empty; pass one or more")
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"metrics: holds two of the name {min(twice)!r}; evaluate twice, and compare the reports")
