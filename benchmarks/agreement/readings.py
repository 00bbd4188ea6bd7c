"""What is held against which label: the readings of a metric's outcome, the statistics, the floors."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from . import statistics as st
from .comparison import Comparison, Measured, Pair, Take, taken
from .labels import Label
from .lines import Line
from .rows import Task
from .sentences import sentence_comparisons

Signal = Callable[[Label], float]

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


def comparisons(task: Task, metric: str, labels: Iterable[str]) -> Iterator[Comparison]:
    """Yield what there is to compare for rows of a task that a metric scored.

    Args:
        task: The rows' task.
        metric: The metric.
        labels: The names of the rows' targets.
    """
    if task == "sentences":
        yield from sentence_comparisons()
        return
    if task == "noncommittal":
        yield from _of_noncommittal()
        return
    known = _PARTS.get(metric, {})
    for label in labels:
        for reading in known.get(label, () if label in ("coverage", "alignment", "overall") else ("value",)):
            yield from _of_numbers(task, metric, label, reading)


def _of_numbers(task: Task, metric: str, label: str, reading: str) -> Iterator[Comparison]:
    take = taken(reading)

    def has(line: Line) -> bool:
        return take(line) is not None

    for name, statistic in _STATISTICS[task].items():
        measured, floors = _measured(statistic, take, label), _floors(task, metric, name, statistic, label)
        yield Comparison(reading, label, name, has, measured, floors)


Statistic = Callable[[Sequence[float], Sequence[float], Sequence["str | None"]], st.Measure]

_STATISTICS: Mapping[Task, Mapping[str, Statistic]] = {
    "pairwise": {"pairwise accuracy": st.pairwise},
    "binary": {
        "AUROC": lambda values, targets, _: st.auroc(values, targets),
        "accuracy at .5": lambda values, targets, _: st.accuracy(values, targets),
    },
    "correlation": {"rho within documents": st.within, "rho pooled": st.pooled},
}


def _measured(statistic: Statistic, take: Take, label: str) -> Measured:
    def measure(pairs: Sequence[Pair]) -> st.Measure:
        values = [value for _, line in pairs if (value := take(line)) is not None]
        return statistic(values, [each.target[label] for each, _ in pairs], [each.group for each, _ in pairs])

    return measure


def _floor(statistic: Statistic, signal: Signal, label: str) -> Measured:
    return lambda pairs: statistic(
        [signal(each) for each, _ in pairs],
        [each.target[label] for each, _ in pairs],
        [each.group for each, _ in pairs],
    )


def _floors(task: Task, metric: str, name: str, statistic: Statistic, label: str) -> Mapping[str, Measured]:
    signals: dict[str, Signal] = {
        "longer": lambda label: label.signals.words,
        "length": lambda label: label.signals.words,
        "shorter": lambda label: -label.signals.words,
        "cosine": lambda label: label.signals.cosine,
        "bigrams": lambda label: label.signals.bigrams,
    }
    if name.startswith("accuracy"):
        return {"the commoner label": _commoner(label)}
    wanted = {
        "pairwise": ("longer", "shorter", "cosine"),
        "binary": ("length", "cosine"),
        "correlation": ("length", "cosine" if metric == "response_relevancy" else "bigrams"),
    }[task]
    return {each: _floor(statistic, signals[each], label) for each in wanted}


def _commoner(label: str) -> Measured:
    def measure(pairs: Sequence[Pair]) -> st.Measure:
        targets = [each.target[label] for each, _ in pairs]
        constant = float(2 * sum(targets) >= len(targets))
        return st.accuracy([constant] * len(targets), targets)

    return measure


def _of_noncommittal() -> Iterator[Comparison]:
    def flagged(line: Line) -> float:
        """1 where the task's own reading says so: the score is 0, or the breakdown says noncommittal."""
        return float(line.value == 0.0 or line.parts.get("noncommittal", 0.0) >= 0.5)

    def graded(line: Line) -> float:
        if line.value is None:
            return math.nan
        return line.parts.get("noncommittal_probability", line.parts.get("noncommittal", -line.value))

    def targets(pairs: Sequence[Pair]) -> list[float]:
        return [each.target["human"] for each, _ in pairs]

    yield Comparison(
        "noncommittal",
        "human",
        "accuracy",
        _scored,
        lambda pairs: st.accuracy([flagged(line) for _, line in pairs], targets(pairs)),
        {
            "keywords": lambda pairs: st.accuracy([each.signals.refusal for each, _ in pairs], targets(pairs)),
            "the commoner label": _commoner("human"),
        },
    )
    yield Comparison(
        "noncommittal",
        "human",
        "AUROC",
        _scored,
        lambda pairs: st.auroc([graded(line) for _, line in pairs], targets(pairs)),
        {
            "length": lambda pairs: st.auroc([each.signals.words for each, _ in pairs], targets(pairs)),
            "cosine": lambda pairs: st.auroc([each.signals.cosine for each, _ in pairs], targets(pairs)),
        },
    )


def _scored(line: Line) -> bool:
    return line.value is not None
