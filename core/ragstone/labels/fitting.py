"""From labelled samples to a map, a threshold, and honest figures: everything judged by what it was not fitted on."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ragstone.labels.agreement import accuracy, changed, closeness, f1, samples_needed, squared_error
from ragstone.labels.calibration import CalibrationError, Change
from ragstone.labels.labelled import Labelled, folds
from ragstone.labels.learning import Fitted, Method, fit
from ragstone.labels.signals import Item, Signal

_OUTER = 10
_INNER = 5
_MANY = 1_000  # labels from which on isotonic steps are steadier than they are coarse
_LEAST_LABELS = 10
_LEAST_GROUPS = 5
_FEW_GROUPS = 30
_FEW_OF_ONE = 10
_CANDIDATES = 400


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
    item: Item,
    signals: Sequence[Signal],
    *,
    method: Literal["auto"] | Method = "auto",
    width: float = 0.1,
    folds_at_most: int = _OUTER,
    seed: int = 0,
) -> Found:
    """Fit, choose the threshold, and say how well the result agrees with labels that it has not seen.

    Args:
        samples: The labelled samples.
        item: What the labels are of.
        signals: What to look at.
        method: "auto" takes "platt" below 1,000 labels and "isotonic" from there on.
        width: Of the interval that is wanted.
        folds_at_most: Parts into which the groups are dealt; each is judged by a fit on the others.
        seed: Of folds and bootstrap: the same samples give the same result.

    Raises:
        CalibrationError: There are too few labels, or they are all the same.
        ImportError: scikit-learn is not installed.
    """
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
    item: Item,
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


def _check(samples: Sequence[Labelled], item: Item) -> None:
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
    told: list[str] = []
    groups = len({sample.group for sample in samples})
    if groups < _FEW_GROUPS:
        told.append(f"{groups} independent samples are few: {_FEW_GROUPS} or more give a map that holds elsewhere")
    labels = [label for sample in samples for label in sample.labels]
    if set(labels) <= {0.0, 1.0} and (fewest := min(labels.count(0.0), labels.count(1.0))) < _FEW_OF_ONE:
        told.append(f"only {fewest} labels are {'yes' if labels.count(1.0) == fewest else 'no'}")
    if not fitted.weights.get(signals[0]):
        told.append("the judge says nothing of these labels, or the opposite: the weight of its word is 0")
    if first.difference.low <= 0.0:
        worse = first.difference.high < 0.0
        told.append(
            f"calibration made {first.name} worse on samples that it had not seen: do not use it"
            if worse
            else f"these labels do not show that calibration helps: the difference in {first.name} may be 0"
        )
    return told
