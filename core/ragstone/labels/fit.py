"""Fitting a calibration to labelled samples, with scikit-learn (`ragstone[calibrate]`), and how well it agrees."""

import importlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from ragstone.labels.calibration import CalibrationError, Change, Figure, Signal, columns, mapped, sigmoid
from ragstone.metrics.base import CalibratedItem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Method = Literal["platt", "isotonic"]

_NOTHING = 1e-6  # a spread that is rounding: to divide by it would make a weight of it
_DRAWS = 2_000
_OUTER = 10
_INNER = 5
_MANY = 1_000  # labels from which on isotonic steps are steadier than they are coarse
_LEAST_LABELS = 10
_LEAST_GROUPS = 5
_FEW_GROUPS = 30
_FEW_OF_ONE = 10
_CANDIDATES = 400


@dataclass(frozen=True, slots=True)
class Labelled:
    """One sample's items.

    Attributes:
        group: What it belongs to, such as its question; a group is never divided between fitting and testing.
        judged: The judge's probability of each item, or the sample's score.
        labels: 1 for yes, 0 for no, of each item; for a score any number from 0 to 1.
        cosines: Of each item with the question, where they are wanted.
        contexts: In which context each item stands, where cosines are wanted.

    Example:
        >>> Labelled("Who wrote Emma?", [0.25, 0.75], [0.0, 1.0]).cosines is None
        True
    """

    group: str
    judged: Sequence[float]
    labels: Sequence[float]
    cosines: Sequence[float] | None = None
    contexts: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """A map as it was fitted; the arithmetic is `Calibration`'s.

    Attributes:
        weights: By signal, none below 0.
        intercept: Added.
        knots: For "isotonic".
    """

    weights: Mapping[Signal, float]
    intercept: float
    knots: tuple[tuple[float, float], ...] = ()

    def apply(self, sample: Labelled) -> list[float]:
        """Return the probability of each of a sample's items."""
        return mapped(self.weights, self.intercept, self.knots, sample.judged, sample.cosines, sample.contexts)


@dataclass(frozen=True, slots=True)
class Found:
    """What came of the labels.

    Attributes:
        fitted: The map, fitted on all samples.
        method: How it was fitted.
        threshold: From which probability on an item counts as yes; None where labels are no yes and no.
        agreement: The figures; the first is what the threshold was chosen for.
        needed: How many samples an interval of the wanted width would take.
        warnings: What to know before it is used.
    """

    fitted: Fitted
    method: Method
    threshold: float | None
    agreement: tuple[Change, ...]
    needed: int
    warnings: tuple[str, ...]


def find(
    samples: Sequence[Labelled],
    item: CalibratedItem,
    signals: Sequence[Signal],
    *,
    method: Literal["auto"] | Method = "auto",
    width: float = 0.1,
    folds_at_most: int = _OUTER,
    seed: int = 0,
) -> Found:
    """Fit, choose the threshold, and say how well the result agrees with labels that it has not seen."""
    _check(samples, item)
    labels = [label for sample in samples for label in sample.labels]
    binary = all(label in (0.0, 1.0) for label in labels)
    chosen: Method = method if method != "auto" else "isotonic" if len(labels) >= _MANY else "platt"
    measure = f1 if item == "sentence" else accuracy
    groups = [sample.group for sample in samples]

    after: list[list[float]] = [[] for _ in samples]
    decided: list[list[bool]] = [[] for _ in samples]
    for train, test in folds(groups, folds_at_most, seed):
        kept = [samples[i] for i in train]
        fitted = fit(kept, signals, chosen)
        limit = best_threshold(_unseen(kept, signals, chosen, seed), kept, measure) if binary else 0.5
        for i in test:
            after[i] = fitted.apply(samples[i])
            decided[i] = [p >= limit for p in after[i]]

    threshold = best_threshold(after, samples, measure) if binary else None
    agreement = _agreement(samples, after, decided if binary else None, item, seed)
    fitted = fit(samples, signals, chosen)
    needed = samples_needed(len(samples), agreement[0].after.width, width)
    warnings = tuple(_warnings(samples, signals, fitted, agreement[0]))
    return Found(fitted, chosen, threshold, agreement, needed, warnings)


