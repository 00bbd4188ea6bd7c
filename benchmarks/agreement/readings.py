"""What is held against which label: the readings of a metric's outcome, the statistics, the floors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from . import measures as st
from .files import Label, Line
from .floors import Signals
from .judge_free import CosineMap
from .rows import Place, Task

Labels = Sequence[Label]
Floors = Mapping[str, Callable[[Labels], Sequence[Any]]]
Statistic = Callable[[Sequence[Any], Labels], st.Measure]

# By metric and label: what of an outcome is held against it. "value" is the score, "count" what it is by hard verdicts,
# "expected" what it is by the judge's probabilities, whichever of the two the score is; the rest are parts of the
# breakdown. What no line has makes no row of the table.
_SCORE = ("value", "count", "expected")
_READINGS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "context_relevancy": {"human": (*_SCORE, "chunk")},
    "response_relevancy": {"human": _SCORE},
    "faithfulness": {"human": (*_SCORE, "least")},
    "summarization_score": {
        "coverage": ("qa", "qa_expected", "value"),
        "overall": ("qa", "qa_expected", "value"),
    },
    "factual_correctness": {"coverage": ("recall", "recall_expected", "value")},
    "alignment_coverage": {
        "human": ("alignment", "alignment_expected", "alignment_least", "value"),
        "coverage": ("coverage", "coverage_expected", "value"),
        "alignment": ("alignment", "alignment_expected", "alignment_least", "value"),
        "overall": ("value", "count", "expected"),
    },
}
_COUNT = {"expected": "count", **{f"{part}_expected": part for part in ("qa", "coverage", "alignment", "recall")}}
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
        floors: By name, what a trivial scorer says in place of the reading; None where it knows nothing of a row.
        answerable: Whether only rows count of which people chose a sentence.
        count: Of a reading by probabilities, takes the same by hard verdicts.
    """

    reading: str
    label: str
    name: str
    take: Callable[[Line], Any]
    statistic: Statistic
    floors: Floors
    answerable: bool = False
    count: Callable[[Line], Any] | None = None


def comparisons(
    task: Task, metric: str, labels: Iterable[str], maps: Mapping[str, CosineMap] = MappingProxyType({})
) -> Iterator[Comparison]:
    """Yield what there is to compare for rows of a task that a metric scored.

    Args:
        task: The rows' task.
        metric: The metric.
        labels: The names of the rows' targets.
        maps: Judge-free scorers of sentences, fitted on other rows, by name.
    """
    if task == "sentences":
        for each in _of_sentences(maps):
            yield each
            if each.name != "sentence recall":  # which is of answerable rows as it is
                yield replace(each, name=f"{each.name}, answerable rows", answerable=True)
    elif task == "noncommittal":
        yield _of_numbers("accuracy", "noncommittal", "human", _flagged, st.accuracy, _KEYWORDS | _COMMONER)
        yield _of_numbers("AUROC", "noncommittal", "human", _graded, st.auroc, _SIMPLE | _KEYWORDS)
    else:
        for label in labels:
            readings = _READINGS.get(metric, {}).get(label, () if label in _OF_SUMMARIES else _SCORE)
            for reading in readings:
                for name, statistic in _STATISTICS[task].items():
                    floors = _floors_of(metric, label)
                    floors = _COMMONER if statistic is st.accuracy else floors
                    each = _of_numbers(name, reading, label, taken(reading), statistic, floors)
                    yield replace(each, count=taken(_COUNT[reading])) if reading in _COUNT else each


_OF_SUMMARIES = ("coverage", "alignment", "overall")
_OF_QUESTIONS = ("context_relevancy", "response_relevancy", "response_completeness")
_STATISTICS: Mapping[str, Mapping[str, Callable[..., st.Measure]]] = {
    "pairwise": {"pairwise accuracy": st.pairwise},
    "binary": {"AUROC": st.auroc, "accuracy at .5": st.accuracy},
    "correlation": {"rho within documents": st.within, "rho pooled": st.pooled},
}


def _floors_of(metric: str, label: str) -> Floors:
    if metric in _OF_QUESTIONS:
        return _SIMPLE
    if metric == "factual_correctness":
        return _OF_REFERENCE
    return _OF_LEAD if label == "coverage" else _OF_SOURCE


def taken(reading: str) -> Callable[[Line], float | None]:
    """Return what takes the score ("value") or a part of the breakdown from a line that was scored."""
    return lambda line: line.value if reading == "value" else line.parts.get(reading)


def _signal(take: Callable[[Signals], float | None]) -> Callable[[Labels], Sequence[Any]]:
    return lambda labels: [take(each.signals) for each in labels]


def _human(labels: Labels) -> list[float]:
    return [each.target["human"] for each in labels]


