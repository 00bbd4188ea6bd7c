"""Results counted as they come: some thirty bytes for each, so that a hundred thousand rows are few megabytes."""

import heapq
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragstone.outcome import Score, UnscoredReason, Usage
from ragstone.reporting.batch.facts import Key, MetricFacts
from ragstone.reporting.batch.statistics import NOISE_REACH, Noise, bootstrap_interval, draw_noise, noise_error
from ragstone.reporting.batch.summary import Summary
from ragstone.reporting.live.facts import Cost
from ragstone.sample import Sample
from ragstone.store.record import Record

_WORST = 10
Label = tuple[int, str]
"""A row and its sample's id."""


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric's outcomes, added up.

    Attributes:
        facts: The metric, its version and its judge.
        mean: The mean over rows, each the mean of its draws; None where nothing was scored.
        low: Lower end of the mean's 95 % bootstrap interval; None with fewer than two scored rows.
        high: Its upper end, likewise.
        rows: Rows with a score: those that the mean is of.
        scored: Outcomes that are a `Score`: as many as `rows`, where each row is scored once.
        total: Outcomes.
        failures: How many are unscored, by reason; they enter no mean.
        examples: By reason, whose the first of them was and what it says.
        passed: The share of scores that reached the threshold, within [0, 1]; None without one.
        draws: The most scores that one row has.
        noise: How much the judge differs from itself; None where no row was scored twice.
        noise_error: The standard error that this alone gives the mean; None likewise.
        usage: What all of it cost.
    """

    facts: MetricFacts
    mean: float | None
    low: float | None
    high: float | None
    rows: int
    scored: int
    total: int
    failures: "dict[UnscoredReason, int]"
    examples: "dict[UnscoredReason, str]"
    passed: float | None
    draws: int
    noise: Noise | None
    noise_error: float | None
    usage: Usage

    @property
    def noise_reach(self) -> float | None:
        """How far to either side the judge's noise alone takes the mean, in 95 of 100 runs."""
        return None if self.noise_error is None else NOISE_REACH * self.noise_error


class Worst(NamedTuple):
    """A row with one of the worst scores: their mean, the worst of them, how many there are, and the sample."""

    value: float
    label: Label
    score: Score
    draws: int
    sample: Sample | None


class RowScores(NamedTuple):
    """One metric's scores by row.

    Attributes:
        places: Which rows (of `Tally.labels`) the metric has outcomes of, ascending.
        means: The mean of each one's draws; NaN where none is scored.
        draws: How many are scored.
    """

    places: NDArray[np.int64]
    means: NDArray[np.float64]
    draws: NDArray[np.int64]


class Tally:
    """All outcomes by metric, version and judge.

    Args:
        facts: The metrics; others are added as their outcomes come.

    Attributes:
        labels: Row and sample id, by place.
    """

    def __init__(self, facts: Iterable[MetricFacts] = ()) -> None:
        self.labels: list[Label] = []
        self._places: dict[Label, int] = {}
        self._columns: dict[Key, Column] = {each.key: Column(each) for each in facts}

    def add(self, results: Sequence[Record], sample: Sample | None = None) -> None:
        """Count what the metrics gave for one row, in all draws."""
        by_key: dict[Key, list[Record]] = {}
        for result in results:
            by_key.setdefault((result.outcome.metric, result.outcome.version, result.judge), []).append(result)
        for key, of_metric in by_key.items():
            first = of_metric[0]
            label = first.row, first.sample_id
            place = self._places.setdefault(label, len(self.labels))
            if place == len(self.labels):
                self.labels.append(label)
            if key not in self._columns:
                self._columns[key] = Column(MetricFacts.told_by(first.outcome, first.judge))
            self._columns[key].add(place, label, of_metric, sample)

    @property
    def columns(self) -> "tuple[Column, ...]":
        """What was counted, by metric, version and judge."""
        return tuple(self._columns.values())

    @property
    def usage(self) -> Usage:
        """What all of it cost."""
        return sum((column.totals.usage for column in self._columns.values()), Usage())


