"""What people would say on average, from a judge's scores of all samples and people's labels of a few."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragstone.labels.fit import load_extra

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated mean with its confidence interval.

    Attributes:
        mean: The estimate.
        low: The interval's lower end.
        high: Its upper end.
        method: How it was computed, in a few words.
        labels_worth: How many labels without a judge would give an interval as narrow: n x (width of labels alone /
            width)^2.
    """

    mean: float
    low: float
    high: float
    method: str
    labels_worth: float


def corrected_mean(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    *,
    weights: "ArrayLike | None" = None,
    weights_rest: "ArrayLike | None" = None,
    strata: Sequence[str] | None = None,
    strata_rest: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    groups_rest: Sequence[str] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean that people would give, with its interval: the judge's over all, corrected by the labels."""
    del weights, weights_rest, strata, strata_rest, groups, groups_rest  # their estimators come next
    t = load_extra("scipy.stats", "a corrected mean").t
    y, f, rest = (np.asarray(values, np.float64) for values in (people, judge, judge_rest))
    n, m = len(y), len(y) + len(rest)
    everything = np.concatenate([f, rest])
    share = len(rest) / m
    lam = share * float(np.cov(y, f)[0, 1]) / float(f.var(ddof=1)) if f.var() else 0.0
    mean = lam * everything.mean() + (y - lam * f).mean()
    variance = lam**2 * everything.var() / m + (y - lam * f).var(ddof=1) / n
    half = t.ppf(0.5 + level / 2, n - 1) * math.sqrt(variance)
    alone = t.ppf(0.5 + level / 2, n - 1) * float(y.std(ddof=1)) / math.sqrt(n)
    worth = n * (alone / half) ** 2 if half else n
    return Estimate(float(mean), float(mean - half), float(mean + half), "PPI++", worth)


def corrected_difference(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    *,
    weights: "ArrayLike | None" = None,
    weights_rest: "ArrayLike | None" = None,
    strata: Sequence[str] | None = None,
    strata_rest: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    groups_rest: Sequence[str] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean difference b - a that people would give, from paired differences; else as `corrected_mean`."""
    del weights, weights_rest, strata, strata_rest, groups, groups_rest
    return corrected_mean(people, judge, judge_rest, level=level)
