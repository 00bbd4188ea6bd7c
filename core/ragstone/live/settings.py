"""How a monitor is set up: the same in every process."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ragstone.live.alarms import Alarm
from ragstone.live.budget import Budget
from ragstone.live.pending import Choice
from ragstone.live.redaction import Redact
from ragstone.live.sampling import Sampling
from ragstone.live.sink import Sink
from ragstone.metrics.base import Metric
from ragstone.options import Count, Seconds, checked_fields
from ragstone.results.record import Watched

WhenFull = Literal["drop_oldest", "block"]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """How many samples may wait in a process, and how it judges them.

    Args:
        size: Samples that may wait.
        bytes: Memory for their texts (without ids) and metadata. Larger samples are dropped.
        when_full: What happens when the queue is full. "drop_oldest": the sample that waited longest is dropped.
            "block": `submit` waits; on a thread that runs an event loop the new sample is dropped instead.
        workers: Judging threads, with one evaluation each. 0, with an outbox: this process only writes samples to the
            outbox, and `ragstone live worker` judges and delivers them.
        timeout: Seconds for one evaluation. Then its calls are cancelled, and the outcome is `Unscored("timeout")`.

    Raises:
        ValueError: An option is not of its type; the message names it.

    Example:
        >>> Queue(size=100, when_full="block").workers
        4
    """

    size: Count = 10_000
    bytes: Count = 256_000_000
    when_full: WhenFull = "drop_oldest"
    workers: Annotated[int, Field(strict=True, ge=0)] = 4
    timeout: Seconds = 300.0

    def __post_init__(self) -> None:
        for _ in checked_fields(self, ()):
            pass


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Seconds between tries and looks, and what is held meanwhile. Of a pair, the first doubles up to the second.

    Attributes:
        judge: After its failure; eleven tries last about four hours.
        sink: After its failure.
        outbox: After its failure.
        locked: While another process holds the outbox.
        looks: Between looks into the outbox.
        adoptions: Between looks for what ended processes left in it.
        outcomes: How many may wait in memory for a sink.
        hanging: How many threads may hang for each worker, before judging stands still.
        clock: Of the budget's minutes and days.
    """

    judge: tuple[float, float] = (30.0, 3_600.0)
    sink: tuple[float, float] = (0.1, 5.0)
    outbox: float = 1.0
    locked: float = 5.0
    looks: float = 1.0
    adoptions: float = 15.0
    outcomes: int = 10_000
    hanging: int = 8
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a `Monitor`, checked.

    Attributes:
        metrics: By name and version.
        choices: The metrics with their rates.
        alerts: What they watch, by the metric's name.
    """

    metrics: Mapping[tuple[str, str], Metric]
    choices: Sequence[Choice]
    sinks: Sequence[Sink]
    sampling: Sampling
    queue: Queue
    budget: Budget | None
    redact: Redact | None
    outbox: Path | None
    store_text: bool
    keep: frozenset[str]
    group: str | None
    alerts: Mapping[str, Watched]
    on_alarm: Callable[[Alarm], object] | None
    waits: Waits
