"""What is held against which label: the readings of a metric's outcome, the statistics, the floors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import statistics as st
from .files import Label, Line
from .rows import Place, Task

Labels = Sequence[Label]
Floors = Mapping[str, Callable[[Labels], Sequence[Any]]]
Statistic = Callable[[Sequence[Any], Labels], st.Measure]

# The parts of a breakdown that are a score in their own right, by metric, and the label each is held against.
# "value" is the score; a part that no line has makes no row of the table.
_PARTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "context_relevancy": {"human": ("value", "sentence_expected", "uncalibrated", "chunk")},
    "response_relevancy": {"human": ("value", "uncalibrated", "expected", "parts", "parts_expected")},
    "summarization_score": {
        "coverage": ("qa", "qa_expected", "value"),
        "overall": ("qa", "qa_expected", "value"),
    },
    "alignment_coverage": {
        "coverage": ("coverage", "coverage_expected", "value"),
        "alignment": ("alignment", "alignment_expected", "value"),
        "overall": ("value",),
    },
}
_LEXICAL = (0.2, 0.3)  # shares of the question's words that make a sentence relevant to the lexical floor


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One row of the table: a reading against a label by a statistic, and trivial scorers by the same.

    Attributes:
        reading: Which number of an outcome it is.
        label: What it is held against.
        name: The statistic's name.
        take: Takes the reading from a line that was scored; None where it has none.
        statistic: Of the readings of rows with their labels.
        floors: By name, what a trivial scorer says in place of the reading.
    """

    reading: str
    label: str
    name: str
    take: Callable[[Line], Any]
    statistic: Statistic
    floors: Floors


def comparisons(task: Task, metric: str, labels: Iterable[str]) -> Iterator[Comparison]:
    """Yield what there is to compare for rows of a task that a metric scored.

    Args:
        task: The rows' task.
        metric: The metric.
        labels: The names of the rows' targets.
    """
    if task == "sentences":
        yield from _of_sentences()
    elif task == "noncommittal":
        yield from _of_noncommittal()
    else:
        for label in labels:
            others = () if label in ("coverage", "alignment", "overall") else ("value",)
            for reading in _PARTS.get(metric, {}).get(label, others):
                yield from _of_numbers(task, metric, label, reading)


def taken(reading: str) -> Callable[[Line], float | None]:
    """Return what takes the score ("value") or a part of the breakdown from a line that was scored."""
    return lambda line: line.value if reading == "value" else line.parts.get(reading)


_LENGTH = {"length": lambda labels: [each.signals.words for each in labels]}
_COSINE = {"cosine": lambda labels: [each.signals.cosine for each in labels]}
_BIGRAMS = {"bigrams": lambda labels: [each.signals.bigrams for each in labels]}
_LONGER_OR_SHORTER = {"longer": _LENGTH["length"], "shorter": lambda labels: [-each.signals.words for each in labels]}


def _of_numbers(task: Task, metric: str, label: str, reading: str) -> Iterator[Comparison]:
    def targets(labels: Labels) -> list[float]:
        return [each.target[label] for each in labels]

    def grouped(statistic: Callable[..., st.Measure]) -> Statistic:
        return lambda values, labels: statistic(values, targets(labels), [each.group for each in labels])

    def row(name: str, statistic: Statistic, floors: Floors) -> Comparison:
        return Comparison(
            reading=reading, label=label, name=name, take=taken(reading), statistic=statistic, floors=floors
        )

    if task == "pairwise":
        yield row("pairwise accuracy", grouped(st.pairwise), _LONGER_OR_SHORTER | _COSINE)
    elif task == "binary":
        yield row("AUROC", lambda values, labels: st.auroc(values, targets(labels)), _LENGTH | _COSINE)
        commoner = {"the commoner label": lambda labels: _commoner(targets(labels))}
        yield row("accuracy at .5", lambda values, labels: st.accuracy(values, targets(labels)), commoner)
    else:
        floors = _LENGTH | (_COSINE if metric == "response_relevancy" else _BIGRAMS)
        yield row("rho within documents", grouped(st.within), floors)
        yield row("rho pooled", grouped(st.pooled), floors)


def _commoner(targets: Sequence[float]) -> list[float]:
    return [float(2 * sum(targets) >= len(targets))] * len(targets)


