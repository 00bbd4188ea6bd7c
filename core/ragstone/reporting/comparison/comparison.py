"""Which of two systems is better: their reports, sample by sample."""

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragstone.reporting.batch.facts import MetricFacts, named
from ragstone.reporting.batch.file import replacing
from ragstone.reporting.batch.report import Report
from ragstone.reporting.batch.statistics import (
    NOISE_REACH,
    TIE,
    bootstrap_interval,
    noise_error,
    permutation_p,
    sign_test_p,
)
from ragstone.reporting.batch.tally import Column, Tally
from ragstone.reporting.comparison.page import comparison_page
from ragstone.reporting.comparison.text import comparison_html, comparison_text

_MOVED = 10
_SURE = 0.05


class NotComparableError(ValueError):
    """Two reports whose scores are not comparable; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A sample whose score differs between the two.

    Attributes:
        sample_id: Its id.
        row_a: Its row in a, from 0.
        row_b: Its row in b.
        a: Its score in a, the mean of its draws.
        b: Its score in b, likewise.
    """

    sample_id: str
    row_a: int
    row_b: int
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric in both. All numbers are over the pairs: samples that have a score in both.

    Attributes:
        name: The metric's name, with version and judge where that is needed.
        facts_a: The metric in a.
        facts_b: The metric in b; of another version or judge only where that was allowed.
        pairs: Samples that are scored in both.
        only_a: Samples that are only in a.
        only_b: Samples that are only in b.
        unscored_a: Samples that are in both, and unscored in a alone.
        unscored_b: Likewise in b.
        unscored_both: Samples that are unscored in both.
        mean_a: The mean in a; None without pairs, as all that follows.
        mean_b: The mean in b.
        difference: mean_b - mean_a.
        low: Lower end of the difference's 95 % paired bootstrap interval; None with fewer than two pairs.
        high: Its upper end, likewise.
        sampling_error: The difference's standard error, s / sqrt(pairs); None with fewer than two pairs.
        noise_error: The standard error that the judge's own noise gives the difference; None where neither report
            scored a row twice.
        noise_from: Whose draws that rests on. Where one alone has draws, the other is taken to be as noisy.
        permutation_p: The p-value of the difference, if a's and b's score of a sample could as well be swapped.
        sign_p: The p-value of wins against losses, by the exact sign test; None where all are ties.
        wins: Samples on which b is better.
        ties: Samples whose scores differ by less than 1e-9.
        losses: Samples on which b is worse.
        higher_is_better: The direction.
        moved: The samples that moved most, most first.
        differences: b - a of each pair, in a's order.
    """

    name: str
    facts_a: MetricFacts
    facts_b: MetricFacts
    pairs: int
    only_a: int
    only_b: int
    unscored_a: int
    unscored_b: int
    unscored_both: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    sampling_error: float | None
    noise_error: float | None
    noise_from: Literal["both", "a", "b"] | None
    permutation_p: float | None
    sign_p: float | None
    wins: int
    ties: int
    losses: int
    higher_is_better: bool
    moved: tuple[Moved, ...]
    differences: NDArray[np.float64]

    @property
    def noise_reach(self) -> float | None:
        """How far to either side of 0 the judge's noise alone takes the difference, in 95 of 100 comparisons."""
        return None if self.noise_error is None else NOISE_REACH * self.noise_error

    @property
    def within_noise(self) -> bool:
        """Whether the difference is no greater than what the judge's own noise makes of two equal systems."""
        reach = self.noise_reach
        return reach is not None and self.difference is not None and abs(self.difference) <= reach

    @property
    def better(self) -> Literal["a", "b"] | None:
        """Which is better; None where that is not shown: the permutation test's p is 0.05 or more, or it is noise."""
        if self.permutation_p is None or not self.difference or self.permutation_p >= _SURE or self.within_noise:
            return None
        return "b" if (self.difference > 0) == self.higher_is_better else "a"


