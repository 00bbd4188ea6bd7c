"""The weights of `ragstone.metrics.fitted`, made from committed scores, with figures on rows that a fit did not see.

Each set of rows weighs the same, and so does each row of it. A fold leaves out whole rows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.linear_model import LogisticRegression

from ragstone.metrics.fitted import SENTENCES, SUPPORTED

from .files import Label, Line, read_records
from .measures import Numbers

_LEAST = 1e-4  # as in the product: further out a log-probability is rounding
_FOLDS = 10
_LEAST_CLAIM = {"faithfulness": "least", "alignment_coverage": "alignment_least"}  # its probability, by metric
_AROUND = 2
_CUTS = np.arange(-4.0, 0.6, 0.2)
_SCALES = np.arange(0.5, 4.01, 0.05)
_REACHES = (0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, math.inf)


@dataclass(frozen=True)
class Items:
    """The items of one row: their signals, a line each, and which of them people chose."""

    signals: Numbers
    chosen: Numbers


@dataclass(frozen=True)
class Fit:
    """What `ragstone.metrics.fitted.Fitted` holds."""

    weights: Numbers
    intercept: float
    reach: float = math.inf

    def margins(self, items: Items) -> Numbers:
        """Return how far each item's z is above the least that is a yes."""
        z: Numbers = items.signals @ self.weights + self.intercept
        return z - max(0.0, float(z.max()) - self.reach)

    def times(self, factor: float) -> "Fit":
        """Return the fit with the same decisions and other probabilities."""
        return Fit(self.weights * factor, self.intercept * factor, self.reach * factor)


def log_odds(p: float) -> float:
    """Return the log-odds of a probability, bounded as in the product."""
    p = min(max(p, _LEAST), 1.0 - _LEAST)
    return math.log(p / (1.0 - p))


def fit_weights(sets: Sequence[Sequence[Items]], *, balanced: bool = False, penalty: float = 1.0) -> Fit:
    """Return weights by logistic regression on standardised signals.

    `balanced` gives both labels of a set the same weight, so that the cut does not follow from how common one is.
    """
    x = np.concatenate([items.signals for rows in sets for items in rows])
    y = np.concatenate([items.chosen for rows in sets for items in rows])
    weight = np.concatenate(
        [np.full(len(items.chosen), 1 / len(items.chosen) / len(rows)) for rows in sets for items in rows]
    )
    if balanced:
        alike = [[items.chosen[0] for items in rows] for rows in sets]
        shares = [np.where(np.array(each) > 0, np.mean(each), 1 - np.mean(each)) for each in alike]
        weight = weight / np.concatenate(shares)
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    model = LogisticRegression(max_iter=1000, C=1 / penalty).fit(
        (x - mean) / deviation, y, weight * len(y) / weight.sum()
    )
    weights = model.coef_[0] / deviation
    return Fit(weights, float(model.intercept_[0] - weights @ mean))


def f1(fit: Fit, items: Items) -> float:
    """Return the F1 of the items that are chosen by a fit; where nothing is right, 1 for choosing nothing."""
    chosen, right = fit.margins(items) >= 0, items.chosen > 0
    if not right.any():
        return float(not chosen.any())
    both = float((chosen & right).sum())
    return 2 * both / float(chosen.sum() + right.sum()) if both else 0.0


def fit_sentences(sets: Sequence[Sequence[Items]]) -> Fit:
    """Return weights, with the intercept and reach of the best mean F1, and the scale of the least logarithmic loss.

    Each set weighs the same. F1 is that of a pair and the pairs around it: the best of few rows is often chance.
    """
    base = fit_weights(sets)
    grid = [[Fit(base.weights, base.intercept - float(cut), reach) for reach in _REACHES] for cut in _CUTS]
    figures = [
        [sum(float(np.mean([f1(fit, items) for items in rows])) for rows in sets) for fit in row] for row in grid
    ]
    around = sliding_window_view(np.pad(figures, _AROUND, mode="edge"), (2 * _AROUND + 1,) * 2).mean(axis=(2, 3))
    cut, reach = np.unravel_index(around.argmax(), around.shape)
    best = grid[cut][reach]
    return best.times(min(_SCALES, key=lambda scale: sum(loss(best.times(float(scale)), rows) for rows in sets)))


def loss(fit: Fit, rows: Sequence[Items]) -> float:
    """Return the mean logarithmic loss of a set's items, each row weighing the same."""
    signed = [np.where(items.chosen > 0, -1.0, 1.0) * fit.margins(items) for items in rows]
    return float(np.mean([np.logaddexp(0.0, each).mean() for each in signed]))


def folds(sets: Sequence[Sequence[Items]]) -> Iterator[tuple[list[list[Items]], list[list[Items]]]]:
    """Yield what a fit sees and what it does not."""
    for k in range(_FOLDS):
        yield (
            [[items for i, items in enumerate(rows) if i % _FOLDS != k] for rows in sets],
            [[items for i, items in enumerate(rows) if i % _FOLDS == k] for rows in sets],
        )


