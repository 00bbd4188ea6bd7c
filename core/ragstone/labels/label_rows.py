"""Reading labelled samples: rows as `ragstone score` reads them, each with what a person says of it."""

import json
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ragstone.labels.calibration import CalibrationError
from ragstone.labels.label_file import refuse
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.plain import as_dict
from ragstone.sample import BadLine, Sample, SampleField, first_problem
from ragstone.sources import Rows, Source, rows_of
from ragstone.text import Splitter, split_sentences

if TYPE_CHECKING:
    from ragstone.metrics.items import SplittingMetric

LABELS: Mapping[str, CalibratedItem] = {
    "labels": "sentence",
    "relevant": "sentence",
    "noncommittal": "noncommittal",
    "score": "score",
}
"""The keys that hold labels, and what they are of."""

Piece = tuple[str, int, int]


def _share(value: object) -> float:
    if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
        return float(value)
    raise ValueError(f"{json.dumps(value)[:40]} is not true, false or a number from 0 to 1")


def _flag(value: object) -> float:
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return float(value)
    raise ValueError(f"{json.dumps(value)[:40]} is not true or false")


_Flag = Annotated[float, BeforeValidator(_flag)]
_Place = Annotated[int, Field(ge=0, strict=True)]


class _Verdicts(BaseModel):
    """What a line holds beside its sample; only its item's fields are looked at."""

    labels: list[_Flag] | None = None
    relevant: list[tuple[_Place, _Place]] | None = None
    noncommittal: _Flag | None = None
    score: Annotated[float, BeforeValidator(_share)] | None = None
    sentences: list[list[str]] | None = None


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """A sample and what a person says of it."""

    name: str  # for messages: its line
    sample: Sample
    labels: tuple[float, ...]  # one per item: 0, 1, or for a score a number between
    group: str  # its question, or for a summary its source


@dataclass(frozen=True, slots=True)
class Labels:
    """A file of labelled samples."""

    item: CalibratedItem
    samples: tuple[LabelledSample, ...]
    splitter: Splitter | None  # what cuts the contexts where the file says what their sentences are
    skipped: int  # lines whose label is null


class KnownSentences:
    """A splitter that knows the sentences of some texts and leaves the others to another splitter."""

    def __init__(self, other: Splitter) -> None:
        self._other = other
        self.texts: dict[str, Sequence[str]] = {}  # the sentences of each known text, blank ones too
        self._pieces: dict[str, Sequence[Piece]] = {}

    @property
    def cache_key(self) -> str:
        """What it counts by in a journal's keys."""
        return blake2b(json.dumps(self._pieces, sort_keys=True).encode(), digest_size=16).hexdigest()

    def add(self, text: str, sentences: Sequence[str], name: str = "sentences") -> None:
        """Learn a text's sentences. Raises ValueError: they do not stand in it, or others are known of it."""
        pieces: list[Piece] = []
        end = 0
        for i, sentence in enumerate(sentences):
            if not sentence.strip():
                continue
            start = text.find(sentence, end)
            if start < 0:
                raise ValueError(f"{name}[{i}]: does not stand in the context, behind the sentence before it")
            end = start + len(sentence)
            pieces.append((sentence, start, end))
        if self.texts.setdefault(text, sentences) != sentences:
            raise ValueError(f"{name}: another line has other sentences for the same context")
        self._pieces[text] = pieces

    def __call__(self, text: str, language: str = "en", /) -> Sequence[Piece]:
        """Return the text's sentences."""
        return self._pieces[text] if text in self._pieces else self._other(text, language)