class Comparison:
    """Two reports compared. `print` shows it as a table, a notebook too.

    Attributes:
        a: The first report.
        b: The second one.
        name_a: What it is called.
        name_b: What it is called.
        metrics: The comparison by metric's name.
        left_out: The metrics that only one of them has.
        repeated_ids: How many sample ids stand more than once in a or in b; such rows are paired in their order.
    """

    def __init__(
        self,
        a: Report,
        b: Report,
        names: tuple[str, str],
        metrics: Sequence[MetricComparison],
        left_out: Sequence[str],
        repeated_ids: int,
    ) -> None:
        self.a, self.b = a, b
        self.name_a, self.name_b = names
        self.metrics = {each.name: each for each in metrics}
        self.left_out = tuple(left_out)
        self.repeated_ids = repeated_ids

    def html(self) -> str:
        """Return the comparison as a page: one text that loads nothing and runs nothing."""
        return comparison_page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page of `html` to a file.

        Raises:
            OSError: It cannot be written.
        """
        with replacing(Path(path)) as target:
            target.write(self.html().encode())

    def __str__(self) -> str:
        return comparison_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return comparison_html(self)


Given = Report | str | os.PathLike[str]


def compare(a: Given, b: Given, *, any_version: bool = False) -> Comparison:
    """Compare two systems on the samples that both have a score of, paired by the samples' ids.

    Rows without an id are paired by their place in the input. Where an id stands more than once, its rows are paired
    in order. A row that was scored several times (`repeat`) counts once, by the mean of its draws.

    Args:
        a: A report, or the path of one (`Report.load`).
        b: The other one.
        any_version: Compare scores of different versions of a metric, or by different judges, all the same. What
            differs is then not only the systems.

    Raises:
        NotComparableError: A metric's versions or judges differ, or no metric is in both.
        ReportError: A file holds no report.
        OSError: A file cannot be read.

    Example:
        >>> from ragstone import Score
        >>> from ragstone.store.record import Record
        >>> def report(values):
        ...     scores = [Score(metric="demo", value=value, reason="", version="1") for value in values]
        ...     return Report.of(Record(f"q{row}", score, "judge", row, 0) for row, score in enumerate(scores))
        >>> found = compare(report([0.5] * 8), report([0.75] * 7 + [0.25])).metrics["demo"]
        >>> found.difference, found.wins, found.losses, found.better
        (0.1875, 7, 1, None)
    """
    reports = _report(a), _report(b)
    names = _names(a, b, *reports)
    tallies = reports[0].tally(), reports[1].tally()
    pairing = _pairing(*tallies)
    shared = list(_shared(tallies, names, any_version=any_version))
    if not shared:
        have = [", ".join(dict.fromkeys(c.facts.name for c in tally.columns)) or "none" for tally in tallies]
        raise NotComparableError(f"no metric is in both: {names[0]} has {have[0]}, {names[1]} has {have[1]}")
    used = [{id(pair[side]) for pair in shared} for side in (0, 1)]
    left_out = [
        f"{column.facts.name} (only in {name})"
        for tally, name, taken in zip(tallies, names, used, strict=True)
        for column in tally.columns
        if id(column) not in taken
    ]
    facts = [column.facts for column, _ in shared]
    metrics = [_compared(named(x.facts, facts), x, y, pairing, tallies) for x, y in shared]
    return Comparison(*reports, names, metrics, left_out, pairing.repeated)


def _report(given: Given) -> Report:
    return given if isinstance(given, Report) else Report.load(given)


def _names(a: Given, b: Given, report_a: Report, report_b: Report) -> tuple[str, str]:
    def name(given: Given, report: Report, otherwise: str) -> str:
        return report.name or (otherwise if isinstance(given, Report) else Path(given).name)

    first, second = name(a, report_a, "a"), name(b, report_b, "b")
    return (first, second) if first != second else (f"{first} (a)", f"{second} (b)")


class _Pairing(NamedTuple):
    """Which place of a's rows is paired with which of b's; -1 where there is none."""

    in_b: NDArray[np.int64]  # by place in a
    repeated: int


def _pairing(a: Tally, b: Tally) -> _Pairing:
    places = {key: place for place, key in enumerate(_numbered(b))}
    in_b = np.fromiter((places.get(key, -1) for key in _numbered(a)), np.int64, len(a.labels))
    counts = [Counter(sample_id for _, sample_id in tally.labels) for tally in (a, b)]
    return _Pairing(in_b, len({key for count in counts for key, n in count.items() if n > 1}))


def _numbered(tally: Tally) -> Iterator[tuple[str, int]]:
    """Yield each row's sample id, with how often it stood before."""
    seen: Counter[str] = Counter()
    for _, sample_id in tally.labels:
        yield sample_id, seen[sample_id]
        seen[sample_id] += 1


def _shared(
    tallies: tuple[Tally, Tally], names: tuple[str, str], *, any_version: bool
) -> Iterator[tuple[Column, Column]]:
    """Yield the columns to compare: those of one metric, version and judge, then what is left of one name."""
    a, b = ({column.facts.key: column for column in tally.columns} for tally in tallies)
    for key in a:
        if key in b:
            yield a[key], b[key]
    for name in dict.fromkeys(key[0] for key in a if key not in b):
        left = [
            [column for key, column in side.items() if key[0] == name and key not in other]
            for side, other in ((a, b), (b, a))
        ]
        if not left[1]:
            continue
        if any_version and len(left[0]) == len(left[1]) == 1:
            yield left[0][0], left[1][0]
            continue
        told = [f"{of} has {', '.join(map(_told, columns))}" for of, columns in zip(names, left, strict=True)]
        way_out = (
            "there are several: take those apart that you mean"
            if any_version
            else "score both with the same, or pass any_version=True (--any-version) to compare them all the same"
        )
        raise NotComparableError(
            f"{name}: {'; '.join(told)}. Scores of different versions or judges are not comparable: {way_out}"
        )


