"""Reading labelled samples: JSON lines as `ragstone score` reads them, each with what a person says of it."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import cast

from ragstone.labels.calibration import CalibrationError
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.metrics.items import sentences_of
from ragstone.plain import as_dict
from ragstone.sample import BadLine, Sample, SampleField
from ragstone.sources import read_rows
from ragstone.text import Splitter, split_sentences

LABELS: Mapping[str, CalibratedItem] = {
    "labels": "sentence",
    "relevant": "sentence",
    "noncommittal": "noncommittal",
    "score": "score",
}
"""The keys that hold labels, and what they are of."""

_SHOWN = 20

Piece = tuple[str, int, int]

_Row = tuple[int, Sample, Mapping[str, object]]  # its line, its sample, and what it holds by LABELS and "sentences"
_Bad = list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """A sample and what a person says of it.

    Attributes:
        line: Where it stands, from 1.
        sample: The sample.
        labels: One per item: 0, 1, or for a score a number between.
        group: What it belongs to: its question, or for a summary its source.
    """

    line: int
    sample: Sample
    labels: tuple[float, ...]
    group: str


@dataclass(frozen=True, slots=True)
class Labels:
    """A file of labelled samples.

    Attributes:
        item: What the labels are of.
        samples: The samples.
        splitter: What cuts the contexts where the file says what their sentences are; None where it does not.
        skipped: Lines whose label is null.
    """

    item: CalibratedItem
    samples: tuple[LabelledSample, ...]
    splitter: Splitter | None
    skipped: int


class GivenSentences:
    """A splitter that knows the sentences of some texts and leaves the others to another splitter.

    Args:
        other: What splits texts that are not known.

    Attributes:
        texts: The known texts, with their sentences and places.

    Example:
        >>> from ragstone.text import split_sentences
        >>> splitter = GivenSentences(split_sentences)
        >>> splitter.add("a; b", ["a;", "b"])
        ''
        >>> splitter("a; b", "en")
        [('a;', 0, 2), ('b', 3, 4)]
    """

    def __init__(self, other: Splitter) -> None:
        self._other = other
        self._texts: dict[str, list[Piece]] = {}
        self._given: dict[str, tuple[str, ...]] = {}

    @property
    def texts(self) -> Mapping[str, Sequence[Piece]]:
        """The known texts."""
        return self._texts

    @property
    def cache_key(self) -> str:
        """What it counts by in a journal's keys."""
        known = json.dumps(self._texts, sort_keys=True)
        return blake2b(known.encode(), digest_size=16).hexdigest()

    def add(self, text: str, sentences: Sequence[str]) -> str:
        """Learn a text's sentences, but not the blank ones; return what is wrong with them, "" if nothing."""
        pieces: list[Piece] = []
        at = 0
        for i, sentence in enumerate(sentences):
            if not sentence.strip():
                continue
            start = text.find(sentence, at)
            if start < 0:
                return f"[{i}]: does not stand in the context, behind the sentence before it"
            at = start + len(sentence)
            pieces.append((sentence, start, at))
        if self._given.setdefault(text, tuple(sentences)) != tuple(sentences):
            return ": another line has other sentences for the same context"
        self._texts[text] = pieces
        return ""

    def judged(self, text: str) -> list[bool] | None:
        """Return which of a text's sentences, as they were given, are not blank; None where the text is not known."""
        known = self._given.get(text)
        return None if known is None else [bool(sentence.strip()) for sentence in known]

    def __call__(self, text: str, language: str = "en", /) -> Sequence[Piece]:
        """Return the text's sentences."""
        known = self._texts.get(text)
        return self._other(text, language) if known is None else list(known)


class _BadLabel(ValueError):  # noqa: N818 - becomes part of one message
    """Why a line's label cannot be used."""