def read_labels(
    source: Source,
    metric: Metric,
    fields: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> Labels:
    """Return the labelled samples of a file.

    Args:
        source: A file, or rows, as for `rows_of`.
        metric: What will score them: its splitter says what the sentences are, its `source_field` what groups them.
        fields: The row's key by the sample's field, as for `rows_of`.
        keys: The row's key by label (`LABELS`, "sentences"); a key in an object is written KEY.KEY.

    Raises:
        CalibrationError: A line cannot be used; all such lines (20 at most) are named, with the field.
    """
    names = {name: (keys or {}).get(name, name) for name in (*LABELS, "sentences")}
    keep = {part for name in names.values() for part in (name, name.partition(".")[0])}
    bad: dict[int, str] = {}
    rows: list[tuple[int, Sample, Mapping[str, object]]] = []
    for row in cast("Rows", rows_of(source, fields, naming="--field FIELD=KEY", keep=keep)):
        if isinstance(row, BadLine):
            bad[row.line] = row.problem
        else:
            rows.append((row.line, row.sample, _values(row.extra, names)))
    item = _item(rows, metric)
    splitter = KnownSentences(getattr(metric, "splitter", split_sentences))
    labelled: list[tuple[int, Sample, _Verdicts]] = []
    samples: list[LabelledSample] = []
    skipped = 0
    # All `sentences` before any label: a later line may say what the sentences of an earlier one's context are.
    for number, sample, values in rows:
        with _noting(number, bad):
            verdicts = _verdicts(values, item)
            if verdicts is None:
                skipped += 1
                continue
            labelled.append((number, sample, verdicts))
            if verdicts.sentences is not None:
                _learn(verdicts.sentences, sample, splitter)
    for number, sample, verdicts in labelled:
        with _noting(number, bad):
            labels = tuple(_labels(verdicts, sample, metric, splitter))
            samples.append(LabelledSample(f"line {number}", sample, labels, group_of(sample, metric.source_field)))
    refuse("", [f"line {number}: {problem}" for number, problem in sorted(bad.items())], "line")
    return Labels(item, tuple(samples), splitter if splitter.texts else None, skipped)


@contextmanager
def _noting(number: int, bad: dict[int, str]) -> Generator[None, None, None]:
    try:
        yield
    except ValueError as error:
        bad.setdefault(number, first_problem(error) if isinstance(error, ValidationError) else str(error))


def _values(row: Mapping[str, object], keys: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, key in keys.items():
        with suppress(KeyError):
            values[name] = _at(row, key)
    return values


def _at(row: Mapping[str, object], key: str) -> object:
    if key in row:
        return row[key]
    value: object = row
    for part in key.split("."):
        if value is None:  # what a null would hold is null
            return None
        value = as_dict(value)[part]
    return value


def _item(rows: Sequence[tuple[int, Sample, Mapping[str, object]]], metric: Metric) -> CalibratedItem:
    usable = [name for name, item in LABELS.items() if item in ("score", *metric.calibrated_items)]
    for name in usable:
        if any(name in values for _, _, values in rows):
            return LABELS[name]
    raise CalibrationError(
        f"labels: no line has one; for {metric.name} a line needs {' or '.join(usable)} (--map LABEL=KEY names the key)"
    )


def _verdicts(values: Mapping[str, object], item: CalibratedItem) -> _Verdicts | None:
    """Return what a line says of this item; None where its label is null."""
    names = [name for name, of in LABELS.items() if of == item]
    labels = {name: values[name] for name in names if values.get(name) is not None}
    if not labels and not values.keys().isdisjoint(names):
        return None
    if len(labels) != 1:
        raise ValueError(f"{' or '.join(names)}: {'one of them, not both' if labels else 'is missing'}")
    return _Verdicts.model_validate({**labels, "sentences": values.get("sentences") if item == "sentence" else None})


def _learn(sentences: Sequence[Sequence[str]], sample: Sample, splitter: KnownSentences) -> None:
    if len(sentences) != len(sample.retrieved_contexts):
        raise ValueError("sentences: is not one list of sentences per context")
    for i, (context, pieces) in enumerate(zip(sample.retrieved_contexts, sentences, strict=True)):
        splitter.add(context, pieces, f"sentences[{i}]")


def _labels(verdicts: _Verdicts, sample: Sample, metric: Metric, splitter: KnownSentences) -> Iterator[float]:
    """Yield the label of each item that the metric judges: blank sentences have a label and are not judged."""
    for label in (verdicts.score, verdicts.noncommittal):
        if label is not None:
            yield label
            return
    split: Counter[int | None] = Counter()
    splitting = cast("SplittingMetric", metric)  # as what has verdicts on sentences
    finding = replace(splitting, splitter=splitter).sentences(sample, "retrieved_contexts")
    try:
        while True:
            next(finding)
    except StopIteration as stop:
        split.update(sentence.chunk for sentence in stop.value)
    contexts = [
        [bool(text.strip()) for text in splitter.texts[context]] if context in splitter.texts else [True] * split[i]
        for i, context in enumerate(sample.retrieved_contexts)
    ]
    judged = [kept for context in contexts for kept in context]
    labels = verdicts.labels
    if labels is None:
        labels = _placed(verdicts.relevant or (), list(map(len, contexts)))
    if len(labels) != len(judged):
        raise ValueError(
            f"labels: {len(labels)} for {len(judged)} sentences; say in `sentences` what they are (a list per "
            "context), or see them in the verdicts of `ragstone score --out`"
        )
    yield from (label for label, kept in zip(labels, judged, strict=True) if kept)


def _placed(relevant: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[float]:
    for context, sentence in relevant:
        if context >= len(sizes) or sentence >= sizes[context]:
            there = f"which has {sizes[context]}" if context < len(sizes) else f"of {len(sizes)} contexts"
            raise ValueError(f"relevant: there is no sentence {sentence} in context {context} (from 0), {there}")
    return [float((context, sentence) in relevant) for context, n in enumerate(sizes) for sentence in range(n)]


def group_of(sample: Sample, source: SampleField | None) -> str:
    """Return what samples of one opinion share: the question, or the source of a summary."""
    fields: tuple[SampleField, ...] = (source or "user_input", "retrieved_contexts", "response")
    texts = ("\n".join(sample.texts(field)) for field in fields)
    return next(filter(None, texts), "")
