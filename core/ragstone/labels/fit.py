"""Fitting a calibration to labelled samples, with scikit-learn (`ragstone[calibrate]`), and how well it agrees."""

import importlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ragstone.labels.calibration import CalibrationError, Change, Figure, ProbabilityMap, signals
from ragstone.metrics.base import CalibratedItem
from ragstone.report.statistics import of_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_NOTHING = 1e-6  # a spread that is rounding: to divide by it would make a weight of it
_OUTER = 10
_INNER = 5
_LEAST_LABELS = 10
_LEAST_GROUPS = 5
_FEW_GROUPS = 30
_FEW_OF_ONE = 10
_CANDIDATES = 400


@dataclass(frozen=True, slots=True)
class Labelled:
    """One sample's items."""

    group: str  # such as its question; a group is never divided between fitting and testing
    judged: Sequence[float]  # the probability of each item, or the sample's score
    labels: Sequence[float]  # 1 for yes, 0 for no, of each item; for a score any number from 0 to 1
    chosen: Sequence[bool] | None = None  # which items the metric takes for a yes; None: those from 1/2 on

    @property
    def before(self) -> "Flags":
        """Which items are a yes without a calibration."""
        return np.array(self.judged) >= 0.5 if self.chosen is None else np.array(self.chosen)

    def mapped(self, fitted: ProbabilityMap) -> "Numbers":
        """Return each item's calibrated probability."""
        return np.array(fitted.apply(self.judged))


@dataclass(frozen=True, slots=True)
class FitResult:
    """What came of the labels."""

    fitted: ProbabilityMap  # on all samples
    threshold: float | None  # of yes; None where labels are no yes and no
    agreement: tuple[Change, ...]  # the first is what the threshold was chosen for
    warnings: tuple[str, ...]  # what to know before it is used


def cross_fit(
    samples: Sequence[Labelled],
    item: CalibratedItem,
    *,
    seed: int = 0,
) -> FitResult:
    """Fit, choose the threshold, and say how well the result agrees with labels that it has not seen."""
    labels = np.concatenate([each.labels for each in samples]) if samples else np.array([])
    groups = [sample.group for sample in samples]
    _check(labels, len(set(groups)), item)
    binary = bool(np.isin(labels, (0.0, 1.0)).all())
    name, measure = ("sentence F1", f1) if item == "sentence" else ("accuracy", accuracy)

    after: dict[int, Numbers] = {}
    decided: dict[int, Flags] = {}
    for train, test in folds(groups, _OUTER, seed):
        kept = [samples[i] for i in train]
        fitted = fit(kept, item)
        limit = best_threshold(_unseen(kept, item, seed), kept, measure) if binary else 0.5
        for i in test:
            after[i] = samples[i].mapped(fitted)
            decided[i] = after[i] >= limit

    unseen = [after[i] for i in range(len(samples))]
    if binary:
        was = [float(measure(sample.before, sample.labels)) for sample in samples]
        now = [float(measure(decided[i], sample.labels)) for i, sample in enumerate(samples)]
    else:
        name = "1 - mean distance"
        was = [closeness(sample.judged, sample.labels) for sample in samples]
        now = [closeness(p, sample.labels) for p, sample in zip(unseen, samples, strict=True)]
    errors = [squared_error(sample.judged, sample.labels) for sample in samples]
    errors_now = [squared_error(p, sample.labels) for p, sample in zip(unseen, samples, strict=True)]
    first = changed(name, was, now, groups)
    fitted = fit(samples, item)
    return FitResult(
        fitted=fitted,
        threshold=best_threshold(unseen, samples, measure) if binary else None,
        agreement=(first, changed("squared error", errors, errors_now, groups)),
        warnings=tuple(_warnings(labels, len(set(groups)), first, judge_counts=fitted.weight > 0.0)),
    )


