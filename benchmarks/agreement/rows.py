"""Human-labelled rows: read, checked, and split as people split them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat, NonNegativeInt, ValidationError

from ragstone import AlignmentCoverage, Metric, Sample
from ragstone.metrics.names import metric_class, metric_names
from ragstone.text.sentences import split_sentences

Task = Literal["pairwise", "binary", "noncommittal", "correlation", "sentences"]
Place = tuple[int, int]
"""Of a sentence: number of its passage, and of the sentence within it, from 0."""

METRICS: Mapping[str, type[Metric]] = {
    **{cls.__name__: cls for cls in map(metric_class, metric_names())},
    "Summarization": AlignmentCoverage,
}
"""The metric by the word that stands for it in `use.metric`."""
_TASKS: Mapping[str, Task] = {
    "pairwise": "pairwise",
    "binary": "binary",
    "correlation": "correlation",
    "sentence labels": "sentences",
}


class DataError(ValueError):
    """A file does not hold what its format says; the message names file and line."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One labelled row.

    Attributes:
        file: Its file's name without ".jsonl".
        id: Its id, unique within the file.
        task: What its label is good for.
        metrics: Names of the metrics it is scored by.
        sample: What is scored. The text that was summarised stands in `retrieved_contexts`.
        group: What it is compared within, or drawn with: its pair, or its document. None where it stands alone.
        target: The labels by name: "human" (pairwise, binary, correlation), "completeness" (correlation, where people
            said so), "coverage", "alignment", "overall" (summaries), "share" (sentences).
        sentences: The sentences of each passage, for the task "sentences".
        relevant: Which of them people chose.
    """

    file: str
    id: str
    task: Task
    metrics: tuple[str, ...]
    sample: Sample
    group: str | None = None
    target: Mapping[str, float] = field(default_factory=dict[str, float])
    sentences: tuple[tuple[str, ...], ...] = ()
    relevant: frozenset[Place] = frozenset()


class _SentenceLabels(BaseModel):
    relevant: list[tuple[NonNegativeInt, NonNegativeInt]]
    share: FiniteFloat


class _Use(BaseModel):
    metric: str
    task: str
    target: _SentenceLabels | dict[str, FiniteFloat | None] | FiniteFloat | None


class _Line(BaseModel):
    """A line of a file, as it stands there."""

    id: Annotated[str, Field(min_length=1)]
    use: _Use
    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    source: str | None = None
    response: str | None = None
    sentences: list[list[str]] = []
    pair_id: str | None = None
    doc_id: str | None = None
    human: dict[str, Any] = {}
    history: list[Any] = []
    references: list[str] = []

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of, for example, "SummarizationScore + Summarization (coverage only)"."""
        words = [part.partition("(")[0].strip() for part in self.use.metric.split("+")]
        if unknown := [word for word in words if word not in METRICS]:
            raise ValueError(f"use.metric: {unknown[0]!r} is none of {', '.join(METRICS)}")
        named = [METRICS[word].name for word in words]
        if "response_relevancy" in named and self.task != "noncommittal":
            named.append("response_completeness")  # people's labels are of both
        if "litepyramid_recall" in self.human and self.references:
            named.append("factual_correctness")  # people counted facts of the reference
        return tuple(dict.fromkeys(named))

    @property
    def task(self) -> Task:
        for beginning, task in _TASKS.items():
            if self.use.task.startswith(beginning):
                return "noncommittal" if task == "binary" and "noncommittal" in self.use.metric else task
        raise ValueError(f"use.task: {self.use.task!r} begins with none of {', '.join(_TASKS)}")

    @property
    def sample(self) -> Sample:
        if self.source is not None and self.retrieved_contexts is not None:
            raise ValueError("source: stands beside retrieved_contexts; a row has one of them")
        contexts = self.retrieved_contexts or ([] if self.source is None else [self.source])
        texts: dict[str, Any] = {"user_input": self.user_input, "response": self.response, "history": self.history}
        texts["reference"] = next(iter(self.references), None)
        return Sample(**texts, retrieved_contexts=contexts, id=self.id)

    @property
    def group(self) -> str | None:
        if self.task not in ("pairwise", "correlation"):
            return self.doc_id if self.task == "binary" else None
        group = self.doc_id if self.doc_id is not None and self.task == "correlation" else self.pair_id
        if not group:
            raise ValueError("pair_id: is missing")
        return group

    def row(self, file: str) -> Row | None:
        """Return the row that the line holds; None where it has no label."""
        target, relevant = self.use.target, frozenset[Place]()
        metrics, task = self.metrics, self.task  # checked also where there is no label
        if isinstance(target, _SentenceLabels):
            targets, relevant = {"share": target.share}, self._relevant(target)
        elif isinstance(target, dict):
            targets = {name: value for name, value in target.items() if value is not None}
        else:
            targets = {} if target is None else {"human": target}
            completeness = self.human.get("completeness")
            if targets and task == "correlation" and isinstance(completeness, (int, float)):
                targets["completeness"] = completeness
        if not targets:
            return None
        if task == "sentences" and not isinstance(target, _SentenceLabels):
            raise ValueError(f"use.target: {target!r} has no relevant sentences and share")
        if task in ("pairwise", "binary", "noncommittal") and target not in (0.0, 1.0):
            raise ValueError(f"use.target: {target!r} is neither 0, 1 nor null")
        return Row(
            file=file,
            id=self.id,
            task=task,
            metrics=metrics,
            sample=self.sample,
            group=self.group,
            target=targets,
            sentences=tuple(map(tuple, self.sentences)) if task == "sentences" else (),
            relevant=relevant,
        )

    def _relevant(self, target: _SentenceLabels) -> frozenset[Place]:
        """Return the places that people chose, which have to be places of the row's sentences."""
        contexts = self.retrieved_contexts or []
        if len(self.sentences) != len(contexts):
            raise ValueError(f"sentences: has {len(self.sentences)} lists for {len(contexts)} retrieved_contexts")
        for text, sentences in zip(contexts, self.sentences, strict=True):
            located(text, sentences)
        for passage, number in target.relevant:
            if passage >= len(contexts) or number >= len(self.sentences[passage]):
                raise ValueError(f"use.target.relevant: {[passage, number]} is no [passage, sentence] of this row")
        return frozenset(target.relevant)


