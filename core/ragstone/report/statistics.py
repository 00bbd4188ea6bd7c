"""The arithmetic of a report: means with their intervals, tests of paired differences.

Sums over a stream of numbers take constant memory. Random draws start from a fixed seed: the same numbers give the
same answer.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


TIE = 1e-9
"""Two scores that differ by less are the same."""
NORMAL_95 = 1.959964
"""How many standard deviations to either side hold 95 of 100 normally distributed numbers."""
LEAST_GROUPS = 5
"""Fewer groups say too little of others for an interval."""
# So many numbers are held at once: 32 MB.
_CHUNK = 1 << 22
_SEED = 20_260_101
_PERMUTATIONS = 10_000
# Of so many differences, all 2 ** n changes of sign are fewer than that.
_EXACT = 13
MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800
# 1970-01-05: weeks begin there, and hours and days too.
_MONDAY = 4 * DAY
# At each end.
_LEVEL = 0.025
# From so many times its width on, the narrower interval stands beside an interval.
_WIDER = 1.5
RAREST = 0.05
"""Rarer faults than this share of the draws are ignored where a difference is decided."""

# The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of scores with its 95 % confidence interval.

    Attributes:
        n: How many scores it is of.
        mean: Their mean, weighted where they have weights.
        low: The interval's lower end; None where there is no interval (one score, bounds that are not known, fewer
            than five groups).
        high: Its upper end, likewise.
        groups: Of how many groups they are, such as "20 documents"; "" where each is one of its own.
        narrower: The ends that hold if nothing rarer exists than these scores show; None where the interval is at most
            1.5 times as wide.
        size: How many independent scores of equal weight say as much.
    """

    n: int
    mean: float
    low: float | None = None
    high: float | None = None
    groups: str = ""
    narrower: tuple[float, float] | None = None
    size: float = 0.0

    @property
    def lacks(self) -> str:
        """Why it has no ends: "one value", so few groups ("4 documents"), or "bounds unknown"; "" where it has some."""
        few = self.groups if self.narrower is None else ""
        return "" if self.low is not None else "one value" if self.n == 1 else few or "bounds unknown"

    def ends(self, rarest: float = RAREST) -> tuple[float, float] | None:
        """The ends to decide by, if nothing is looked for that breaks fewer than a share `rarest` of the draws.

        They are the narrower ones where so many draws would have shown it. None where there are none.

        Example:
            >>> wide, narrow = (-0.05, 0.05), (-0.01, 0.01)
            >>> [Interval(n, 0.0, *wide, narrower=narrow, size=n).ends() for n in (60, 80)]
            [(-0.05, 0.05), (-0.01, 0.01)]
        """
        if self.narrower is not None and self.size >= draws_to_show(rarest):
            return self.narrower
        return None if self.low is None or self.high is None else (self.low, self.high)


def draws_to_show(share: float) -> float:
    """The draws that show a fault of this share 39 times in 40: log(.025) / log(1 - share).

    Example:
        >>> round(draws_to_show(0.05), 1), draws_to_show(0.0)
        (71.9, inf)
    """
    return math.log(_LEVEL) / math.log1p(-share) if share else math.inf