def _of_noncommittal() -> Iterator[Comparison]:
    def flagged(line: Line) -> float:
        """1 where the task's own reading says so: the score is 0, or the breakdown says noncommittal."""
        return float(line.value == 0.0 or line.parts.get("noncommittal", 0.0) >= 0.5)

    def graded(line: Line) -> float:
        return line.parts.get("noncommittal_probability", line.parts.get("noncommittal", -(line.value or 0.0)))

    def targets(labels: Labels) -> list[float]:
        return [each.target["human"] for each in labels]

    yield Comparison(
        reading="noncommittal",
        label="human",
        name="accuracy",
        take=flagged,
        statistic=lambda values, labels: st.accuracy(values, targets(labels)),
        floors={
            "keywords": lambda labels: [each.signals.refusal for each in labels],
            "the commoner label": lambda labels: _commoner(targets(labels)),
        },
    )
    yield Comparison(
        reading="noncommittal",
        label="human",
        name="AUROC",
        take=graded,
        statistic=lambda values, labels: st.auroc(values, targets(labels)),
        floors=_LENGTH | _COSINE,
    )


def sentence_f1(chosen: frozenset[Place], relevant: frozenset[Place]) -> float:
    """Return F1 of a row's chosen sentences; where none is relevant, 1 if none is chosen, else 0.

    Example:
        >>> sentence_f1(frozenset({(0, 0), (0, 1)}), frozenset({(0, 1)}))
        0.6666666666666666
        >>> sentence_f1(frozenset(), frozenset()), sentence_f1(frozenset({(0, 0)}), frozenset())
        (1.0, 0.0)
    """
    if not relevant:
        return float(not chosen)
    return 2 * len(chosen & relevant) / (len(chosen) + len(relevant))


def sentence_precision(chosen: frozenset[Place], relevant: frozenset[Place]) -> float:
    """Return the share of the chosen sentences that are relevant; NaN where none is chosen."""
    return len(chosen & relevant) / len(chosen) if chosen else float("nan")


def sentence_recall(chosen: frozenset[Place], relevant: frozenset[Place]) -> float:
    """Return the share of the relevant sentences that are chosen; NaN where none is relevant."""
    return len(chosen & relevant) / len(relevant) if relevant else float("nan")


_OF_ROWS: Mapping[str, Callable[[frozenset[Place], frozenset[Place]], float]] = {
    "sentence F1": sentence_f1,
    "sentence F1, answerable rows": lambda chosen, relevant: (
        sentence_f1(chosen, relevant) if relevant else float("nan")
    ),
    "sentence precision": sentence_precision,
    "sentence recall": sentence_recall,
}


def _of_sentences() -> Iterator[Comparison]:
    """Yield what there is to compare: decisions, probabilities, and the share of relevant sentences."""

    def probabilities(line: Line) -> dict[Place, float] | None:
        marks = line.sentences
        if marks is None or any(mark[3] is None for mark in marks):
            return None
        return {mark[:2]: mark[3] or 0.0 for mark in marks}

    def auroc(values: Sequence[Mapping[Place, float]], labels: Labels) -> st.Measure:
        relevant = [[place in label.relevant for place in each] for each, label in zip(values, labels, strict=True)]
        return st.sentence_auroc([list(each.values()) for each in values], relevant)

    for name, of_row in _OF_ROWS.items():
        yield Comparison(
            reading="sentences",
            label="relevant",
            name=name,
            take=lambda line: line.chosen,
            statistic=lambda chosen, labels, of_row=of_row: st.mean(
                [of_row(each, label.relevant) for each, label in zip(chosen, labels, strict=True)]
            ),
            floors={
                "take all": lambda labels: [frozenset(label.places()) for label in labels],
                "lexical .2": lambda labels: [_lexical(label, _LEXICAL[0]) for label in labels],
                "lexical .3": lambda labels: [_lexical(label, _LEXICAL[1]) for label in labels],
            },
        )
    yield Comparison(
        reading="probabilities",
        label="relevant",
        name="AUROC of sentences",
        take=probabilities,
        statistic=auroc,
        floors={
            "lexical": lambda labels: [
                {(p, s): label.signals.overlaps[p][s] for p, s in label.places()} for label in labels
            ]
        },
    )
    for reading in ("value", "sentence_expected"):
        yield Comparison(
            reading=reading,
            label="share",
            name="rho of the share",
            take=taken(reading),
            statistic=lambda values, labels: st.pooled(values, _shares(labels), [None] * len(labels)),
            floors={
                "lexical .2": lambda labels: [
                    len(_lexical(label, _LEXICAL[0])) / max(1, len(label.places())) for label in labels
                ]
            },
        )
        yield Comparison(
            reading=reading,
            label="share",
            name="mean error of the share",
            take=taken(reading),
            statistic=lambda values, labels: st.absolute_error(values, _shares(labels)),
            floors={"the median label": lambda labels: [sorted(_shares(labels))[len(labels) // 2]] * len(labels)},
        )


def _shares(labels: Labels) -> list[float]:
    return [label.target["share"] for label in labels]


def _lexical(label: Label, share: float) -> frozenset[Place]:
    return frozenset((p, s) for p, s in label.places() if label.signals.overlaps[p][s] >= share)