def _unseen(samples: Sequence[Labelled], signals: Sequence[Signal], method: Method, seed: int) -> list[list[float]]:
    """Return each sample's probabilities by a fit without its group."""
    found: list[list[float]] = [[] for _ in samples]
    for train, test in folds([sample.group for sample in samples], _INNER, seed + 1):
        fitted = fit([samples[i] for i in train], signals, method)
        for i in test:
            found[i] = fitted.apply(samples[i])
    return found


def best_threshold(
    probabilities: Sequence[Sequence[float]],
    samples: Sequence[Labelled],
    measure: Callable[[Sequence[bool], Sequence[float]], float],
) -> float:
    """Return the threshold with the best mean over samples, taken from the middle of where the mean is high.

    Candidates lie halfway between neighbouring probabilities, at most 400 of them. The means of each and its
    neighbours (5 % on either side) are averaged first: a peak that a few labels make is no optimum.

    Example:
        >>> best_threshold([[0.2, 0.8]], [Labelled("a", [0.2, 0.8], [0.0, 1.0])], f1)
        0.5
    """
    values = sorted({p for sample in probabilities for p in sample})
    ends = [0.0, *values, 1.0]
    cuts = [(a + b) / 2.0 for a, b in pairwise(ends)]
    if len(cuts) > _CANDIDATES:
        cuts = [cuts[round(i * (len(cuts) - 1) / (_CANDIDATES - 1))] for i in range(_CANDIDATES)]
    means = [
        math.fsum(
            measure([p >= cut for p in found], sample.labels)
            for found, sample in zip(probabilities, samples, strict=True)
        )
        / len(samples)
        for cut in cuts
    ]
    reach = len(cuts) // 20
    smooth = [
        math.fsum(means[min(max(j, 0), len(means) - 1)] for j in range(i - reach, i + reach + 1))
        for i in range(len(means))
    ]
    top = max(smooth)
    best = [cut for cut, mean in zip(cuts, smooth, strict=True) if mean >= top - 1e-12]
    return best[len(best) // 2]


def _agreement(
    samples: Sequence[Labelled],
    after: Sequence[Sequence[float]],
    decided: Sequence[Sequence[bool]] | None,
    item: CalibratedItem,
    seed: int,
) -> tuple[Change, ...]:
    groups = [sample.group for sample in samples]
    pairs = list(zip(samples, after, strict=True))
    found: list[Change] = []
    if decided is not None:
        name, measure = ("sentence F1", f1) if item == "sentence" else ("accuracy", accuracy)
        was = [measure([p >= 0.5 for p in sample.judged], sample.labels) for sample in samples]
        now = [measure(yes, sample.labels) for sample, yes in zip(samples, decided, strict=True)]
        found.append(changed(name, was, now, groups, seed))
    else:
        was = [closeness(sample.judged, sample.labels) for sample in samples]
        now = [closeness(p, sample.labels) for sample, p in pairs]
        found.append(changed("1 - mean distance", was, now, groups, seed))
    was = [squared_error(sample.judged, sample.labels) for sample in samples]
    now = [squared_error(p, sample.labels) for sample, p in pairs]
    found.append(changed("squared error", was, now, groups, seed))
    return tuple(found)


def _check(samples: Sequence[Labelled], item: CalibratedItem) -> None:
    labels = [label for sample in samples for label in sample.labels]
    groups = len({sample.group for sample in samples})
    if len(labels) < _LEAST_LABELS or groups < _LEAST_GROUPS:
        raise CalibrationError(
            f"labels: {len(labels)} in {groups} independent samples are too few; at least {_LEAST_LABELS} in "
            f"{_LEAST_GROUPS} are needed to fit anything, and 30 samples or more for it to be worth it"
        )
    if len(set(labels)) == 1:
        word = {0.0: "no", 1.0: "yes"}.get(labels[0], f"{labels[0]:g}") if item != "score" else f"{labels[0]:g}"
        raise CalibrationError(f"labels: all {len(labels)} are {word}; both kinds are needed to tell them apart")


def _warnings(samples: Sequence[Labelled], signals: Sequence[Signal], fitted: Fitted, first: Change) -> list[str]:
    warnings: list[str] = []
    groups = len({sample.group for sample in samples})
    if groups < _FEW_GROUPS:
        warnings.append(f"{groups} independent samples are few: {_FEW_GROUPS} or more give a map that holds elsewhere")
    labels = [label for sample in samples for label in sample.labels]
    if set(labels) <= {0.0, 1.0} and (fewest := min(labels.count(0.0), labels.count(1.0))) < _FEW_OF_ONE:
        warnings.append(f"only {fewest} labels are {'yes' if labels.count(1.0) == fewest else 'no'}")
    if not fitted.weights.get(signals[0]):
        warnings.append("the judge says nothing of these labels, or the opposite: the weight of its word is 0")
    if first.difference.low <= 0.0:
        worse = first.difference.high < 0.0
        warnings.append(
            f"calibration made {first.name} worse on samples that it had not seen: do not use it"
            if worse
            else f"these labels do not show that calibration helps: the difference in {first.name} may be 0"
        )
    return warnings


def folds(groups: Sequence[str], most: int, seed: int = 0) -> Iterator[tuple[list[int], list[int]]]:
    """Yield what to fit on and what to test on, as indices; each sample is tested once, with all of its group.

    Example:
        >>> sorted(test for _, test in folds(["a", "b", "a"], 10))
        [[0, 2], [1]]
    """
    names = sorted(set(groups))
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret hangs on it
    count = min(most, len(names))
    fold = {name: i % count for i, name in enumerate(names)}
    for number in range(count):
        test = [i for i, group in enumerate(groups) if fold[group] == number]
        yield [i for i, group in enumerate(groups) if fold[group] != number], test


def load_sklearn(name: str) -> ModuleType:
    """Import a module of scikit-learn.

    Example:
        >>> load_sklearn("isotonic").__name__
        'sklearn.isotonic'
    """
    try:
        return importlib.import_module(f"sklearn.{name}")
    except ImportError as error:
        message = f'fitting a calibration needs scikit-learn: pip install "ragstone[calibrate]" ({error})'
        raise ImportError(message, name="sklearn") from error


def fit(samples: Sequence[Labelled], signals: Sequence[Signal], method: Method) -> Fitted:
    """Fit a map to all items of the samples.

    Logistic regression on standardised signals with an L2 penalty (C = 1), which holds few labels in check. A signal
    whose weight comes out below 0 runs against the labels: it is left out and the rest fitted again, so that the map
    rises with every signal. "isotonic" puts scikit-learn's isotonic steps behind it.
    """
    import numpy as np

    labels = np.concatenate([np.asarray(sample.labels, dtype=np.float64) for sample in samples])
    by_signal = [columns(signals, sample.judged, sample.cosines, sample.contexts) for sample in samples]
    values: dict[Signal, NDArray[np.float64]] = {
        name: np.concatenate([np.asarray(sample[i], dtype=np.float64) for sample in by_signal])
        for i, name in enumerate(signals)
    }
    weights, intercept = _rising(values, labels)
    if method == "platt":
        return Fitted(weights, intercept)
    z = sum((weights[name] * values[name] for name in weights), np.full(len(labels), intercept))
    return Fitted(weights, intercept, _steps(np.asarray([sigmoid(float(x)) for x in z]), labels))


def _rising(
    values: "Mapping[Signal, NDArray[np.float64]]", labels: "NDArray[np.float64]"
) -> tuple[dict[Signal, float], float]:
    names: list[Signal] = [name for name, column in values.items() if float(column.max() - column.min()) > _NOTHING]
    while names and 0.0 < labels.mean() < 1.0:
        kept: dict[Signal, NDArray[np.float64]] = {name: values[name] for name in names}
        weights, intercept = _logistic(kept, labels)
        worst = min(weights, key=weights.__getitem__)
        if weights[worst] >= 0.0:
            return weights, intercept
        names.remove(worst)
    n = len(labels)
    share = (float(labels.sum()) + 0.5) / (n + 1.0)  # nothing to go by: the share of yes, never quite 0 or 1
    return {}, math.log(share / (1.0 - share))


def _logistic(
    values: "Mapping[Signal, NDArray[np.float64]]", labels: "NDArray[np.float64]"
) -> tuple[dict[Signal, float], float]:
    import numpy as np

    raw = np.stack(list(values.values()), axis=1)
    middle, spread = raw.mean(axis=0), raw.std(axis=0)
    x = (raw - middle) / spread
    # A label between 0 and 1 is that much of a yes, and for the rest a no.
    model = load_sklearn("linear_model").LogisticRegression(C=1.0, solver="newton-cholesky")
    yes = np.concatenate([np.ones(len(labels)), np.zeros(len(labels))])
    share = np.concatenate([labels, 1.0 - labels])
    kept = share > 0.0
    model.fit(np.concatenate([x, x])[kept], yes[kept], sample_weight=share[kept])
    scaled = np.asarray(model.coef_, dtype=np.float64)[0] / spread
    intercept = float(np.asarray(model.intercept_, dtype=np.float64)[0] - (scaled * middle).sum())
    return {name: float(weight) for name, weight in zip(values, scaled, strict=True)}, intercept


def _steps(p: "NDArray[np.float64]", labels: "NDArray[np.float64]") -> tuple[tuple[float, float], ...]:
    model = load_sklearn("isotonic").IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(p, labels)
    knots: list[tuple[float, float]] = []
    for x, y in zip(model.X_thresholds_.tolist(), model.y_thresholds_.tolist(), strict=True):
        if not knots or x > knots[-1][0]:
            knots.append((min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)))
    return tuple(knots)


