"""Human-labelled rows from JSONL files: what is scored, and what people said."""

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from ragstone import AlignmentCoverage, ContextRelevancy, Metric, ResponseRelevancy, Sample, SummarizationScore

from .fields import Place, number_of, part, relevant_of, sentences_of

Task = Literal["pairwise", "binary", "noncommittal", "correlation", "sentences"]

METRICS: Mapping[str, type[Metric]] = {
    "ContextRelevancy": ContextRelevancy,
    "ResponseRelevancy": ResponseRelevancy,
    "SummarizationScore": SummarizationScore,
    "Summarization": AlignmentCoverage,
    "AlignmentCoverage": AlignmentCoverage,
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
        group: What it is compared within: its pair, or its document. None where each row stands alone.
        target: The labels by name: "human" (pairwise, binary, correlation), "coverage", "alignment", "overall"
            (summaries), "share" (sentences).
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


def read_folder(folder: Path, limit: int | None = None) -> dict[str, list[Row]]:
    """Return the rows of all JSONL files in a folder and below it (or of one file), by file, in order.

    Rows without a label (target null) are left out, of a pair both; and, with a warning, those of two responses, which
    no metric scores.

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
    found: dict[str, list[Row]] = {}
    for path in paths:
        if path.stem in found:
            raise DataError(f"{path}: is the second file of the name {path.stem}")
        found[path.stem] = _first(_read_file(path), limit)
    return {file: rows for file, rows in found.items() if rows}


def _first(rows: list[Row], limit: int | None) -> list[Row]:
    if limit is None:
        return rows
    sizes = Counter(_unit(row) for row in rows)
    chosen: set[str] = set()
    number = 0
    for row in rows:
        if number < limit and _unit(row) not in chosen:
            chosen.add(_unit(row))
            number += sizes[_unit(row)]
    return [row for row in rows if _unit(row) in chosen]


def _unit(row: Row) -> str:
    """Return what is taken as a whole: the row's group, or the row."""
    return f"row {row.id}" if row.group is None else f"group {row.group}"


def _read_file(path: Path) -> list[Row]:
    rows: dict[str, Row] = {}
    twofold = 0
    unlabelled: set[object] = set()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line.decode())
            if isinstance(given, dict) and "response_a" in given:
                twofold += 1
                continue
            row = _row(path.stem, given)
            if row is not None and row.id in rows:
                raise ValueError(f"id: {row.id!r} stands twice")
        except (ValueError, RecursionError) as error:
            what = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise DataError(f"{path}, line {number}: {what}") from None
        if row is None:
            unlabelled.add(given.get("pair_id"))
        else:
            rows[row.id] = row
    rows = {name: row for name, row in rows.items() if row.task != "pairwise" or row.group not in unlabelled}
    if twofold:
        warnings.warn(
            f"{path}: {twofold} row(s) left out: response_a and response_b are two responses; give each a row of its "
            "own, with one pair_id",
            stacklevel=2,
        )
    kinds = {(row.task, row.metrics) for row in rows.values()}
    if len(kinds) > 1:
        raise DataError(f"{path}: use: has rows of different tasks or metrics; make a file of each")
    _check_pairs(path, rows.values())
    return list(rows.values())


def _check_pairs(path: Path, rows: Iterable[Row]) -> None:
    pairs: dict[str | None, list[float]] = {}
    for row in rows:
        if row.task == "pairwise":
            pairs.setdefault(row.group, []).append(row.target["human"])
    for group, targets in pairs.items():
        if sorted(targets) != [0.0, 1.0]:
            raise DataError(f"{path}: pair_id {group!r}: needs one row of target 1 and one of target 0, has {targets}")


def _row(file: str, given: object) -> Row | None:
    """Return the row that a line holds; None where it has no label."""
    if not isinstance(given, dict):
        raise ValueError("is no JSON object")
    values = cast("dict[str, Any]", given)
    use = part(values, "use", dict)
    words = part(use, "metric", str)
    metrics = _metrics(words)
    task = _task(part(use, "task", str), words)
    target: object = use.get("target")
    if target is None:
        return None
    sentences: tuple[tuple[str, ...], ...] = ()
    relevant: frozenset[Place] = frozenset()
    if task == "sentences":
        labels = part(use, "target", dict)
        sentences = sentences_of(values)
        relevant = relevant_of(labels, sentences)
        targets = {"share": number_of("use.target.share", labels.get("share"))}
    elif isinstance(target, dict) and task == "correlation":
        targets = {
            name: number_of(f"use.target.{name}", value)
            for name, value in cast("dict[str, object]", target).items()
            if value is not None
        }
        if not targets:
            return None
    else:
        targets = {"human": number_of("use.target", use["target"])}
        if task != "correlation" and targets["human"] not in (0.0, 1.0):
            raise ValueError(f"use.target: {target!r} is neither 0, 1 nor null")
    return Row(
        file=file,
        id=part(values, "id", str),
        task=task,
        metrics=metrics,
        sample=_sample(values),
        group=_group(values, task),
        target=targets,
        sentences=sentences,
        relevant=relevant,
    )


def _metrics(words: str) -> tuple[str, ...]:
    """Return the metrics that `use.metric` names, such as "SummarizationScore + Summarization (coverage only)"."""
    named = [part.partition("(")[0].strip() for part in words.split("+")]
    if unknown := [name for name in named if name not in METRICS]:
        raise ValueError(f"use.metric: {unknown[0]!r} is none of {', '.join(METRICS)}")
    return tuple(METRICS[name].name for name in named)


def _task(words: str, metric: str) -> Task:
    for beginning, task in _TASKS.items():
        if words.startswith(beginning):
            return "noncommittal" if task == "binary" and "noncommittal" in metric else task
    raise ValueError(f"use.task: {words!r} begins with none of {', '.join(_TASKS)}")


def _sample(values: Mapping[str, Any]) -> Sample:
    source, contexts = values.get("source"), values.get("retrieved_contexts")
    if source is not None and contexts is not None:
        raise ValueError("source: stands beside retrieved_contexts; a row has one of them")
    if source is not None:
        contexts = [source]
    try:
        return Sample(
            user_input=values.get("user_input"),
            retrieved_contexts=() if contexts is None else contexts,
            response=values.get("response"),
            id=values.get("id"),
        )
    except ValueError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _group(values: Mapping[str, Any], task: Task) -> str | None:
    if task not in ("pairwise", "correlation"):
        return None
    name = "doc_id" if "doc_id" in values and task == "correlation" else "pair_id"
    group: str = part(values, name, str)
    return group
