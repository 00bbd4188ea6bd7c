"""How well decisions and probabilities agree with labels, sample by sample, with bootstrap intervals."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.labels.calibration import Change, Figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DRAWS = 2_000


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

    Args:
        name: What the numbers are.
        before: One number per sample.
        after: One number per sample.
        groups: Each sample's group; groups are drawn, with their samples.
        seed: Of the bootstrap.

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
