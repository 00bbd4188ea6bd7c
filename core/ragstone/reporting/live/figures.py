"""The arithmetic of a report: means with their intervals, buckets of time, axes and bins. Pure functions."""

import math
from dataclasses import dataclass

MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800
_MONDAY = 4 * DAY  # 1970-01-05: where weeks begin; hours and days begin there too
_BINS = 20

# The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of scores, with the 95 % confidence interval that belongs to it.

    Attributes:
        n: How many scores it is of.
        mean: Their mean, weighted where they have weights.
        low: The interval's lower end; None where there is no interval (one score).
        high: Its upper end, likewise.
    """

    n: int
    mean: float
    low: float | None = None
    high: float | None = None


class Mean:
    """A weighted mean of numbers as they come, in constant memory.

    With weights w, the mean is m = sum(w x) / sum(w), and its variance, with n numbers, is estimated by

        n / (n - 1) * sum(w^2 (x - m)^2) / sum(w)^2

    which for equal weights is the familiar s^2 / n. The interval is m +- t * sqrt(variance), t being the 97.5 %
    quantile of Student's t with sum(w)^2 / sum(w^2) - 1 degrees of freedom (n - 1 for equal weights).

    Example:
        >>> mean = Mean()
        >>> for value in (0.5, 0.7, 0.9):
        ...     mean.add(value)
        >>> found = mean.estimate((0.0, 1.0))
        >>> round(found.mean, 3), round(found.low, 3), found.high
        (0.7, 0.203, 1.0)
    """

    __slots__ = ("_first", "_w", "_ww", "_wwx", "_wwxx", "_wx", "n")

    def __init__(self) -> None:
        self.n = 0
        self._first = 0.0  # what all numbers are counted from, so that close ones keep their digits
        self._w = self._wx = self._ww = self._wwx = self._wwxx = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a number. The weight is greater than 0."""
        if not self.n:
            self._first = value
        self.n += 1
        x, square = value - self._first, weight * weight
        self._w += weight
        self._wx += weight * x
        self._ww += square
        self._wwx += square * x
        self._wwxx += square * x * x

    def estimate(self, bounds: tuple[float, float] | None = None) -> Estimate | None:
        """Return the mean with its interval, cut at the bounds that every mean is within; None for no number."""
        if not self.n:
            return None
        m = self._wx / self._w
        if self.n == 1:
            return Estimate(1, self._first + m)
        squares = max(0.0, self._wwxx - 2 * m * self._wwx + m * m * self._ww)
        variance = squares / (self._w * self._w) * self.n / (self.n - 1)
        freedom = int(self._w * self._w / self._ww - 1 + 1e-9)
        half = t_quantile(max(1, freedom)) * math.sqrt(variance)
        mean = self._first + m
        low, high = bounds or (-math.inf, math.inf)
        return Estimate(self.n, mean, max(low, mean - half), min(high, mean + half))


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, right to three decimals.

    Example:
        >>> [round(t_quantile(freedom), 3) for freedom in (1, 10, 60, 10**6)]
        [12.706, 2.228, 2.0, 1.96]
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _Z  # Cornish and Fisher's expansion around the normal quantile
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def bucket_width(first: float, last: float) -> int:
    """Return how many seconds of a span make one point of a chart: a minute, an hour, a day, or a week.

    Example:
        >>> [bucket_width(0, days * DAY) // MINUTE for days in (0.1, 4, 5, 90, 91)]
        [1, 60, 1440, 1440, 10080]
    """
    span = last - first
    if span <= 3 * HOUR:
        return MINUTE
    return HOUR if span <= 4 * DAY else DAY if span <= 90 * DAY else WEEK


def bucket_start(at: float, width: int) -> int:
    """Return when the bucket of a time begins; weeks begin on Mondays. All in seconds since 1970 (UTC).

    Example:
        >>> bucket_start(7 * DAY + 5.5, DAY) // DAY, bucket_start(7 * DAY + 5.5, WEEK) // DAY
        (7, 4)
    """
    return int((at - _MONDAY) // width) * width + _MONDAY


def axis(low: float, high: float) -> tuple[float, float]:
    """Return round ends for an axis that holds these values: 0 to 1 or -1 to 1 where that does.

    Example:
        >>> axis(0.2, 0.9), axis(-0.1, 0.9), axis(1.0, 4.6)
        ((0.0, 1.0), (-1.0, 1.0), (1.0, 5.0))
    """
    if low >= -1 and high <= 1:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    step = 10.0 ** math.floor(math.log10(high - low)) if high > low else max(1.0, abs(low))
    start, end = math.floor(low / step) * step, math.ceil(high / step) * step
    return (start, end) if start < end else (start - step, end + step)


def ticks(low: float, high: float, parts: int = 4) -> list[float]:
    """Return the ends of an axis and what divides it evenly.

    Example:
        >>> ticks(0, 1)
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return [low + (high - low) * i / parts for i in range(parts + 1)]


def round_up(value: float) -> float:
    """Return the least round number, with one digit that halves well, that is not below a positive value.

    Example:
        >>> round_up(0.35), round_up(1.0), round_up(1234)
        (0.4, 1.0, 2000.0)
    """
    step = 10.0 ** math.floor(math.log10(value))
    return next(digit * step for digit in (1, 2, 4, 6, 8, 10) if digit * step >= value * (1 - 1e-9))


def bin_of(value: float, low: float, high: float) -> int:
    """Return the number, from 0, of the bin of an axis that a value is in; an upper edge is the next bin's.

    Example:
        >>> [bin_of(value, 0, 1) for value in (0.0, 0.049, 0.15, 1.0)]
        [0, 0, 3, 19]
    """
    place = round((value - low) / (high - low) * _BINS, 9)  # so that 0.15 is not 2.9999... twentieths
    return min(max(int(place), 0), _BINS - 1)


def bin_edges(low: float, high: float) -> list[float]:
    """Return the edges of an axis' bins, one more than there are bins."""
    return ticks(low, high, _BINS)
