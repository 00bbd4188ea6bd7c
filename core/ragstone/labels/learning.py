"""Fitting with scikit-learn, which the extra `ragstone[calibrate]` brings; loaded at first use."""

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from ragstone.labels.calibration import mapped
from ragstone.labels.labelled import Labelled
from ragstone.labels.signals import Signal, columns, sigmoid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Method = Literal["platt", "isotonic"]

_NOTHING = 1e-6  # a spread that is rounding: to divide by it would make a weight of it


def load_sklearn(name: str) -> ModuleType:
    """Import a module of scikit-learn.

    Raises:
        ImportError: It is not installed; the message says what to install.

    Example:
        >>> load_sklearn("isotonic").__name__
        'sklearn.isotonic'
    """
    try:
        return importlib.import_module(f"sklearn.{name}")
    except ImportError as error:
        message = f'fitting a calibration needs scikit-learn: pip install "ragstone[calibrate]" ({error})'
        raise ImportError(message, name="sklearn") from error


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
    knots: tuple[tuple[float, float], ...] = field(default=())

    def apply(self, sample: Labelled) -> list[float]:
        """Return the probability of each of a sample's items."""
        return mapped(self.weights, self.intercept, self.knots, sample.judged, sample.cosines, sample.contexts)


def fit(samples: Sequence[Labelled], signals: Sequence[Signal], method: Method) -> Fitted:
    """Fit a map to all items of the samples.

    Logistic regression on standardised signals with an L2 penalty (C = 1), which holds few labels in check. A signal
    whose weight comes out below 0 runs against the labels: it is left out and the rest fitted again, so that the map
    rises with every signal. "isotonic" puts scikit-learn's isotonic steps behind it.

    Args:
        samples: With at least one item.
        signals: What to look at.
        method: "platt" or "isotonic".
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
