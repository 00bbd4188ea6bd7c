"""The arithmetic of a report: means with their intervals, tests of paired differences.

What is added up as numbers come takes constant memory. Random draws start from a fixed seed: the same numbers give the
same answer.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
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
_CHUNK = 1 << 22  # numbers held at once: 32 MB
_SEED = 20_260_101
_PERMUTATIONS = 10_000
_EXACT = 13  # up to so many differences, all 2 ** n changes of sign are fewer than that
MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800
_MONDAY = 4 * DAY  # 1970-01-05: where weeks begin; hours and days begin there too
_ENOUGH = 3  # of other numbers, to show what there is beside those that are alike
_ALIKE = 0.02  # a bin of numbers that are alike
_DISTINCT = 64  # so many bins are counted: where there are more, enough numbers differ

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
        low: The interval's lower end; None where there is no interval (one score).
        high: Its upper end, likewise.
        groups: Of how many groups they are, such as "20 documents"; "" where each is one of its own.
    """

    n: int
    mean: float
    low: float | None = None
    high: float | None = None
    groups: str = ""


class Mean:
    """A weighted mean of numbers as they come, in constant memory, with an interval that always has a width.

    With weights w, n = sum(w)^2 / sum(w^2) numbers of equal weight say as much, with a variance s^2 of

        N / (N - 1) * sum(w^2 (x - m)^2) / sum(w^2)

    of N numbers with the mean m. Few numbers may hide others: twenty scores of 1.0 do not show that no other is 0. So
    each end of the interval is that of the numbers and of a part h of one more, at the bound on its side. h is the
    larger of

    - how far the numbers vary as yes and no would: (s^2 / ((m - low) (high - m)))^1.5;
    - how far numbers that are alike, with a share p, outnumber all others: 2 p - 1, times 3 / (n (1 - p)) where more
      than three others show. Alike are those in two neighbouring bins of 0.02.

    The end is the 2.5 % (or 97.5 %) quantile of the beta distribution from the bound to the number furthest from it,
    with the mean of these n + h numbers and, S being their sum of squares, the variance

        S / (n + h) / (n - 1 + 3 h) * (h + (1 - h) (t / z)^2)

    where t is Student's with n - 1 degrees of freedom and z the normal distribution's. So of yes and no it is Clopper
    and Pearson's exact interval (Biometrika 1934), and of numbers that spread nearly Student's. Where n is too small
    for such a distribution it is Student's, of the n + h numbers. benchmarks/README.md shows what it covers.

    Example:
        >>> mean = Mean()
        >>> for value in (0.5, 0.7, 0.9):
        ...     mean.add(value)
        >>> estimate = mean.estimate((0.0, 1.0))
        >>> round(estimate.mean, 3), round(estimate.low, 3), round(estimate.high, 3)
        (0.7, 0.094, 1.0)
    """

    __slots__ = ("greatest", "least", "n", "origin", "times", "w", "ww", "wwx", "wwxx", "wx")

    def __init__(self) -> None:
        self.n = 0
        self.least, self.greatest = math.inf, -math.inf
        self.origin = 0.0  # the first number; all are counted from it, so that close ones keep their digits
        self.w = self.wx = self.ww = self.wwx = self.wwxx = 0.0
        self.times: Counter[int] = Counter()  # how many numbers are in each bin; not counted on where bins are many

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a number. The weight is greater than 0."""
        if not self.n:
            self.origin = value
        self.n += 1
        self.least, self.greatest = min(self.least, value), max(self.greatest, value)
        x, square = value - self.origin, weight * weight
        self.w += weight
        self.wx += weight * x
        self.ww += square
        self.wwx += square * x
        self.wwxx += square * x * x
        if len(self.times) <= _DISTINCT:
            self.times[math.floor(value / _ALIKE)] += 1

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
        self.times.update(other.times)

    @property
    def mean(self) -> float | None:
        """The mean; None of no number."""
        return self.origin + self.wx / self.w if self.n else None

    @property
    def weighted(self) -> bool:
        """Whether the numbers have different weights."""
        return self.w * self.w < self.n * self.ww * (1 - 1e-9)

    def estimate(self, bounds: tuple[float, float] | None = None, *, times: float = 1.0) -> Interval | None:
        """Return the mean with its interval; None for no number.

        Args:
            bounds: Least and greatest possible number. Without them, or where one is infinite, the interval is
                Student's; there is none where most numbers are alike, for nobody knows what they hide.
            times: How many times as many numbers of the same kind there would be.
        """
        if not self.n:
            return None
        m = self.wx / self.w
        mean = self.origin + m
        squares = max(0.0, self.wwxx - 2 * m * self.wwx + m * m * self.ww)
        if self.n == 1 or not math.isfinite(squares):  # or numbers whose squares overflow
            return Interval(self.n, mean)
        variance = squares / self.ww * self.n / (self.n - 1)
        size = max(1 + 1e-6, times * self.w * self.w / self.ww)
        reach = t_quantile(max(1, int(size - 1 + 1e-9)))
        hidden = self._hidden(size)
        low, high = bounds or (-math.inf, math.inf)
        if math.isinf(high - low):
            half = reach * math.sqrt(variance / size)
            students = Interval(self.n, mean, max(low, mean - half), min(high, mean + half))
            return Interval(self.n, mean) if hidden else students
        low, high = min(low, self.least), max(high, self.greatest)
        if (most := (mean - low) * (high - mean)) > 0.0:
            hidden = max(hidden, min(1.0, variance / most) ** 1.5)
        low = _end(low, self.greatest, mean, variance, size, hidden, reach)
        high = _end(high, self.least, mean, variance, size, hidden, reach)
        return Interval(self.n, mean, low, high)

    def _hidden(self, size: float) -> float:
        """Return how far numbers that are alike outnumber all others, from 0 to 1, less where enough others show."""
        if len(self.times) > _DISTINCT:  # enough of them differ
            return 0.0
        most = max(n + self.times[place + 1] for place, n in self.times.items()) / self.n
        return max(0.0, 2 * most - 1) * min(1.0, _ENOUGH / max(size * (1 - most), _ENOUGH))


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
        self.rows, self.alone = Mean(), Mean()
        self.sums: dict[str, tuple[float, float]] = {}

    def add(self, value: float, weight: float = 1.0, group: str | None = None) -> None:
        """Count a number. The weight is greater than 0; the group begins with what it is, and "="."""
        self.rows.add(value, weight)
        if group is None:
            self.alone.add(value, weight)
        else:
            self._add(group, weight, weight * value)

    def _add(self, group: str, w: float, wx: float) -> None:
        before = self.sums.get(group, (0.0, 0.0))
        self.sums[group] = before[0] + w, before[1] + wx

    def merge(self, other: "GroupedMean") -> None:
        """Count all numbers of another mean."""
        self.rows.merge(other.rows)
        self.alone.merge(other.alone)
        for group, sums in other.sums.items():
            self._add(group, *sums)

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
        """Return the mean with its interval, as `Mean.estimate` does; the numbers are those of the groups."""
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


def _end(bound: float, furthest: float, mean: float, variance: float, size: float, more: float, reach: float) -> float:
    """Return the end of an interval of numbers and of `more` of one more at the bound on that side."""
    span = furthest - bound
    if not span:
        return bound
    total = size + more
    middle = (size * mean + more * bound) / total
    squares = (size - 1) * variance + size * (mean - middle) ** 2 + more * (bound - middle) ** 2
    share = min(1.0, (middle - bound) / span)
    variance = squares / total / (total - 1 + 2 * more) * (more + (1 - more) * (reach / NORMAL_95) ** 2)
    observations = share * (1 - share) * span**2 / variance - 1
    if observations > 1:
        return bound + span * beta_quantile(share * observations, (1 - share) * observations)
    far = middle - math.copysign(reach * math.sqrt(squares / total / (total - 1)), span)  # too few for that
    return max(bound, far) if span > 0 else min(bound, far)


def beta_quantile(a: float, b: float) -> float:
    """Return the 2.5 % quantile of the beta distribution, right to four digits.

    The density of log(x / (1 - x)), which has no poles, is added up in 4,000 steps.

    Example:
        >>> round(beta_quantile(20, 1), 3), round(0.025 ** (1 / 20), 3)
        (0.832, 0.832)
    """
    import numpy as np  # loaded when first used

    spread = 10 * math.sqrt(1 / a + 1 / b)
    ends = -spread - 10 / a, spread + 10 / b
    odds = math.log(a / b) + np.linspace(*ends, 4_001)
    log_density = -a * np.logaddexp(0.0, -odds) - b * np.logaddexp(0.0, odds)
    density = np.exp(log_density - log_density.max())
    sums = np.cumsum(density) - density / 2  # by the trapezium rule
    at = float(np.interp(math.log(0.025 * sums[-1]), np.log(sums + 1e-300), odds))
    return 1 / (1 + math.exp(-at))


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, right to three decimals.

    Example:
        >>> [round(t_quantile(freedom), 3) for freedom in (1, 10, 60, 10**6)]
        [12.706, 2.228, 2.0, 1.96]
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = NORMAL_95  # Cornish and Fisher's expansion around the normal quantile
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def permutation_p(differences: "Numbers") -> float | None:
    """Return the two-sided p-value of the mean of paired differences, if the two of a pair could as well be swapped.

    It is the share of 10,000 changes of sign, each difference's chosen by chance, that take the mean as far from 0 as
    it is, counting the observed one: (1 + hits) / 10,001. For 13 differences or fewer all are tried and the share is
    exact. None for no differences.

    Example:
        >>> import numpy as np
        >>> permutation_p(np.array([0.1, 0.2, 0.3]))
        0.25
    """
    import numpy as np  # loaded when first used

    n = len(differences)
    if not n:
        return None
    observed = abs(math.fsum(differences))
    reached = observed - 1e-12 * (1.0 + math.fsum(np.abs(differences)))  # the same sum, added in another order
    if n <= _EXACT:
        turned: NDArray[np.int64] = np.arange(2**n, dtype=np.int64)[:, None] >> np.arange(n, dtype=np.int64) & 1
        return float((np.abs((1.0 - 2.0 * turned) @ differences) >= reached).mean())
    rng = np.random.default_rng(_SEED)
    total, hits = float(differences.sum()), 0
    step = max(1, _CHUNK // n)
    for start in range(0, _PERMUTATIONS, step):
        rows = min(step, _PERMUTATIONS - start)
        tosses = rng.integers(0, 256, size=(rows, -(-n // 8)), dtype=np.uint8)
        turns = np.unpackbits(tosses, axis=1, count=n)
        hits += int((np.abs(total - 2.0 * (turns @ differences)) >= reached).sum())
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
    """Return how many seconds of a span make one point of a chart: a minute, an hour, a day, or a week."""
    span = last - first
    if span <= 3 * HOUR:
        return MINUTE
    return HOUR if span <= 4 * DAY else DAY if span <= 90 * DAY else WEEK


def bucket_start(at: float, width: int) -> int:
    """Return when the bucket that a time is in begins: on the hour, at midnight (UTC), on Monday."""
    return int((at - _MONDAY) // width) * width + _MONDAY
