"""Results that were written as a frame: Parquet, JSON lines, a JSON list or CSV, in a file or in a folder of parts.

Clusters write a folder: part-0.parquet, part-1.parquet, _SUCCESS.
"""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ragstone.outcome import Usage
from ragstone.plain import is_mapping
from ragstone.results.frames import FRAME_COLUMNS, NO_SAMPLE, TEXT, as_written, installed
from ragstone.results.memory import Results
from ragstone.results.record import Record, record_of
from ragstone.results.tables import ResultsError
from ragstone.sample import BadLine, Sample, name_list
from ragstone.sources.cells import python_value
from ragstone.sources.written import json_value

# An outcome is known by these, and a cluster's own columns beside them are left alone.
_KEY = ("metric", "version", "judge", "setup")
_JSON = {"breakdown", "verdicts", "retrieved_contexts", "reference_ids", "retrieved_ids", "history", "metadata", "tags"}
_TOKENS = ("input_tokens", "output_tokens")
# Rows of Parquet that are unpacked at a time.
_CHUNK = 256
# Characters of a cell of CSV; the usual 131,072 are too few for verdicts.
_LONGEST = 1 << 28
_SPARKS = """; Spark writes such CSV with .option("header", True).option("escape", '"') alone"""
# How many rows a note names.
_NAMED = 5

Item = Mapping[str, Any]
"""A row of a frame: its cells by column."""


class FrameResults(Results):
    """The results of a frame: what `Report.to_pandas()` and `Scorer` give, however it was written.

    Where batches count their rows from 0 each, all rows are counted. The outcomes of a sample that stand apart, as in
    a frame that was sorted, are put together, which takes memory. A row that held no sample is one of the bad rows.

    Args:
        path: The file, or the folder of its parts. It must not change.

    Raises:
        ResultsError: It holds no such frame, cannot be read, or lacks a column without which an outcome is none.
        ImportError: Parquet needs pyarrow, which is not installed; the message says so.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Spark and others put what they partition by into the names of folders: metric=faithfulness.
        below = [*path.glob("*"), *path.glob("*=*/**/*")] if path.is_dir() else [path]
        self._parts = {part: stamp(part) for part in sorted(below, key=_in_order) if part == path or _is_part(part)}
        if not self._parts:
            raise no_results(path)
        self._apart = self._counts_again = self._has_ids = False
        self.info = {"bad_rows": [asdict(each) for each in self._looked_through()]}

    def records(self, since: float | None = None, *, samples: bool = False) -> Iterator[Record]:  # noqa: ARG002
        """Yield the records, those of a sample together.

        Raises:
            ResultsError: A part is damaged, or has changed since it was opened.
            OSError: It cannot be read.
        """
        damaged: list[str] = []
        items = self._items(FRAME_COLUMNS, damaged)
        row, before, sample, record = -1, None, None, None
        for where, item in sorted(items, key=lambda each: _position(each[1])) if self._apart else items:
            if item.get("unscored") == NO_SAMPLE:
                continue
            try:
                values, position = _cell_values(item), _position(item)
                if position != before:
                    sample = _sample_of(values, position)
                    row, before = row + 1 if self._counts_again else position[0], position
                if not self._has_ids:
                    values["sample_id"] = str(row + 1)
                record = _record_of(values, row, sample)
            except (KeyError, TypeError, ValueError, RecursionError):
                damaged.append(where)
                continue
            if since is None or record.submitted_at >= since:
                yield record
        if damaged and record is None:
            raise no_results(self.path)
        some = ", ".join(damaged[:_NAMED]) + (", ..." if len(damaged) > _NAMED else "")
        self.notes = (f"{len(damaged):,} row(s) hold no outcome and were left out: {some}",) if damaged else ()

    def _looked_through(self) -> Iterator[BadLine]:
        """Yield the rows that held no sample, and find out how the others stand and are numbered."""
        names, ids, firsts, before = set[str](), dict[int, int](), dict[int, int](), None
        for _, item in self._items((*_KEY, "row", "sample_id", "unscored", "reason"), []):
            if not names and "sample_id" not in item:
                raise no_results(self.path)
            names.update(item)
            position = _position(item)
            if item.get("unscored") == NO_SAMPLE:
                yield BadLine(position[0] + 1, str(item.get("reason")))
            elif position != before:
                before, key, first = position, hash(position), hash(str([item.get(name) for name in _KEY]))
                self._has_ids |= not _is_line(position)
                self._counts_again |= ids.setdefault(position[0], key) != key or firsts.get(key) == first
                self._apart |= firsts.setdefault(key, first) != first
        if firsts and (lacking := [name for name in _KEY if name not in names]):
            raise ResultsError(
                f"{self.path}: lacks {name_list(lacking)}, without which no outcome is known; save all columns of "
                "Report.to_pandas() (not wide=True) or of a Scorer"
            )

    def _items(self, names: Iterable[str], damaged: list[str]) -> Iterator[tuple[str, Item]]:
        """Yield each row, as these columns, and where it stands; of a damaged one, note that."""
        wanted = list(names)
        for part, then in self._parts.items():
            if stamp(part) != then:
                raise ResultsError(f"{part}: has changed since it was loaded; load it again")
            number, beside = 0, dict(folder.name.split("=", 1) for folder in part.parents if "=" in folder.name)
            try:
                with part.open("rb") as file:
                    for number, item in enumerate(_cells(file, wanted), 1):
                        where = f"{part.name} row {number:,}"
                        if is_mapping(item):
                            yield where, {**beside, **cast("Item", item)}
                        else:
                            damaged.append(where)
            except (ImportError, ResultsError):
                raise
            except Exception as error:
                if not number and isinstance(error, (UnicodeError, json.JSONDecodeError)):
                    raise no_results(self.path) from error
                # Of damaged files pyarrow raises many kinds of errors.
                hint = _SPARKS if isinstance(error, csv.Error) else ""
                raise ResultsError(f"{part}: cannot be read after row {number:,}: {error}{hint}") from error


def no_results(path: Path) -> ResultsError:
    """The error of a file that holds something else."""
    return ResultsError(
        f"{path}: has no results: pass an unchanged file of `ragstone score --out` or Report.to_json, or what a Scorer "
        f"or Report.to_pandas() gave, as Parquet, JSON lines or CSV; samples are scored first: `ragstone score {path}`"
    )


def stamp(path: Path) -> tuple[int, int, int, int]:
    """What tells a file from one that has changed."""
    state = path.stat()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _is_part(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(("_", ".")) and path.stat().st_size > 0


def _in_order(path: Path) -> list[tuple[int, str]]:
    """A name's digits as numbers: part 10 comes after part 2."""
    return [(int(each or 0), text) for each, text in re.findall(r"(\d*)(\D*)", str(path))]