_LENGTH: Floors = {"longer": _signal(lambda each: each.words), "shorter": _signal(lambda each: -each.words)}
_SIMPLE: Floors = {**_LENGTH, "words": _signal(lambda each: each.cosine), "cosine": _signal(lambda each: each.near)}
_OF_SOURCE: Floors = {
    **_LENGTH,
    "words": _signal(lambda each: each.unigrams),
    "bigrams": _signal(lambda each: each.bigrams),
}
_OF_REFERENCE: Floors = {
    **_LENGTH,
    "words of the reference": _signal(lambda each: each.recalled),
    "bigrams": _signal(lambda each: each.bigrams),
}
_OF_LEAD: Floors = {**_OF_SOURCE, "words of the lead": _signal(lambda each: each.lead)}
_KEYWORDS: Floors = {"keywords": _signal(lambda each: each.refusal)}
_COMMONER: Floors = {"the commoner label": lambda labels: [float(2 * sum(_human(labels)) >= len(labels))] * len(labels)}


def _of_numbers(
    name: str,
    reading: str,
    label: str,
    take: Callable[[Line], float | None],
    statistic: Callable[..., st.Measure],
    floors: Floors,
) -> Comparison:
    def measure(values: Sequence[float], labels: Labels) -> st.Measure:
        return statistic(values, [each.target[label] for each in labels], [each.group for each in labels])

    return Comparison(reading=reading, label=label, name=name, take=take, statistic=measure, floors=floors)


def _flagged(line: Line) -> float:
    """1 where the task's own reading says so: the score is 0, or the breakdown says noncommittal."""
    return float(line.value == 0.0 or line.parts.get("noncommittal", 0.0) >= 0.5)


def _graded(line: Line) -> float:
    return line.parts.get("noncommittal_probability", line.parts.get("noncommittal", -(line.value or 0.0)))


def _of_sentences(maps: Mapping[str, CosineMap]) -> Iterator[Comparison]:
    """Yield what there is to compare: decisions, probabilities, and the share of relevant sentences."""

    def probabilities(line: Line) -> dict[Place, float] | None:
        marks = line.sentences
        if marks is None or any(mark[3] is None for mark in marks):
            return None
        return {mark[:2]: mark[3] or 0.0 for mark in marks}

    def auroc(values: Sequence[Mapping[Place, float]], labels: Labels) -> st.Measure:
        relevant = [[place in label.relevant for place in each] for each, label in zip(values, labels, strict=True)]
        return st.sentence_auroc([list(each.values()) for each in values], relevant)

    def of_each(of: Callable[[Label], object]) -> Callable[[Labels], Sequence[Any]]:
        return lambda labels: [of(label) for label in labels]

    choosers: dict[str, Callable[[Label], frozenset[Place] | None]] = {
        "take all": lambda label: frozenset(label.places()),
        **{f"lexical {share}".replace("0.", "."): partial(_lexical, share=share) for share in _LEXICAL},
        **{name: partial(_mapped, each.chosen) for name, each in maps.items()},
    }
    graders: dict[str, Callable[[Label], dict[Place, float] | None]] = {
        "lexical": lambda label: {(p, s): label.signals.overlaps[p][s] for p, s in label.places()},
        "cosine": lambda label: label.cosines(),
        **{name: partial(_mapped, each.graded) for name, each in maps.items()},
    }
    for name, of_row in _OF_ROWS.items():
        yield Comparison(
            reading="sentences",
            label="relevant",
            name=name,
            take=lambda line: line.chosen,
            statistic=lambda chosen, labels, of_row=of_row: st.mean(
                [of_row(each, label.relevant) for each, label in zip(chosen, labels, strict=True)]
            ),
            floors={floor: of_each(of) for floor, of in choosers.items()},
        )
    yield Comparison(
        reading="probabilities",
        label="relevant",
        name="AUROC of sentences",
        take=probabilities,
        statistic=auroc,
        floors={floor: of_each(of) for floor, of in graders.items()},
    )
    shares = {floor: of_each(partial(_share, of)) for floor, of in choosers.items() if floor != "take all"}
    median: Floors = {"the median label": lambda labels: [sorted(_shares(labels))[len(labels) // 2]] * len(labels)}
    for reading in _SCORE:
        take = taken(reading)
        yield Comparison(
            reading=reading,
            label="share",
            name="rho of the share",
            take=take,
            count=taken("count") if reading == "expected" else None,
            statistic=lambda values, labels: st.pooled(values, _shares(labels), [None] * len(labels)),
            floors=shares,
        )
        yield Comparison(
            reading=reading,
            label="share",
            name="mean error of the share",
            take=take,
            statistic=lambda values, labels: st.absolute_error(values, _shares(labels)),
            floors={**shares, **median},
        )


_OF_ROWS: Mapping[str, Callable[[frozenset[Place], frozenset[Place]], float]] = {
    "sentence F1": st.sentence_f1,
    "sentence precision": st.sentence_precision,
    "sentence recall": st.sentence_recall,
}


def _shares(labels: Labels) -> list[float]:
    return [label.target["share"] for label in labels]


def _share(of: Callable[[Label], frozenset[Place] | None], label: Label) -> float | None:
    chosen = of(label)
    return None if chosen is None else len(chosen) / max(1, len(label.places()))


def _lexical(label: Label, share: float) -> frozenset[Place]:
    return frozenset((p, s) for p, s in label.places() if label.signals.overlaps[p][s] >= share)


def _mapped(of: Callable[[Label], Any], label: Label) -> Any:  # noqa: ANN401 - of whatever the map gives
    return None if label.signals.cosines is None else of(label)
