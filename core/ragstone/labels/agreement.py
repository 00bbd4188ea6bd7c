"""How far a judge and people agree: Cohen's kappa, sensitivity and specificity, with intervals."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ragstone.labels.estimates import group_numbers
from ragstone.report.statistics import TIE, GroupedMean, Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragstone.report.statistics import Numbers

_RESAMPLES = 1_000


Groups = Sequence[str | None] | None
"""What each sample depends on; None is a group of its own."""


def kappa_of(people: Sequence[float], judge: Sequence[float], group: Groups = None) -> Interval | None:
    """Cohen's kappa of the same samples' scores, weighted by squared differences, with a 95 % interval.

        kappa = 1 - mean (people - judge)^2 / the mean that chance would give

    The interval is a bootstrap's, which draws groups. None where it is undefined, as all is one value.

    Example:
        >>> kappa_of([1, 1, 0, 0], [1, 1, 0, 1]).mean
        0.5
        >>> kappa_of([1.0, 1.0], [1.0, 1.0]) is None
        True
    """
    x, y = np.asarray(people, np.float64), np.asarray(judge, np.float64)
    n = len(x)
    member = group_numbers(group or [None] * n)
    size = max(member) + 1
    draws = np.random.default_rng(0).multinomial(size, np.full(size, 1 / size), size=_RESAMPLES)
    weights = np.vstack([np.ones(n), draws[:, member]])
    weights /= weights.sum(axis=1, keepdims=True)
    # To add 0.0 makes -0.0 a 0.0.
    value, *resampled = np.round(_kappas(x, y, weights), 12) + 0.0
    known = np.array(resampled)[np.isfinite(resampled)]
    if not np.isfinite(value):
        return None
    # What does not vary says nothing of how far it may be off.
    if not known.size or np.ptp(known) < TIE:
        return Interval(n, float(value))
    low, high = np.quantile(known, (0.025, 0.975))
    return Interval(n, float(value), float(low), float(high))


def _kappas(x: "Numbers", y: "Numbers", weights: "Numbers") -> "Numbers":
    """Kappa by the samples' weights in each row; NaN where chance would give no difference."""
    expected = weights @ (x**2 + y**2) - 2 * (weights @ x) * (weights @ y)
    observed = weights @ (x - y) ** 2
    return np.asarray(1 - observed / np.where(expected > TIE, expected, np.nan))


def sensitivity_specificity(
    people: Sequence[float], judge: Sequence[float], group: Groups = None
) -> tuple[Interval | None, Interval | None]:
    """The judge's share of 1 where people say 1, and of 0 where they say 0, with 95 % intervals.

    None: people say it nowhere, or somebody says something else than 0 and 1.

    Example:
        >>> sensitivity, specificity = sensitivity_specificity([1, 1, 0, 0], [1, 1, 0, 1])
        >>> sensitivity.mean, specificity.mean
        (1.0, 0.5)
    """
    y, f = np.asarray(people), np.asarray(judge)
    if not np.isin(np.concatenate([y, f]), (0, 1)).all():
        return None, None
    of = np.array(group or [None] * len(y), object)
    return _share(f[y == 1] == 1, of[y == 1]), _share(f[y == 0] == 0, of[y == 0])


def _share(hits: "NDArray[np.bool_]", groups: "NDArray[np.object_]") -> Interval | None:
    shares = GroupedMean()
    for hit, group in zip(hits.tolist(), groups.tolist(), strict=True):
        shares.add(float(hit), group=group)
    estimate = shares.estimate((0.0, 1.0))
    return estimate and replace(estimate, mean=float(hits.mean()))