def _cells(file: io.BufferedReader, names: list[str]) -> Iterator[object]:
    """Yield the rows of a file of whatever kind, which its content says; no mapping for a damaged one."""
    if file.peek(4)[:4] == b"PAR1":
        installed("pyarrow", "reading Parquet")
        table = import_module("pyarrow.parquet").ParquetFile(file)
        columns = [name for name in table.schema_arrow.names if name in names]
        for batch in table.iter_batches(_CHUNK, columns=columns):
            # Reading a value of a damaged one may end the process.
            batch.validate(full=True)
            yield from batch.to_pylist()
        return
    body = cast("io.BufferedReader", gzip.GzipFile(fileobj=file)) if file.peek(2)[:2] == b"\x1f\x8b" else file
    start = body.peek(1_000).lstrip()[:1]
    if start == b"[":
        yield from json.load(body)
    elif start == b"{":
        yield from (json_value(line) for line in body if line.strip())
    else:
        csv.field_size_limit(_LONGEST)
        with io.TextIOWrapper(body, "utf-8-sig", newline="") as text:
            lines: Iterator[list[str]] = filter(None, csv.reader(text, strict=True))
            columns = next(lines, list[str]())
            for cells in lines:
                values = [as_written(cell) if cell else None for cell in cells]
                yield dict(zip(columns, values, strict=True)) if len(values) == len(columns) else None


def _position(item: Item) -> tuple[int, str]:
    """The number and the id of the sample, which the outcomes of one have in common."""
    number = 0
    with suppress(ValueError, TypeError, OverflowError):
        number = int(float(item.get("row") or 0))
    return number, _cell_text(item.get("sample_id")) or ""


def _is_line(position: tuple[int, str]) -> bool:
    """Whether a sample's id is but its line, which it has where it was given none."""
    return position[1] == str(position[0] + 1)


def _cell_text(value: object) -> str | None:
    """A cell of text, which a tool may have read as a number."""
    value = python_value(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else str(value)


def _cell_values(item: Item) -> dict[str, Any]:
    """The cells of a row that are there, as values."""
    values: dict[str, Any] = {}
    for name, kind in FRAME_COLUMNS.items():
        value = _cell_text(item.get(name)) if kind == TEXT and name not in _JSON else python_value(item.get(name))
        if isinstance(value, str) and name in _JSON:
            value = json.loads(value)
        if value is not None:
            values[name] = value
    return values


def _sample_of(values: Item, position: tuple[int, str]) -> Sample | None:
    """The sample of a row; None where its columns were left out."""
    fields = {name: values[name] for name in Sample.model_fields if name in values}
    named: dict[str, Any] = {} if _is_line(position) else {"id": position[1]}
    return Sample(**{**fields, **named}) if fields else None


def _record_of(values: Item, row: int, sample: Sample | None) -> Record:
    """The record of a row of cells.

    Raises:
        KeyError, TypeError, ValueError: It is none.
    """
    facts = {**values, "id": values["sample_id"], "row": row, "status": "scored", "reason": values.get("reason", "")}
    if "unscored" in values:
        facts |= {"status": "unscored", "reason": values["unscored"], "detail": facts["reason"]}
    # Of tokens nothing is known where there is no number.
    usage = {name: values.get(name) for name in Usage.model_fields if name in values or name in _TOKENS}
    return replace(record_of({**facts, "usage": usage}), sample=sample)
