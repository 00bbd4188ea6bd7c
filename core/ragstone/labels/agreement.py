"""How far two people agree, or a judge and people: the share of equal answers and Cohen's kappa, with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from ragstone.labels.calibration import CalibrationError
from ragstone.labels.label_file import Label, match_labels, read_labels
from ragstone.report.statistics import TIE, Interval, of_groups

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ragstone.report.report import Report

    Numbers = NDArray[np.float64]

_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two agree on the same items. None: undefined, as all is one value, or there are fewer than two items.

    Attributes:
        items: How many items both answered.
        share: The share of them with the same answer.
        kappa: Cohen's kappa; of scores weighted by their squared differences.
    """

    items: int
    share: Interval | None = None
    kappa: Interval | None = None


def agreement(
    a: Sequence[str] | Sequence[float], b: Sequence[str] | Sequence[float], groups: Sequence[str] | None = None
) -> Agreement:
    """Return how far two agree, with 95 % intervals, kappa's by bootstrap over whole groups.

    Args:
        a: What the one says of each item: words, or scores from 0 to 1.
        b: What the other says.
        groups: What each item belongs to, such as its sample; None: each stands alone.

    Example:
        >>> both = agreement(["yes", "yes", "no", "no"], ["yes", "yes", "no", "yes"])
        >>> both.share.mean, both.kappa.mean
        (0.75, 0.5)
        >>> agreement([1.0, 1.0], [1.0, 1.0]).kappa is None
        True
    """
    if len(a) < 2:
        return Agreement(len(a))
    values = np.asarray([*a, *b])
    words = values.dtype.kind == "U" or bool(np.isin(values, (0, 1)).all())
    # Of words, a point each: two of them are as far apart as any other two.
    points = (values[:, None] == np.unique(values) if words else values[:, None]).astype(np.float64)
    x, y = np.split(points, 2)
    same = np.abs(x - y).max(axis=1) < TIE
    kappa = _estimate(lambda weights: _kappa(x, y, weights), len(a), groups)
    return Agreement(len(a), share_of(same, groups), kappa)


def _kappa(x: "Numbers", y: "Numbers", weights: "Numbers") -> "Numbers":
    """Return 1 - observed / expected mean squared distance of two answers; NaN where none is expected.

    Args:
        x: A point for each answer of the one, in rows.
        y: Of the other.
        weights: Of the items, in a row for each result.
    """
    n = weights.sum(axis=1)
    means = [weights @ points / n[:, None] for points in (x, y)]
    spread = weights @ (x**2 + y**2).sum(axis=1) / n - sum((mean**2).sum(axis=1) for mean in means)
    expected = spread + ((means[0] - means[1]) ** 2).sum(axis=1)
    observed = weights @ ((x - y) ** 2).sum(axis=1) / n
    return np.asarray(1 - observed / np.where(expected > TIE, expected, np.nan))


def sensitivity_specificity(
    people: Sequence[float], judge: Sequence[float], groups: Sequence[str] | None = None
) -> tuple[Interval | None, Interval | None]:
    """Return the judge's share of 1 where people say 1, and of 0 where they say 0, with 95 % intervals.

    None: people say it nowhere, or somebody says something else than 0 and 1.

    Example:
        >>> sensitivity, specificity = sensitivity_specificity([1, 1, 0, 0], [1, 1, 0, 1])
        >>> sensitivity.mean, specificity.mean
        (1.0, 0.5)
    """
    y, f, names = np.asarray(people), np.asarray(judge), np.asarray(groups or range(len(people)))
    if not np.isin(np.concatenate([y, f]), (0, 1)).all():
        return None, None
    yes, no = (share_of(f[y == word] == word, names[y == word].tolist()) for word in (1, 0))
    return yes, no


def share_of(hits: "ArrayLike", groups: Sequence[str] | None = None) -> Interval | None:
    """Return the share of hits with its 95 % interval, which takes the items of a group for one.

    Example:
        >>> round(share_of([True] * 10).low, 3)
        0.692
    """
    values = np.asarray(hits, np.float64)
    estimate = of_groups(values, groups or [str(place) for place in range(len(values))]).estimate((0.0, 1.0))
    return estimate and replace(estimate, n=len(values), mean=float(values.mean()))


def _estimate(of: "Callable[[Numbers], Numbers]", n: int, groups: Sequence[str] | None) -> Interval | None:
    """Return a statistic of weighted items; in each draw a group weighs as often as it was drawn."""
    place = np.unique(np.asarray(groups or range(n)), return_inverse=True)[1]
    k = int(place.max()) + 1
    draws = np.random.default_rng(0).multinomial(k, np.full(k, 1 / k), size=_RESAMPLES)
    weights = np.vstack([np.ones(n), draws[:, place].astype(np.float64)])
    value, *resampled = np.round(of(weights), 12) + 0.0  # never -0.0
    known = np.array(resampled)[np.isfinite(resampled)]
    if not np.isfinite(value):
        return None
    if not known.size or np.ptp(known) < TIE:  # what does not vary says nothing of how far it may be off
        return Interval(n, float(value))
    low, high = np.quantile(known, (0.025, 0.975))
    return Interval(n, float(value), float(low), float(high))


def of_files(
    a: str | Path, b: str | Path, reports: "Sequence[Report]"
) -> tuple[Mapping[tuple[str, str], Agreement], list[str]]:
    """Return how far two files of labels agree, by metric and kind of item, and what else is to be said, in sentences.

    Whole samples are what the bootstrap draws.

    Raises:
        CalibrationError: A label cannot be used with these results, or no item has a label in both files.
    """
    one, other = _labels(a, reports), _labels(b, reports)
    kinds: dict[tuple[str, str], list[tuple[Label, Label]]] = {}
    for key, x in one.items():
        if key in other and not (x.skipped or other[key].skipped):
            kinds.setdefault((x.metric, x.kind), []).append((x, other[key]))
    if not kinds:
        raise CalibrationError(f"{a}, {b}: no item has a label in both; let both label one page of `ragstone label`")
    notes: list[str] = []
    if skipped := {each.id for labels in (one, other) for each in labels.values() if each.skipped}:
        notes.append(f"{len(skipped):,} sample(s) were skipped by one or both")
    if alone := one.keys() ^ other.keys():
        notes.append(f"{len(alone):,} label(s) stand in one file alone")
    if any(each.verdicts_shown for labels in (one, other) for each in labels.values()):
        notes.append("some labels were made with the judge's verdicts in sight: such labels agree too readily")
    by_kind: dict[tuple[str, str], Agreement] = {}
    for name, pairs in kinds.items():
        x_says, y_says = ([cast("str", each.answer) for each in by_one] for by_one in zip(*pairs, strict=True))
        by_kind[name] = agreement(x_says, y_says, [x.id for x, _ in pairs])
    return by_kind, notes


def _labels(path: str | Path, reports: "Sequence[Report]") -> dict[tuple[str | None, ...], Label]:
    """Return the labels of a file by what they are of."""
    matched = match_labels(path, read_labels(path), reports)
    labels = [label for side in matched for each in side for label in each.labels]
    return {(each.metric, each.id, each.sample_digest, each.kind, each.item): each for each in labels}