class Mean:
    """A weighted mean of numbers as they come, in constant memory, with an interval that holds for any bounded numbers.

    With weights w, n = sum(w)^2 / sum(w^2) numbers of equal weight say as much, with a variance s^2 of

        N / (N - 1) * sum(w^2 (x - m)^2) / sum(w^2)

    of N numbers with the mean m. Few numbers may hide others: twenty scores of 1.0 do not show that no other is 0. So
    each end of the interval is that of the numbers and of one more, at the bound on its side: the 2.5 % (or 97.5 %)
    quantile of the beta distribution from that bound to the number furthest from it, with the mean of these n + 1
    numbers and, S being their sum of squares, the variance S / (n + 1) / (n + 2). It is at least as far from the mean
    as a share 1 - .025^(1/n) at the bound would take it, for n draws show none of that share once in 40 times.

    This is Gaffke's bound (2005), matched by moments. Of yes and no it is Clopper and Pearson's exact interval
    (Biometrika 1934). It assumes no more than that the numbers are a random draw, within their bounds. No proof is
    known beyond yes and no; benchmarks/README.md shows what it covers.

    The narrower interval is Student's, moved by Johnson's (JASA 1978) correction for the skew g of the numbers,
    g (2 z^2 + 1) / (6 n) standard deviations.

    Example:
        >>> mean = Mean()
        >>> for value in (0.5, 0.7, 0.9):
        ...     mean.add(value)
        >>> estimate = mean.estimate((0.0, 1.0))
        >>> round(estimate.mean, 3), round(estimate.low, 3), round(estimate.high, 3)
        (0.7, 0.205, 0.931)
    """

    __slots__ = ("greatest", "least", "n", "origin", "w", "ww", "wwx", "wwxx", "wwxxx", "wx")

    def __init__(self) -> None:
        self.n = 0
        self.least, self.greatest = math.inf, -math.inf
        # The first number. All are counted from it, so that close ones keep their digits.
        self.origin = 0.0
        self.w = self.wx = self.ww = self.wwx = self.wwxx = self.wwxxx = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a number. The weight is greater than 0."""
        if not self.n:
            self.origin = value
        self.n += 1
        if value < self.least:
            self.least = value
        if value > self.greatest:
            self.greatest = value
        x, square = value - self.origin, weight * weight
        self.w += weight
        self.wx += weight * x
        self.ww += square
        self.wwx += square * x
        self.wwxx += square * x * x
        self.wwxxx += square * x * x * x

    def merge(self, other: "Mean") -> None:
        """Count all numbers of another mean."""
        if not self.n:
            self.origin = other.origin
        d = other.origin - self.origin
        self.n += other.n
        self.least, self.greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        self.w += other.w
        self.wx += other.wx + d * other.w
        self.ww += other.ww
        self.wwx += other.wwx + d * other.ww
        self.wwxx += other.wwxx + 2 * d * other.wwx + d * d * other.ww
        self.wwxxx += other.wwxxx + 3 * d * other.wwxx + 3 * d * d * other.wwx + d * d * d * other.ww

    @property
    def mean(self) -> float | None:
        """The mean; None of no number."""
        return self.origin + self.wx / self.w if self.n else None

    @property
    def weighted(self) -> bool:
        """Whether the numbers have different weights."""
        return self.w * self.w < self.n * self.ww * (1 - 1e-9)

    def estimate(self, bounds: tuple[float, float] | None = None, *, times: float = 1.0) -> Interval | None:
        """The mean with its interval; None for no number.

        Args:
            bounds: Least and greatest possible number. Without finite bounds there is the narrower interval alone.
            times: How many times as many numbers of the same kind there would be.
        """
        if not self.n:
            return None
        m = self.wx / self.w
        mean = self.origin + m
        size = max(1 + 1e-6, times * self.w * self.w / self.ww)
        squares = max(0.0, self.wwxx - 2 * m * self.wwx + m * m * self.ww) / self.ww
        cubes = (self.wwxxx - 3 * m * self.wwxx + 3 * m * m * self.wwx) / self.ww - m * m * m
        alone = Interval(self.n, mean, size=size)
        # Great numbers overflow.
        if self.n == 1 or not math.isfinite(squares + cubes):
            return alone
        variance = squares * self.n / (self.n - 1)
        reach = t_quantile(max(1, int(size - 1 + 1e-9))) * math.sqrt(variance / size)
        skew = cubes / squares**1.5 if squares > TIE * TIE else 0.0
        lean = skew * math.sqrt(variance) * (2 * NORMAL_95**2 + 1) / (6 * size)
        lean = min(reach, max(-reach, lean))
        low, high = bounds or (-math.inf, math.inf)
        low, high = min(low, self.least), max(high, self.greatest)
        narrower = max(low, mean - reach + lean), min(high, mean + reach + lean)
        if math.isinf(high - low):
            return replace(alone, narrower=narrower)
        low = _interval_end(low, self.greatest, mean, variance, size)
        high = _interval_end(high, self.least, mean, variance, size)
        wider = high - low > _WIDER * (narrower[1] - narrower[0])
        return replace(alone, low=low, high=high, narrower=narrower if wider else None)


class GroupedMean:
    """A weighted mean of numbers of which some depend on each other: its interval is of groups.

    A group counts with the mean of its numbers, and weighs as much as they do together. Numbers without a group are
    each one of their own. It takes memory by the number of groups, and none for numbers without one. There is no
    interval of fewer than five groups.

    Attributes:
        rows: The mean of the numbers, as if none depended on another.
        alone: That of those without a group.
        sums: By group: that of the weights, and of the weighted numbers.

    Example:
        >>> mean = GroupedMean()
        >>> for number, value in enumerate((0.5, 0.7, 0.9) * 4):
        ...     mean.add(value, group=f"document={number // 2}")
        >>> estimate = mean.estimate((0.0, 1.0))
        >>> round(estimate.mean, 3), estimate.n, estimate.groups
        (0.7, 12, '6 documents')
    """

    __slots__ = ("alone", "rows", "sums")

    def __init__(self) -> None:
        # One and the same, until a number has a group.
        self.rows = self.alone = Mean()
        self.sums: dict[str, tuple[float, float]] = {}

    def add(self, value: float, weight: float = 1.0, group: str | None = None) -> None:
        """Count a number. The weight is greater than 0; the group begins with what it is, and "="."""
        if group is not None:
            self._add(group, weight, weight * value)
        elif self.sums:
            self.alone.add(value, weight)
        self.rows.add(value, weight)

    def _add(self, group: str, w: float, wx: float) -> None:
        if not self.sums:
            self.alone = Mean()
            self.alone.merge(self.rows)
        before = self.sums.get(group, (0.0, 0.0))
        self.sums[group] = before[0] + w, before[1] + wx

    def merge(self, other: "GroupedMean") -> None:
        """Count all numbers of another mean."""
        for group, sums in other.sums.items():
            self._add(group, *sums)
        if self.sums:
            self.alone.merge(other.alone)
        self.rows.merge(other.rows)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return self.alone.n + len(self.sums)

    @property
    def grouped(self) -> bool:
        """Whether a number has a group."""
        return bool(self.sums)

    @property
    def noun(self) -> str:
        """What a group is: "document", "conversation", ...; "group" of several kinds, "" where each number is one."""
        nouns = {group.partition("=")[0] for group in self.sums}
        return "" if self.size == self.rows.n else nouns.pop() if len(nouns) == 1 else "group"

    @property
    def groups(self) -> str:
        """How many groups there are, in words ("20 documents"); "" where each number is one of its own."""
        return self.noun and f"{self.size:,} {self.noun}" + ("" if self.size == 1 else "s")

    def estimate(self, bounds: tuple[float, float] | None = None, *, times: float = 1.0) -> Interval | None:
        """The mean with its interval, as `Mean.estimate` does; the numbers are those of the groups."""
        if not self.groups:
            return self.rows.estimate(bounds, times=times)
        drawn = Mean()
        drawn.merge(self.alone)
        for w, wx in self.sums.values():
            drawn.add(wx / w, w)
        found = drawn.estimate(bounds, times=times)
        if found is None or self.size < LEAST_GROUPS:
            found = Interval(0, self.rows.mean or 0.0)
        return replace(found, n=self.rows.n, groups=self.groups)


def _interval_end(bound: float, furthest: float, mean: float, variance: float, size: float) -> float:
    """The end of an interval of numbers and of one more, at the bound on that side."""
    span = furthest - bound
    if not span:
        return bound
    middle = (size * mean + bound) / (size + 1)
    squares = (size - 1) * variance + size * (mean - middle) ** 2 + (bound - middle) ** 2
    share = (middle - bound) / span
    most = share * (1 - share) * span**2
    # By weights they may be fewer than of yes and no.
    observations = max(size + 1, most * (size + 1) * (size + 2) / squares - 1)
    end = span * beta_quantile(share * observations, (1 - share) * observations)
    seen = (mean - bound) * math.pow(_LEVEL, 1 / size)
    return bound + min(end, seen, key=abs)


@lru_cache
def beta_quantile(a: float, b: float) -> float:
    """The 2.5 % quantile of the beta distribution, right to four digits.

    The density of log(x / (1 - x)), which has no poles, is added up in 4,000 steps.

    Example:
        >>> round(beta_quantile(20, 1), 3), round(0.025 ** (1 / 20), 3)
        (0.832, 0.832)
    """
    import numpy as np

    spread = 10 * math.sqrt(1 / a + 1 / b)
    ends = -spread - 10 / a, spread + 10 / b
    odds = math.log(a / b) + np.linspace(*ends, 4_001)
    log_density = -a * np.logaddexp(0.0, -odds) - b * np.logaddexp(0.0, odds)
    density = np.exp(log_density - log_density.max())
    # By the trapezium rule.
    sums = np.cumsum(density) - density / 2
    at = float(np.interp(math.log(_LEVEL * sums[-1]), np.log(sums + 1e-300), odds))
    return 1 / (1 + math.exp(-at))


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, right to three decimals.

    Example:
        >>> [round(t_quantile(freedom), 3) for freedom in (1, 10, 60, 10**6)]
        [12.706, 2.228, 2.0, 1.96]
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    # Cornish and Fisher's expansion around the normal quantile.
    z = NORMAL_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def permutation_p(differences: "Numbers") -> float | None:
    """The two-sided p-value of the mean of paired differences, if the two of a pair could as well be swapped.

    It is the share of 10,000 changes of sign, each difference's chosen by chance, that take the mean as far from 0 as
    it is, counting the observed one: (1 + hits) / 10,001. For 13 differences or fewer all are tried and the share is
    exact. None for no differences.

    Example:
        >>> import numpy as np
        >>> permutation_p(np.array([0.1, 0.2, 0.3]))
        0.25
    """
    import numpy as np

    n = len(differences)
    if not n:
        return None
    observed = abs(math.fsum(differences))
    # The same sum, added in another order, counts as reached.
    reached = observed - 1e-12 * (1.0 + math.fsum(np.abs(differences)))
    if n <= _EXACT:
        flips: NDArray[np.int64] = np.arange(2**n, dtype=np.int64)[:, None] >> np.arange(n, dtype=np.int64) & 1
        return float((np.abs((1.0 - 2.0 * flips) @ differences) >= reached).mean())
    rng = np.random.default_rng(_SEED)
    total, hits = float(differences.sum()), 0
    step = max(1, _CHUNK // n)
    for start in range(0, _PERMUTATIONS, step):
        rows = min(step, _PERMUTATIONS - start)
        tosses = rng.integers(0, 256, size=(rows, -(-n // 8)), dtype=np.uint8)
        signs = np.unpackbits(tosses, axis=1, count=n)
        hits += int((np.abs(total - 2.0 * (signs @ differences)) >= reached).sum())
    return (1 + hits) / (1 + _PERMUTATIONS)


class Timeline:
    """A mean for each minute, hour, day or week: as long as their span needs, so that there are few.

    `buckets` are by when they begin, in seconds since 1970 (UTC), and span `width` seconds each.
    """

    def __init__(self) -> None:
        self.width = MINUTE
        self.buckets: dict[int, GroupedMean] = {}
        self._ends = math.inf, -math.inf

    def add(self, at: float, value: float, weight: float = 1.0, group: str | None = None) -> None:
        """Count a number of some time."""
        self._ends = min(self._ends[0], at), max(self._ends[1], at)
        self.widen(bucket_width(*self._ends))
        self.buckets.setdefault(bucket_start(at, self.width), GroupedMean()).add(value, weight, group)

    def widen(self, width: int) -> None:
        """Merge buckets into wider ones."""
        if width <= self.width:
            return
        narrow, self.width, self.buckets = self.buckets, width, {}
        for start, bucket in narrow.items():
            self.buckets.setdefault(bucket_start(start, width), GroupedMean()).merge(bucket)


def bucket_width(first: float, last: float) -> int:
    """How many seconds of a span make one point of a chart: a minute, an hour, a day, or a week."""
    span = last - first
    if span <= 3 * HOUR:
        return MINUTE
    return HOUR if span <= 4 * DAY else DAY if span <= 90 * DAY else WEEK


def bucket_start(at: float, width: int) -> int:
    """When the bucket that a time is in begins: on the hour, at midnight (UTC), on Monday."""
    return int((at - _MONDAY) // width) * width + _MONDAY