def _told(column: Column) -> str:
    return f"version {column.facts.version} by {column.facts.judge or 'a judge that is not told'}"


def _compared(name: str, x: Column, y: Column, pairing: _Pairing, tallies: tuple[Tally, Tally]) -> MetricComparison:
    a, b = _by_place(x, len(tallies[0].labels)), _by_place(y, len(tallies[1].labels))
    partner = np.where(pairing.in_b >= 0, pairing.in_b, 0)
    both = a.there & (pairing.in_b >= 0) & (b.there[partner] if len(b.there) else False)
    at_a = np.flatnonzero(both)
    at_b = pairing.in_b[at_a]
    scored_a, scored_b = a.draws[at_a] > 0, b.draws[at_b] > 0
    scored = scored_a & scored_b
    at_a, at_b = at_a[scored], at_b[scored]
    before, after = a.means[at_a], b.means[at_b]
    differences = after - before
    n = len(differences)
    higher = x.facts.higher_is_better and y.facts.higher_is_better
    up, down = int((differences > TIE).sum()), int((differences < -TIE).sum())
    wins, losses = (up, down) if higher else (down, up)
    low, high = bootstrap_interval(differences) or (None, None)
    error, whose = _noise(x, y, a.draws[at_a], b.draws[at_b])
    return MetricComparison(
        name=name,
        facts_a=x.facts,
        facts_b=y.facts,
        pairs=n,
        only_a=int(a.there.sum() - both.sum()),
        only_b=int(b.there.sum() - both.sum()),
        unscored_a=int((~scored_a & scored_b).sum()),
        unscored_b=int((scored_a & ~scored_b).sum()),
        unscored_both=int((~scored_a & ~scored_b).sum()),
        mean_a=_mean(before),
        mean_b=_mean(after),
        difference=_mean(differences),
        low=low,
        high=high,
        sampling_error=float(differences.std(ddof=1)) / math.sqrt(n) if n > 1 else None,
        noise_error=error,
        noise_from=whose,
        permutation_p=permutation_p(np.where(np.abs(differences) <= TIE, 0.0, differences)),
        sign_p=sign_test_p(wins, losses),
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        higher_is_better=higher,
        moved=tuple(_moved(differences, before, after, at_a, at_b, tallies)),
        differences=differences,
    )


class _ByPlace(NamedTuple):
    """A metric's scores by place of the rows of its report."""

    there: NDArray[np.bool_]
    means: NDArray[np.float64]
    draws: NDArray[np.int64]


def _by_place(column: Column, size: int) -> _ByPlace:
    rows = column.by_row()
    there, means, draws = np.zeros(size, np.bool_), np.zeros(size), np.zeros(size, np.int64)
    there[rows.places] = True
    means[rows.places], draws[rows.places] = rows.means, rows.draws
    return _ByPlace(there, means, draws)


def _noise(
    x: Column, y: Column, draws_a: NDArray[np.int64], draws_b: NDArray[np.int64]
) -> tuple[float | None, Literal["both", "a", "b"] | None]:
    a, b = x.noise(), y.noise()
    if (a is None and b is None) or not len(draws_a):
        return None, None
    sd_a = a.sd if a is not None else b.sd if b is not None else 0.0
    sd_b = b.sd if b is not None else sd_a
    error = math.hypot(noise_error(sd_a, draws_a), noise_error(sd_b, draws_b))
    return error, "both" if a is not None and b is not None else "a" if b is None else "b"


def _mean(values: NDArray[np.float64]) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None


def _moved(
    differences: NDArray[np.float64],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    at_a: NDArray[np.int64],
    at_b: NDArray[np.int64],
    tallies: tuple[Tally, Tally],
) -> Iterator[Moved]:
    sizes = np.abs(differences)
    for i in np.argsort(-sizes, kind="stable")[:_MOVED]:
        if sizes[i] > TIE:
            row_a, sample_id = tallies[0].labels[at_a[i]]
            row_b, _ = tallies[1].labels[at_b[i]]
            yield Moved(sample_id, row_a, row_b, float(before[i]), float(after[i]))
