"""Numbers by time and by size, in constant memory: what charts are made of."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800
_MONDAY = 4 * DAY  # 1970-01-05: where weeks begin; hours and days begin there too
_BINS = 20
_FINE_BINS = 200


class _Mergeable(Protocol):
    def merge(self, other: "Self", /) -> None: ...


T = TypeVar("T", bound=_Mergeable)


class Timeline(Generic[T]):
    """Something for each minute, hour, day or week: as long as their span needs, so that there are few.

    `buckets` are by when they begin, in seconds since 1970 (UTC), and span `width` seconds each.
    """

    def __init__(self, make: Callable[[], T], least_width: int = MINUTE) -> None:
        self.width = least_width
        self.buckets: dict[int, T] = {}
        self._ends = math.inf, -math.inf
        self._make = make

    def at(self, seconds: float) -> T:
        """Return the bucket of a time."""
        self._ends = min(self._ends[0], seconds), max(self._ends[1], seconds)
        self.widen(bucket_width(*self._ends))
        start = bucket_start(seconds, self.width)
        if start not in self.buckets:
            self.buckets[start] = self._make()
        return self.buckets[start]

    def widen(self, width: int) -> None:
        """Merge buckets into wider ones."""
        if width <= self.width:
            return
        narrow, self.width, self.buckets = self.buckets, width, {}
        for start, bucket in narrow.items():
            self.buckets.setdefault(bucket_start(start, width), self._make()).merge(bucket)


def bucket_width(first: float, last: float) -> int:
    """Return how many seconds of a span make one point of a chart: a minute, an hour, a day, or a week."""
    span = last - first
    if span <= 3 * HOUR:
        return MINUTE
    return HOUR if span <= 4 * DAY else DAY if span <= 90 * DAY else WEEK


def bucket_start(at: float, width: int) -> int:
    """Return when the bucket that a time is in begins: on the hour, at midnight (UTC), on Monday."""
    return int((at - _MONDAY) // width) * width + _MONDAY


class Bin(NamedTuple):
    """The numbers within [low, high): how many, and their share by weight (within [0, 1])."""

    low: float
    high: float
    n: int
    share: float


class Histogram:
    """How numbers spread, in constant memory: bins of 0.05, or wider ones where the numbers need them."""

    def __init__(self) -> None:
        self._width = 0.05
        self._least, self._greatest = math.inf, -math.inf
        self._bins: dict[int, tuple[int, float]] = {}  # how many, and their weight

    def add(self, value: float, weight: float = 1.0) -> None:
        """Count a number."""
        self._least, self._greatest = min(self._least, value), max(self._greatest, value)
        place = math.floor(round(value / self._width, 9))  # so that 0.15 is not 2.9999... twentieths
        self._put(place, 1, weight)
        while len(self._bins) > _FINE_BINS:
            self._widen()

    def _put(self, place: int, n: int, weight: float) -> None:
        before = self._bins.get(place, (0, 0.0))
        self._bins[place] = before[0] + n, before[1] + weight

    def _widen(self) -> None:
        narrow, self._bins = self._bins, {}
        self._width *= 2
        for place, (n, weight) in narrow.items():
            self._put(place // 2, n, weight)

    def bins(self) -> list[Bin]:
        """Return the bins all over an axis that holds all numbers: 0 to 1 or -1 to 1 where that does."""
        if not self._bins:
            return []
        low, high = self._least, self._greatest
        if low >= -1 and high <= 1:
            low, high = (0.0 if low >= 0 else -1.0), 1.0
        while True:
            first = min(math.floor(round(low / self._width, 9)), *self._bins)
            end = max(math.ceil(round(high / self._width, 9)), *self._bins, first + 1)
            if end - first <= _BINS:
                break
            self._widen()
        if end in self._bins:  # a number at the upper end belongs to the last bin
            self._put(end - 1, *self._bins.pop(end))
        total = math.fsum(weight for _, weight in self._bins.values())
        bins = ((place, *self._bins.get(place, (0, 0.0))) for place in range(first, end))
        return [Bin(at * self._width, (at + 1) * self._width, n, weight / total) for at, n, weight in bins]