def _unseen(samples: Sequence[Labelled], item: CalibratedItem, seed: int) -> "list[Numbers]":
    """Return each sample's probabilities by a fit without its group."""
    mapped: dict[int, Numbers] = {}
    for train, test in folds([sample.group for sample in samples], _INNER, seed + 1):
        fitted = fit([samples[i] for i in train], item)
        mapped |= {i: samples[i].mapped(fitted) for i in test}
    return [mapped[i] for i in range(len(samples))]


def best_threshold(
    probabilities: "Sequence[Numbers]",
    samples: Sequence[Labelled],
    measure: "Callable[[Flags, Sequence[float]], Numbers]",
) -> float:
    """Return the threshold with the best mean over samples, taken from the middle of where the mean is high.

    Candidates lie halfway between neighbouring probabilities, at most 400 of them. The means of each and its
    neighbours (5 % on either side) are averaged first: a peak that a few labels make is no optimum.
    """
    ends = np.array([0.0, *np.unique(np.concatenate(probabilities)), 1.0])
    cuts = (ends[:-1] + ends[1:]) / 2.0
    if len(cuts) > _CANDIDATES:
        cuts = cuts[np.rint(np.linspace(0, len(cuts) - 1, _CANDIDATES)).astype(np.int64)]
    pairs = zip(probabilities, samples, strict=True)
    means = np.mean([measure(p >= cuts[:, None], sample.labels) for p, sample in pairs], axis=0)
    reach = len(cuts) // 20
    smooth = np.convolve(np.pad(means, reach, mode="edge"), np.ones(2 * reach + 1), mode="valid")
    best = cuts[smooth >= smooth.max() - 1e-12]
    return float(best[len(best) // 2])


def _check(labels: "Numbers", groups: int, item: CalibratedItem) -> None:
    if len(labels) < _LEAST_LABELS or groups < _LEAST_GROUPS:
        raise CalibrationError(
            f"labels: {len(labels)} in {groups} independent samples are too few; at least {_LEAST_LABELS} in "
            f"{_LEAST_GROUPS} are needed to fit anything, and 30 samples or more for it to be worth it"
        )
    if len(set(labels)) == 1:
        word = f"{labels[0]:g}" if item == "score" else "yes" if labels[0] else "no"
        raise CalibrationError(f"labels: all {len(labels)} are {word}; both kinds are needed to tell them apart")


def _warnings(labels: "Numbers", groups: int, first: Change, *, judge_counts: bool) -> Iterator[str]:
    if groups < _FEW_GROUPS:
        yield f"{groups} independent samples are few: {_FEW_GROUPS} or more give a map that holds elsewhere"
    fewest, word = min((int((labels == value).sum()), word) for value, word in ((0.0, "no"), (1.0, "yes")))
    if np.isin(labels, (0.0, 1.0)).all() and fewest < _FEW_OF_ONE:
        yield f"only {fewest} labels are {word}"
    if not judge_counts:
        yield "the judge says nothing of these labels, or the opposite: the weight of its word is 0"
    if first.difference.high < 0.0:
        yield f"calibration made {first.name} worse on samples that it had not seen: do not use it"
    elif first.difference.low <= 0.0:
        yield f"these labels do not show that calibration helps: the difference in {first.name} may be 0"


def folds(groups: Sequence[str], most: int, seed: int = 0) -> Iterator[tuple[list[int], list[int]]]:
    """Yield what to fit on and what to test on, as indices; each sample is tested once, with all of its group."""
    names = sorted(set(groups))
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret hangs on it
    count = min(most, len(names))
    fold = {name: i % count for i, name in enumerate(names)}
    for number in range(count):
        test = [i for i, group in enumerate(groups) if fold[group] == number]
        yield [i for i, group in enumerate(groups) if fold[group] != number], test


def load_extra(name: str, need: str) -> ModuleType:
    """Import a module of the extra `calibrate`, which what is named as the need cannot do without."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(name.partition(".")[0], name.partition(".")[0])
        message = f'{need} needs {package}: pip install "ragstone[calibrate]" ({error})'
        raise ImportError(message, name=name.partition(".")[0]) from error


def fit(samples: Sequence[Labelled], item: CalibratedItem) -> ProbabilityMap:
    """Fit a map to all items of the samples.

    Logistic regression on the standardised signal with an L2 penalty (C = 1), which holds few labels in check. Where
    it runs against the labels, or is always the same, the map is the share of yes.
    """
    labels = np.concatenate([sample.labels for sample in samples])
    values = np.concatenate([signals(item, sample.judged) for sample in samples])
    # With nothing to go by: the share of yes, never quite 0 or 1.
    share = (float(labels.sum()) + 0.5) / (len(labels) + 1.0)
    weight, intercept = 0.0, math.log(share / (1.0 - share))
    if np.ptp(values) > _NOTHING and 0.0 < labels.mean() < 1.0:
        fitted, at_zero = _logistic(values, labels)
        if fitted >= 0.0:
            weight, intercept = fitted, at_zero
    return ProbabilityMap(item=item, weight=weight, intercept=intercept)


def _logistic(values: "Numbers", labels: "Numbers") -> tuple[float, float]:
    middle, spread = float(values.mean()), float(values.std())
    x = np.repeat((values - middle) / spread, 2)[:, None]
    # A label between 0 and 1 is that much of a yes, and for the rest a no.
    yes = np.tile([1.0, 0.0], len(labels))
    share = np.stack([labels, 1.0 - labels], axis=1).ravel()
    model = load_extra("sklearn.linear_model", "fitting a calibration").LogisticRegression(
        C=1.0, solver="newton-cholesky"
    )
    model.fit(x[share > 0.0], yes[share > 0.0], sample_weight=share[share > 0.0])
    weight = float(model.coef_[0][0]) / spread
    return weight, float(model.intercept_[0]) - weight * middle


def f1(chosen: "Flags", labels: Sequence[float]) -> "Numbers":
    """F1 along the last axis: 2 * hits / (chosen + wanted); with nothing wanted, 1 when nothing is chosen, else 0."""
    wanted, taken = sum(labels), chosen.sum(axis=-1)
    if not wanted:
        return np.asarray(taken == 0, np.float64)
    return np.asarray(2.0 * (chosen @ np.asarray(labels)) / (wanted + taken))


def accuracy(chosen: "Flags", labels: Sequence[float]) -> "Numbers":
    """Return the share of items, along the last axis, on which decision and label are the same."""
    return np.asarray((chosen == (np.asarray(labels) > 0.5)).mean(axis=-1))


def closeness(probabilities: "Sequence[float] | Numbers", labels: Sequence[float]) -> float:
    """Return 1 minus the mean distance of numbers from their labels."""
    return 1.0 - float(np.abs(np.subtract(probabilities, labels)).mean())


def squared_error(probabilities: "Sequence[float] | Numbers", labels: Sequence[float]) -> float:
    """Return the mean squared distance (for yes and no: the Brier score; lower is better)."""
    return float(np.square(np.subtract(probabilities, labels)).mean())


def changed(name: str, before: Sequence[float], after: Sequence[float], groups: Sequence[str]) -> Change:
    """Return the means over samples, before and after, with 95 % intervals that take a group's samples for one."""

    def figure(values: "Numbers", least: float) -> Figure:
        low, high = least, 1.0
        estimate = of_groups(values, groups).estimate((least, 1.0))
        if estimate is not None and estimate.low is not None and estimate.high is not None:  # of one group: anything
            low, high = estimate.low, estimate.high
        return Figure(value=float(values.mean()), low=low, high=high)

    first, second = np.array(before, np.float64), np.array(after, np.float64)
    return Change(
        name=name, before=figure(first, 0.0), after=figure(second, 0.0), difference=figure(second - first, -1.0)
    )
