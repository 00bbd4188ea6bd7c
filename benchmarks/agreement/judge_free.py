"""The floor that a judge has to beat on sentences: a map from two cosines, fitted on the rows of another file.

It sees what an embedder says of question and sentence, and asks no judge. Its cut is the one with the best mean F1 on
the rows that it was fitted on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .files import Label, read_records
from .measures import Numbers, sentence_f1
from .rows import Place

_RESULTS = Path(__file__).parent / "results"
_RIDGE = 1e-3
_ROUNDS = 50


@dataclass(frozen=True)
class CosineMap:
    """A sentence is relevant where the log-odds w . (1, cosine, cosine with the sentence before) reach the cut."""

    weights: Numbers
    cut: float

    def graded(self, label: Label) -> dict[Place, float]:
        """Return the log-odds of each sentence."""
        return dict(zip(label.places(), (_features(label) @ self.weights).tolist(), strict=True))

    def chosen(self, label: Label) -> frozenset[Place]:
        """Return the sentences that it takes to be relevant."""
        return frozenset(place for place, odds in self.graded(label).items() if odds >= self.cut)


def cosine_maps(labels: Iterable[Label]) -> dict[str, CosineMap]:
    """Return a map by each file of sentence labels, of these labels or of the committed results."""
    files: dict[str, list[Label]] = {}
    for label in labels:
        files.setdefault(label.file, []).append(label)
    for path in sorted(_RESULTS.glob("*/rows.jsonl")):
        known = set(files)
        for label in read_records(path, Label):
            if label.file not in known:
                files.setdefault(label.file, []).append(label)
    return {file: fit(rows) for file, rows in files.items() if rows[0].task == "sentences" and _fits(rows)}


def _fits(labels: Sequence[Label]) -> bool:
    return all(label.signals.cosines is not None for label in labels) and any(label.relevant for label in labels)


def fit(labels: Sequence[Label]) -> CosineMap:
    """Return the map that fits labelled rows: weights by logistic regression, the cut by the mean of their F1."""
    x = np.concatenate([_features(label) for label in labels])
    y = np.array([place in label.relevant for label in labels for place in label.places()], dtype=np.float64)
    weights = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):  # Newton's method
        p = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (y - p) - _RIDGE * weights
        weights = weights + np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + _RIDGE * np.eye(len(weights)), slope)
    odds = [np.array(list(CosineMap(weights, 0.0).graded(label).values())) for label in labels]
    cuts = np.unique(np.quantile(np.concatenate(odds), np.linspace(0, 1, 101)))

    def mean_f1(cut: float) -> float:
        maps = CosineMap(weights, cut)
        return sum(sentence_f1(maps.chosen(label), label.relevant) for label in labels)

    return CosineMap(weights, max(cuts.tolist(), key=mean_f1))


def _features(label: Label) -> Numbers:
    pairs = [pair for sentences in label.signals.cosines or () for pair in sentences]
    features: Numbers = np.column_stack([np.ones(len(pairs)), np.array(pairs, dtype=np.float64).reshape(-1, 2)])
    return features


def others(maps: Mapping[str, CosineMap], file: str) -> dict[str, CosineMap]:
    """Return the maps that were fitted on other files than this one, by a short name."""
    return {f"cosines, by {name.rpartition('__')[2]}": each for name, each in maps.items() if name != file}
