"""What a report knows of a metric, once the metric itself is gone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragstone.outcome import Outcome
from ragstone.reporting.live.costly import bounds_of

if TYPE_CHECKING:
    from ragstone.metrics.base import Metric

Key = tuple[str, str, str]
"""Metric, version, judge: what may be averaged together."""


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """A metric, in one version, by one judge.

    Attributes:
        name: The metric's name.
        version: Its version; it changes with its prompts.
        judge: The judge's `model`; "" where a file does not say it.
        bounds: Least and greatest possible value; None where that is not known.
        higher_is_better: The direction.
        threshold: What `Score.passed` is about; None without one, or where that is not known.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> MetricFacts.of(ContextRelevancy(llm=FakeLLM(lambda request: ""), threshold=0.7)).threshold
        0.7
    """

    name: str
    version: str
    judge: str
    bounds: tuple[float, float] | None = None
    higher_is_better: bool = True
    threshold: float | None = None

    @classmethod
    def of(cls, metric: "Metric | MetricFacts") -> "MetricFacts":
        """Return the facts of a metric."""
        if isinstance(metric, MetricFacts):
            return metric
        return cls(
            name=metric.name,
            version=metric.version,
            judge=metric.judge.model,
            bounds=metric.bounds,
            higher_is_better=metric.higher_is_better,
            threshold=metric.threshold,
        )

    @classmethod
    def told_by(cls, outcome: Outcome, judge: str) -> "MetricFacts":
        """Return what an outcome tells of its metric; higher is taken to be better."""
        return cls(outcome.metric, outcome.version, judge, bounds_of(outcome.metric))

    @property
    def key(self) -> Key:
        """What may be averaged together."""
        return self.name, self.version, self.judge


def named(facts: MetricFacts, among: Iterable[MetricFacts]) -> str:
    """Return the metric's name, with version and judge where others among these have the name too.

    Example:
        >>> one, two = MetricFacts("demo", "1", "j"), MetricFacts("demo", "2", "j")
        >>> named(one, [one]), named(one, [one, two])
        ('demo', 'demo (version 1, judge j)')
    """
    if sum(other.name == facts.name for other in among) < 2:
        return facts.name
    return f"{facts.name} (version {facts.version}, judge {facts.judge or 'not told'})"
