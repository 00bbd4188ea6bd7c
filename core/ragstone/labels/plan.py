"""How many labels a number takes, before they are made."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragstone.labels.estimates import LEAST_LABELS
from ragstone.labels.fit import load_extra

if TYPE_CHECKING:
    from ragstone.report.corrections import ByLabels

_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Spread:
    """How people's scores vary, and how much of that the judge knows.

    Attributes:
        sd: The standard deviation of people's scores, or of their paired differences.
        rho: The correlation of people and judge, within [0, 1].
        samples: How many samples, or pairs, the judge has scored; None: as many as are needed.

    Example:
        >>> Spread(sd=0.5).labels_for(0.2)
        99
        >>> Spread(sd=0.5, rho=0.8).labels_for(0.2), Spread(sd=0.5, rho=0.8, samples=90).labels_for(0.2)
        (38, None)
    """

    sd: float
    rho: float = 0.0
    samples: int | None = None

    @classmethod
    def of(cls, pilot: "ByLabels", samples: int) -> "Spread | None":
        """Return what a pilot's labels say, by the intervals that they gave; None of fewer than 20."""
        alone, together, n = pilot.people, pilot.corrected, pilot.labels
        if alone is None or alone.low is None or alone.high is None:
            return None
        sd = (alone.high - alone.low) / 2.0 / _t(n) * math.sqrt(n)
        saved = 0.0 if together is None else max(0.0, 1.0 - n / together.labels_worth)
        rest = max(1, samples - n) / samples
        return cls(sd, min(1.0, math.sqrt(saved / rest)), samples)

    def width(self, labels: int) -> float:
        """Return the width of a 95 % interval: 2 t sd sqrt((1 - rho^2) / labels + rho^2 / samples)."""
        known = 0.0 if self.samples is None else self.rho**2 / max(self.samples, labels)
        return 2.0 * _t(labels) * self.sd * math.sqrt((1.0 - self.rho**2) / labels + known)

    def labels_for(self, width: float) -> int | None:
        """Return how many labels make the interval no wider, at least 20; None where the samples are too few."""
        low, high = LEAST_LABELS, self.samples or 10_000_000
        if high < low or self.width(high) > width:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.width(middle) <= width else (middle + 1, high)
        return low

    def pairs_for(self, difference: float) -> int | None:
        """Return how many labelled pairs show a difference of this size in 80 of 100 comparisons.

        The interval's half then is difference z(0.975) / (z(0.975) + z(0.8)).
        """
        normal = load_extra("scipy.stats", "a plan").norm
        reach = float(normal.ppf(0.975))
        return self.labels_for(2.0 * difference * reach / (reach + float(normal.ppf(_POWER))))


def _t(n: int) -> float:
    return float(load_extra("scipy.special", "a plan").stdtrit(n - 1, 0.975))