def sentence_items(folder: Path, *, judged: bool = True) -> list[Items]:
    """Return the rows of a run of ContextRelevancy: the passage's log-odds (with `judged`) and two cosines."""
    labels = {label.id: label for label in read_records(folder / "rows.jsonl", Label)}
    rows: list[Items] = []
    for line in read_records(folder / "scores" / "ragstone.jsonl", Line):
        label = labels[line.id]
        if line.sentences is None or label.signals.cosines is None:
            continue
        passage = {i: log_odds(p) for first, last, p in line.passages for i in range(first, last + 1)}
        signals = [
            [*([passage[i]] if judged else []), *label.signals.cosines[place][sentence]]
            for i, (place, sentence, *_) in enumerate(line.sentences)
        ]
        chosen = [float((place, sentence) in label.relevant) for place, sentence, *_ in line.sentences]
        rows.append(Items(np.array(signals), np.array(chosen)))
    return rows


def binary_items(folder: Path, signals: Callable[[Line, Label], list[float]], target: str = "human") -> list[Items]:
    """Return the rows of a run with labels, an item each, but those that have no signals; 1 is a yes."""
    labels = {label.id: label for label in read_records(folder / "rows.jsonl", Label)}
    rows: list[Items] = []
    for line in read_records(folder / "scores" / "ragstone.jsonl", Line):
        label = labels[line.id]
        if found := signals(line, label):
            rows.append(Items(np.array([found]), np.array([float(label.target[target] >= 1.0)])))
    return rows


def refusal_signals(line: Line, label: Label, step: str) -> list[float]:  # noqa: ARG001 - as `claim_signals`
    """Return the log-odds of a refusal, where ResponseRelevancy asked for it by this step."""
    return [log_odds(line.parts[step])] if line.value is not None and step in line.parts else []


def claim_signals(line: Line, label: Label) -> list[float]:
    """Return the log-odds of the least supported claim, from what `SUPPORTED` made of them, and the text's length."""
    part = _LEAST_CLAIM.get(line.metric)
    if part is None or line.value is None or label.signals.length is None:
        return []
    weights, length = SUPPORTED.weights, label.signals.length
    odds = log_odds(line.parts[part]) - SUPPORTED.intercept - weights["length"] * length
    return [odds / weights["supported"], length]


def accuracy(fit: Fit, rows: Sequence[Items]) -> float:
    """Return the share of rows whose one item is on the right side."""
    return float(np.mean([(fit.margins(items)[0] >= 0) == (items.chosen[0] > 0) for items in rows]))


def report(results: Path) -> str:
    """Return the fits and their figures, from runs in the folders of RESULTS."""
    lines: list[str] = []
    names = ("clapnq", "hotpotqa")
    for judged in (True, False):
        sets = [sentence_items(results / name, judged=judged) for name in names]
        fit = fit_sentences(sets)
        signals = [name for name in SENTENCES.weights if judged or name != "passage"]
        lines.append(f"sentences, {'judge and cosines' if judged else 'cosines alone'}: {_shown(fit, signals)}")
        unseen: list[list[float]] = [[] for _ in names]
        for seen, left in folds(sets):
            folded = fit_sentences(seen)
            for figures, rows in zip(unseen, left, strict=True):
                figures += [f1(folded, items) for items in rows]
        for name, figures, other in zip(names, unseen, reversed(sets), strict=True):
            own = sets[names.index(name)]
            transferred = fit_sentences([other])
            answerable = [f1(transferred, items) for items in own if items.chosen.any()]
            lines.append(
                f"  {name}: F1 {np.mean(figures):.2f} in {_FOLDS} folds of both; fitted on the other set alone "
                f"{np.mean([f1(transferred, items) for items in own]):.2f} (answerable rows {np.mean(answerable):.2f})"
            )
    human = ("xstest", "short_answers", "short_answers_heldout")
    for step in ("open", "refused"):
        sets = {name: binary_items(results / name, partial(refusal_signals, step=step)) for name in human}
        lines += _cross_fitted(f"noncommittal, {step}", [step], sets, _fit_rows)
    claims = {name: binary_items(results / name, claim_signals) for name in ("claims", "claims_heldout")}
    claims["summeval"] = binary_items(results / "summeval", claim_signals, "alignment")
    lines += _cross_fitted(
        "supported", list(SUPPORTED.weights), claims, partial(fit_weights, balanced=True, penalty=0.001)
    )
    return "\n".join(lines)


def _fit_rows(sets: Sequence[Sequence[Items]]) -> Fit:
    """Return weights for which each row counts the same: of some sets few rows are short, or long."""
    return fit_weights([[items for rows in sets for items in rows]])


def _cross_fitted(
    title: str, signals: Sequence[str], sets: Mapping[str, Sequence[Items]], fit: Callable[..., Fit]
) -> list[str]:
    """Return the fit of all sets, and its accuracy on rows and on sets that a fit did not see."""
    sets = {name: rows for name, rows in sets.items() if rows}
    rows = [*sets.values()]
    lines = [f"{title}: {_shown(fit(rows), signals)}"]
    for number, (name, own) in enumerate(sets.items()):
        right = [accuracy(fit(seen), left[number]) * len(left[number]) for seen, left in folds(rows) if left[number]]
        others = fit([each for i, each in enumerate(rows) if i != number])
        lines.append(
            f"  {name}: accuracy {sum(right) / len(own):.2f} in {_FOLDS} folds of all; fitted on the others alone "
            f"{accuracy(others, own):.2f}"
        )
    return lines


def _shown(fit: Fit, signals: Sequence[str]) -> str:
    weights = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(signals, fit.weights, strict=True))
    return f"{weights}, intercept {fit.intercept:.3f}, reach {fit.reach:.3f}"