def read_labels(
    lines: Iterable[bytes],
    metric: Metric,
    fields: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> Labels:
    r"""Return the labelled samples of a file.

    Args:
        lines: JSON objects, one a line.
        metric: What will score them: its splitter says what the sentences are, its `source_field` what groups them.
        fields: The row's key by the sample's field, as for `read_rows`.
        keys: The row's key by label (`LABELS`, "sentences"); a key in an object is written KEY.KEY.

    Raises:
        CalibrationError: A line cannot be used; all such lines (20 at most) are told, with the field.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> row = b'{"question": "Who?", "contexts": ["Ann did. It rains."], "labels": [true, false]}\n'
        >>> read_labels([row], ContextRelevancy(llm=FakeLLM(lambda request: ""))).samples[0].labels
        (1.0, 0.0)
    """
    rows: list[_Row] = []
    bad: _Bad = []
    for number, raw in enumerate(lines, 1):
        for row in read_rows([raw], fields):
            if isinstance(row, BadLine):
                bad.append((number, row.problem))
            else:
                sample = row.sample.model_copy(update={"id": str(number)}) if row.sample.id == "1" else row.sample
                rows.append((number, sample, _labelled(raw, keys or {})))
    item = _item(rows, metric)
    given = GivenSentences(cast("Splitter", getattr(metric, "splitter", split_sentences)))
    # All `sentences` before any label: a later line may say what the sentences of an earlier one's context are.
    named = list(_named(rows, item, given, bad))
    found = list(_found(named, metric, given, bad))
    skipped = sum(name is None for _, name in named)
    if bad:
        shown = [f"line {number}: {problem}" for number, problem in sorted(bad)[:_SHOWN]]
        more = [f"and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else []
        raise CalibrationError("\n".join([f"{len(bad)} line(s) cannot be used:", *shown, *more]))
    return Labels(item, tuple(found), given if given.texts else None, skipped)


def _labelled(raw: bytes, keys: Mapping[str, str]) -> Mapping[str, object]:
    row = cast("dict[str, object]", json.loads(raw.decode("utf-8-sig")))
    return {name: _at(row, keys.get(name, name)) for name in (*LABELS, "sentences") if _has(row, keys.get(name, name))}


def _has(row: Mapping[str, object], key: str) -> bool:
    try:
        _at(row, key)
    except KeyError:
        return False
    return True


def _at(row: Mapping[str, object], key: str) -> object:
    if key in row:
        return row[key]
    value: object = row
    for part in key.split("."):
        if value is None:  # what a null would hold is null
            return None
        value = as_dict(value)[part]
    return value


def _item(rows: Sequence[_Row], metric: Metric) -> CalibratedItem:
    usable = [name for name, item in LABELS.items() if item in ("score", *metric.calibrated_items)]
    for name in usable:
        if any(name in told for _, _, told in rows):
            return LABELS[name]
    raise CalibrationError(
        f"labels: no line has one; for {metric.name} a line needs {' or '.join(usable)} (--map LABEL=KEY names the key)"
    )


def _named(
    rows: Sequence[_Row], item: CalibratedItem, given: GivenSentences, bad: _Bad
) -> Iterator[tuple[_Row, str | None]]:
    """Yield the rows with the key of their label, None where it is null; learn the sentences that they give."""
    for row in rows:
        number, sample, told = row
        try:
            name = _name(told, item)
            if name is not None and item == "sentence" and told.get("sentences") is not None:
                _give(told["sentences"], sample, given)
        except _BadLabel as wrong:
            bad.append((number, str(wrong)))
        else:
            yield row, name


def _name(told: Mapping[str, object], item: CalibratedItem) -> str | None:
    names = [name for name, of in LABELS.items() if of == item and name in told]
    if names and all(told[name] is None for name in names):
        return None
    if len(names) != 1:
        keys = " or ".join(name for name, of in LABELS.items() if of == item)
        raise _BadLabel(f"{keys}: {'is missing' if not names else 'one of them, not both'}")
    return names[0]


def _found(
    named: Sequence[tuple[_Row, str | None]], metric: Metric, given: GivenSentences, bad: _Bad
) -> Iterator[LabelledSample]:
    for (number, sample, told), name in named:
        if name is None:
            continue
        try:
            labels = _labels(name, told[name], sample, metric, given)
        except _BadLabel as wrong:
            bad.append((number, str(wrong)))
        else:
            yield LabelledSample(number, sample, labels, _group(sample, metric))


def _group(sample: Sample, metric: Metric) -> str:
    fields: tuple[SampleField, ...] = (metric.source_field or "user_input", "retrieved_contexts", "response")
    texts = ("\n".join(sample.texts(field)) for field in fields)
    return next(filter(None, texts), "")


def _labels(name: str, value: object, sample: Sample, metric: Metric, given: GivenSentences) -> tuple[float, ...]:
    item = LABELS[name]
    if item != "sentence":
        return (_number(name, value, whole=item == "noncommittal"),)
    judged = _judged(sample, metric, given)
    chunks = [len(sentences) for sentences in judged]
    labels = _flags(value, sum(chunks)) if name == "labels" else _places(value, chunks)
    return tuple(label for label, kept in zip(labels, chain(*judged), strict=True) if kept)


def _give(value: object, sample: Sample, given: GivenSentences) -> None:
    if not isinstance(value, list) or len(cast("list[object]", value)) != len(sample.retrieved_contexts):
        raise _BadLabel("sentences: is not one list of sentences per context")
    for i, (context, pieces) in enumerate(zip(sample.retrieved_contexts, cast("list[object]", value), strict=True)):
        texts = cast("list[object]", pieces)
        if not isinstance(pieces, list) or not all(isinstance(text, str) for text in texts):
            raise _BadLabel(f"sentences[{i}]: is not a list of sentences")
        if problem := given.add(context, cast("list[str]", texts)):
            raise _BadLabel(f"sentences[{i}]{problem}")


def _judged(sample: Sample, metric: Metric, given: GivenSentences) -> list[list[bool]]:
    """Return for each context which of its sentences the metric judges: of those that are given, not the blank ones."""
    language = cast("str | None", getattr(metric, "language", None))
    counts = Counter(found.chunk for found in sentences_of(sample, "retrieved_contexts", given, language))
    known = (given.judged(context) for context in sample.retrieved_contexts)
    return [[True] * counts[i] if flags is None else flags for i, flags in enumerate(known)]


def _flags(value: object, sentences: int) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise _BadLabel("labels: is not a list with true or false for each sentence")
    flags = cast("list[object]", value)
    if len(flags) != sentences:
        raise _BadLabel(
            f"labels: {len(flags)} for {sentences} sentences; say in `sentences` what they are (a list per context), "
            "or see them in the verdicts of `ragstone score --out`"
        )
    return tuple(_number(f"labels[{i}]", flag, whole=True) for i, flag in enumerate(flags))


def _places(value: object, chunks: Sequence[int]) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise _BadLabel("relevant: is not a list of [context, sentence] pairs")
    first = [sum(chunks[:i]) for i in range(len(chunks))]
    labels = [0.0] * sum(chunks)
    for place in cast("list[object]", value):
        context, sentence = _pair(place)
        if not (0 <= context < len(chunks) and 0 <= sentence < chunks[context]):
            there = f"which has {chunks[context]}" if 0 <= context < len(chunks) else f"of {len(chunks)} contexts"
            raise _BadLabel(f"relevant: there is no sentence {sentence} in context {context} (from 0), {there}")
        labels[first[context] + sentence] = 1.0
    return tuple(labels)


def _pair(value: object) -> Iterator[int]:
    parts = cast("list[object]", value) if isinstance(value, list) else []
    if len(parts) != 2 or not all(isinstance(part, int) and not isinstance(part, bool) for part in parts):
        raise _BadLabel(f"relevant: {json.dumps(value)[:40]} is no [context, sentence] pair of whole numbers")
    return iter(cast("list[int]", parts))


def _number(name: str, value: object, *, whole: bool) -> float:
    if not isinstance(value, (bool, int, float)) or not math.isfinite(value) or not 0 <= value <= 1:
        wanted = "true or false" if whole else "true, false or a number from 0 to 1"
        raise _BadLabel(f"{name}: {json.dumps(value)[:40]} is not {wanted}")
    if whole and value not in (0, 1):
        raise _BadLabel(f"{name}: {value} is not true or false")
    return float(value)