def read_folder(folder: Path, limit: int | None = None) -> dict[str, list[Row]]:
    """Return the rows of all JSONL files in a folder and below it (or of one file), by file, in order.

    Rows without a label (target null) are left out, of a pair both.

    Args:
        folder: The folder, or a file.
        limit: How many rows of each file to take, from the first on; where rows are compared within groups, whole
            groups until there are so many.

    Raises:
        DataError: There is no file, two have one name, or one holds a bad row.
    """
    paths = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else [folder]
    if not paths:
        raise DataError(f"{folder}: holds no .jsonl file")
    files: dict[str, list[Row]] = {}
    for path in paths:
        if path.stem in files:
            raise DataError(f"{path}: is the second file of the name {path.stem}")
        files[path.stem] = _first(_read_file(path), limit)
    return {file: rows for file, rows in files.items() if rows}


def _first(rows: list[Row], limit: int | None) -> list[Row]:
    if limit is None:
        return rows
    sizes = Counter(row.group or row.id for row in rows)
    chosen: set[str] = set()
    for row in rows:
        if sum(sizes[group] for group in chosen) < limit:
            chosen.add(row.group or row.id)
    return [row for row in rows if (row.group or row.id) in chosen]


def _read_file(path: Path) -> list[Row]:
    rows: dict[str, Row] = {}
    unlabelled: set[str | None] = set()
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = _Line.model_validate_json(text)
            row = line.row(path.stem)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise DataError(f"{path}, line {number}: {where}: {first['msg']}") from None
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        if row is None:
            unlabelled.add(line.pair_id)
        elif row.id in rows:
            raise DataError(f"{path}, line {number}: id: {row.id!r} stands twice")
        else:
            rows[row.id] = row
    labelled = [row for row in rows.values() if row.task != "pairwise" or row.group not in unlabelled]
    if len({(row.task, row.metrics) for row in labelled}) > 1:
        raise DataError(f"{path}: use: has rows of different tasks or metrics; make a file of each")
    _check_pairs(path, labelled)
    return labelled


def _check_pairs(path: Path, rows: Iterable[Row]) -> None:
    pairs: dict[str | None, list[float]] = {}
    for row in rows:
        if row.task == "pairwise":
            pairs.setdefault(row.group, []).append(row.target["human"])
    for group, targets in pairs.items():
        if sorted(targets) != [0.0, 1.0]:
            raise DataError(f"{path}: pair_id {group!r}: needs one row of target 1 and one of target 0, has {targets}")


def located(text: str, sentences: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the sentences with the places where they stand in the text, in order.

    Raises:
        ValueError: One is not there, or not behind the one before it.

    Example:
        >>> located("A. B. A.", ["A.", "A."])
        [('A.', 0, 2), ('A.', 6, 8)]
    """
    places: list[tuple[str, int, int]] = []
    end = 0
    for number, sentence in enumerate(sentences):
        start = text.find(sentence, end)
        if start < 0:
            raise ValueError(f"sentences: number {number} is not in its passage, or not behind the one before it")
        end = start + len(sentence)
        places.append((sentence, start, end))
    return places


class GoldSplitter:
    """Splits the passages of rows as people split them: the metric then judges just those sentences.

    Args:
        rows: All rows of a file, those that are not scored too, so that a journal knows the splitter again when
            the limit changes.

    Attributes:
        cache_key: Changes with any sentence; the journal's mark of this splitter.

    Raises:
        DataError: A passage stands in two rows that split it differently.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._places: dict[str, list[tuple[str, int, int]]] = {}
        owner: dict[str, str] = {}
        for row in rows:
            for text, sentences in zip(row.sample.retrieved_contexts, row.sentences, strict=True):
                places = located(text, sentences)
                if self._places.setdefault(text, places) != places:
                    raise DataError(f"{row.file}: {row.id} and {owner[text]} split the same passage differently")
                owner.setdefault(text, row.id)
        content = json.dumps(sorted(self._places.items())).encode()
        self.cache_key = f"gold sentences {blake2b(content, digest_size=8).hexdigest()}"

    def __call__(self, text: str, language: str, /) -> Sequence[tuple[str, int, int]]:
        """Return the sentences of a passage; of any other text, such as what a judge copied, as ragstone splits it."""
        return self._places[text] if text in self._places else split_sentences(text, language)


def judged_places(row: Row) -> list[Place]:
    """Return the places of the sentences in the order in which the metric judges them; it passes over blank ones."""
    return [
        (passage, number)
        for passage, sentences in enumerate(row.sentences)
        for number, sentence in enumerate(sentences)
        if sentence.strip()
    ]