class Column:
    """One metric's outcomes.

    Args:
        facts: The metric.

    Attributes:
        facts: The metric.
        totals: Their number, the failures by reason, the usage.
        firsts: By reason, the id of the first unscored sample and what it says.
        cost: The usage, with what is not known of it counted.
    """

    def __init__(self, facts: MetricFacts) -> None:
        self.facts = facts
        self.totals = Summary()
        self.firsts: dict[UnscoredReason, tuple[str, str]] = {}
        self.cost = Cost()
        self._at = array("q")
        self._values = array("d")  # NaN where it is unscored; it stays in here
        self._passed = array("b")
        self._worst: list[tuple[float, int, Worst]] = []  # a heap, the best of them first; no two have one number
        self._rows = 0

    def add(self, place: int, label: Label, results: Sequence[Record], sample: Sample | None) -> None:
        """Count the draws of one row."""
        scores: list[Score] = []
        for result in results:
            outcome = result.outcome
            self.totals.add(outcome)
            self._spend(outcome.usage)
            self._at.append(place)
            if isinstance(outcome, Score):
                scores.append(outcome)
                self._values.append(outcome.value)
                self._passed.append(-1 if outcome.passed is None else int(outcome.passed))
            else:
                self.firsts.setdefault(outcome.reason, (label[1], outcome.detail))
                self._values.append(math.nan)
                self._passed.append(-1)
        if scores:
            sign = 1.0 if self.facts.higher_is_better else -1.0
            mean = math.fsum(score.value for score in scores) / len(scores)
            worst = min(scores, key=lambda score: sign * score.value)
            self._rows += 1
            # Of equal ones the first are kept.
            entry = -sign * mean, -self._rows, Worst(mean, label, worst, len(scores), sample)
            if len(self._worst) < _WORST:
                heapq.heappush(self._worst, entry)
            else:
                heapq.heappushpop(self._worst, entry)

    def _spend(self, usage: Usage) -> None:
        cost = self.cost
        cost.outcomes += 1
        cost.llm_calls += usage.llm_calls
        cost.embed_calls += usage.embed_calls
        cost.input_tokens += usage.input_tokens or 0
        cost.output_tokens += usage.output_tokens or 0
        cost.untold += usage.input_tokens is None or usage.output_tokens is None

    def worst(self, *, full: bool = False) -> Iterator[Worst]:
        """Yield the worst rows, worst first.

        Args:
            full: Whether those with the best possible score, which nothing cost, are among them.
        """
        bounds = self.facts.bounds
        best = None if bounds is None else bounds[1] if self.facts.higher_is_better else bounds[0]
        for *_, found in sorted(self._worst, reverse=True):
            if full or found.value != best:
                yield found

    def by_row(self) -> RowScores:
        """Return the mean of each row's draws."""
        at, values = np.array(self._at, np.int64), np.array(self._values)
        places, where = np.unique(at, return_inverse=True)
        scored = ~np.isnan(values)
        draws = np.bincount(where[scored], minlength=len(places))
        sums = np.bincount(where[scored], values[scored], minlength=len(places))
        with np.errstate(invalid="ignore"):
            return RowScores(places, sums / draws, draws.astype(np.int64))

    def noise(self) -> Noise | None:
        """Return how much the judge differs from itself; None where no row was scored twice."""
        at, values, passed = np.array(self._at, np.int64), np.array(self._values), np.array(self._passed, np.int8)
        scored = ~np.isnan(values)
        return draw_noise(at[scored], values[scored], passed[scored])

    def summary(self) -> MetricSummary:
        """Return the outcomes, added up."""
        rows = self.by_row()
        scored = rows.draws > 0
        means = rows.means[scored]
        noise = self.noise()
        low, high = bootstrap_interval(means) or (None, None)
        verdicts = [passed for passed in self._passed if passed >= 0]
        return MetricSummary(
            facts=self.facts,
            mean=math.fsum(means) / len(means) if len(means) else None,
            low=low,
            high=high,
            rows=len(means),
            scored=self.totals.scored,
            total=self.totals.total,
            failures=dict(self.totals.failures.most_common()),
            examples={reason: f"{sample_id}: {detail}" for reason, (sample_id, detail) in self.firsts.items()},
            passed=sum(verdicts) / len(verdicts) if verdicts else None,
            draws=int(rows.draws.max(initial=0)),
            noise=noise,
            noise_error=None if noise is None else noise_error(noise.sd, rows.draws[scored]),
            usage=self.totals.usage,
        )