def f1(chosen: Sequence[bool], labels: Sequence[float]) -> float:
    """Return F1 of one sample: 2 * hits / (chosen + wanted); with nothing wanted, 1 when nothing is chosen, else 0.

    Example:
        >>> f1([True, True], [1.0, 0.0]), f1([False], [0.0]), f1([True], [0.0])
        (0.6666666666666666, 1.0, 0.0)
    """
    wanted, taken = sum(labels), sum(chosen)
    if not wanted:
        return float(not taken)
    return 2.0 * sum(label for label, yes in zip(labels, chosen, strict=True) if yes) / (wanted + taken)


def accuracy(chosen: Sequence[bool], labels: Sequence[float]) -> float:
    """Return the share of items on which decision and label are the same.

    Example:
        >>> accuracy([True, True], [1.0, 0.0])
        0.5
    """
    return sum(yes == (label > 0.5) for yes, label in zip(chosen, labels, strict=True)) / len(labels)


def closeness(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """Return 1 minus the mean distance of numbers from their labels.

    Example:
        >>> closeness([0.75], [0.5])
        0.75
    """
    return 1.0 - sum(abs(p - label) for p, label in zip(probabilities, labels, strict=True)) / len(labels)


def squared_error(probabilities: Sequence[float], labels: Sequence[float]) -> float:
    """Return the mean squared distance (for yes and no: the Brier score; lower is better).

    Example:
        >>> squared_error([0.5, 1.0], [1.0, 1.0])
        0.125
    """
    return sum((p - label) ** 2 for p, label in zip(probabilities, labels, strict=True)) / len(labels)


def changed(name: str, before: Sequence[float], after: Sequence[float], groups: Sequence[str], seed: int = 0) -> Change:
    """Return the means over samples, before and after, with 95 % intervals by a bootstrap over whole groups.

    Example:
        >>> changed("accuracy", [0.0, 1.0], [1.0, 1.0], ["a", "b"]).difference.value
        0.5
    """
    import numpy as np

    names = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    member = np.asarray([names[group] for group in groups])
    sizes = np.bincount(member, minlength=len(names)).astype(np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(names), size=(_DRAWS, len(names)))
    totals = sizes[drawn].sum(axis=1)

    def figure(values: "NDArray[np.float64]") -> Figure:
        sums = np.bincount(member, weights=values, minlength=len(names))
        means = sums[drawn].sum(axis=1) / totals
        low, high = np.quantile(means, [0.025, 0.975])
        return Figure(value=float(values.mean()), low=float(low), high=float(high))

    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    return Change(name=name, before=figure(first), after=figure(second), difference=figure(second - first))


def samples_needed(samples: int, width: float, wanted: float) -> int:
    """Return how many samples an interval of the wanted width takes: width falls with the root of their number.

    Example:
        >>> samples_needed(30, 0.2, 0.1), samples_needed(30, 0.1, 0.2)
        (120, 30)
    """
    return samples if width <= wanted else math.ceil(round(samples * (width / wanted) ** 2, 6))
