"""The files of a folder of results: labels, scores, and what the scores were made with. Ids and numbers, no text."""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator, model_validator

from ragstone import Embedder

from .floors import Signals, signals
from .rows import METRICS, DataError, Place, Row, Task

OURS = "ragstone"
"""The system that others are compared with."""

Key = tuple[str, str, str]
"""File, row and metric."""
Mark = tuple[int, int, bool, float | None]
"""Of a sentence: passage, number, whether it was chosen, and its probability if there is one."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Label(_Record):
    """What of a row is needed to hold scores against it: the same fields as in `Row`, and what trivial scorers need."""

    file: str
    id: str
    task: Task
    metrics: tuple[str, ...]
    group: str | None
    target: Mapping[str, float]
    relevant: frozenset[Place]
    signals: Signals

    @classmethod
    def of(cls, row: Row, embedder: Embedder | None = None) -> "Label":
        """Return the label of a row; the embedder is the floors'."""
        shared = {name: getattr(row, name) for name in cls.model_fields if name != "signals"}
        return cls(**shared, signals=signals(row, embedder))

    def places(self) -> list[Place]:
        """Return the places of all sentences."""
        return [
            (passage, number)
            for passage, sentences in enumerate(self.signals.overlaps)
            for number in range(len(sentences))
        ]

    def cosines(self) -> dict[Place, float] | None:
        """Return the cosine of question and sentence by its place; None without an embedder."""
        found = self.signals.cosines
        return None if found is None else {(p, s): found[p][s][0] for p, s in self.places()}


class Line(_Record):
    """One metric's outcome on one row. Another library's scores may have the same form.

    Attributes:
        file: The row's file, without ".jsonl".
        id: The row.
        metric: The ragstone metric that it stands beside.
        value: The score; None where there is none, and `unscored` says why.
        parts: The score's breakdown.
        sentences: The marks of the row's sentences, for a metric of sentences.
        passages: First and last of the sentences (from 0) that a passage holds, and the judge's probability of it.
        calls: To the judge; None where nobody counted, likewise the tokens.
        seconds: Wall time.
    """

    file: str
    id: str
    metric: str
    value: float | None = None
    unscored: str | None = None
    parts: Mapping[str, float] = {}
    sentences: tuple[Mark, ...] | None = None
    passages: tuple[tuple[int, int, float], ...] = ()
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    version: str = ""

    @field_validator("file")
    @classmethod
    def _without_folder(cls, file: str) -> str:
        return PurePosixPath(file).name.removesuffix(".jsonl")

    @field_validator("metric")
    @classmethod
    def _by_its_name(cls, metric: str) -> str:
        return METRICS[metric].name if metric in METRICS else metric

    @model_validator(mode="after")
    def _scored_or_not(self) -> "Line":
        if (self.value is None) == (self.unscored is None):
            raise ValueError("has either a value, or a reason why there is none")
        return self

    @property
    def key(self) -> Key:
        """File, row and metric."""
        return self.file, self.id, self.metric

    @property
    def chosen(self) -> frozenset[Place] | None:
        """The places of the sentences that were chosen; None for a metric of something else."""
        if self.sentences is None:
            return None
        return frozenset((passage, number) for passage, number, chosen, _ in self.sentences if chosen)


class RunInfo(_Record):
    """What a system's scores were made with.

    Attributes:
        embedder: None where none was needed so far.
        options: The metrics' options that are not the default.
        history: Whether the rows' conversations were there.
        python: Version of Python, and the machine.
        date: Of the last run, as year-month-day.
    """

    judge: str
    embedder: str | None
    options: Mapping[str, Mapping[str, Any]]
    history: bool = True
    ragstone: str
    python: str
    date: str


_RUNS = TypeAdapter(dict[str, RunInfo])
RecordT = TypeVar("RecordT", Label, Line)


def read_records(path: Path, kind: type[RecordT]) -> list[RecordT]:
    """Return the labels or lines of a file; a last one that a killed run left unfinished is passed over.

    Raises:
        DataError: One is of another form, or there is no file.
    """
    try:
        *whole, last = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}; run the benchmark on the data") from None
    records: list[RecordT] = []
    try:
        for text in whole:
            records.append(kind.model_validate_json(text))  # noqa: PERF401 - their number is the bad line's
    except ValidationError as error:
        where = f"{path}, line {len(records) + 1}"
        raise DataError(f"{where}: is no {kind.__name__.lower()} of a row: {error.errors()[0]['msg']}") from None
    if last:
        with contextlib.suppress(ValidationError):
            records.append(kind.model_validate_json(last))
    return records


def write_records(path: Path, records: Iterable[Label] | Iterable[Line]) -> None:
    """Write labels or lines in place of a file's, without what is as always."""
    replace_file(path, (record.model_dump_json(exclude_defaults=True) for record in records))


def read_runs(path: Path) -> dict[str, RunInfo]:
    """Return what each system's scores were made with.

    Raises:
        DataError: The file holds something else.
    """
    if not path.exists():
        return {}
    try:
        return _RUNS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path}: is no record of a run: {error.errors()[0]['msg']}") from None


def keep_run(path: Path, system: str, info: RunInfo) -> None:
    """Write what a system's scores are made with, beside that of others.

    Raises:
        DataError: The scores that are there were made with something else.
    """
    runs = read_runs(path)
    if system in runs:
        old, new = runs[system].model_dump(mode="json"), info.model_dump(mode="json")
        if old["embedder"] is None or new["embedder"] is None:
            old["embedder"] = new["embedder"] = old["embedder"] or new["embedder"]
        for name in ("judge", "embedder", "options", "history"):
            if old[name] != new[name]:
                raise DataError(
                    f"{path}: the scores of {system!r} were made with {name} {old[name]!r}, not {new[name]!r}; "
                    "give another --out, or another --name to have both in one table"
                )
        info = RunInfo(**new)
    runs[system] = info
    replace_file(path, [_RUNS.dump_json(dict(sorted(runs.items())), indent=2).decode()])


def replace_file(path: Path, lines: Iterable[str]) -> None:
    """Write a file in one step, so that a killed run leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    new.replace(path)
