"""Results that were written as a frame: Parquet, JSON lines, a JSON list or CSV, in a file or in a folder of parts.

Clusters write a folder: part-0.parquet, part-1.parquet, _SUCCESS.
"""

import csv
import gzip
import io
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ragstone.identity import sample_digest
from ragstone.outcome import Usage
from ragstone.plain import count, is_mapping
from ragstone.results.frames import FRAME_COLUMNS, NO_SAMPLE, TEXT, as_written, installed
from ragstone.results.memory import MemoryResults
from ragstone.results.record import Record, decode, encode, record_of
from ragstone.results.tables import ResultsError
from ragstone.sample import Sample, name_list
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
_Place = tuple[int, str, str, int]
"""What tells a sample from others: its row and id, its texts, and how many like it came before."""


def frame_results(path: Path) -> MemoryResults:
    """The results of a frame, in memory: what `Report.to_pandas()` and `Scorer` give, however it was written.

    The outcomes of a sample may stand apart, as in a frame that was sorted. Where batches count their rows from 0 each,
    all rows are counted. A row that held no sample is one of the bad rows.

    Args:
        path: The file, or the folder of its parts.

    Raises:
        ResultsError: It holds no such frame, cannot be read, or lacks a column without which an outcome is none.
        ImportError: Parquet needs pyarrow, which is not installed; the message says so.
        OSError: It cannot be read.
    """
    samples: dict[_Place, list[str]] = {}
    known, names, damaged, bad_rows = set[object](), set[str](), list[str](), list[object]()
    for where, item in _items_of_parts(path):
        names.update(item)
        if item.get("unscored") == NO_SAMPLE:
            bad_rows.append({"line": _position(item)[0] + 1, "problem": str(item.get("reason"))})
            continue
        try:
            record = _record_in(item)
        except (KeyError, TypeError, ValueError, RecursionError):
            damaged.append(where)
            continue
        digest = "" if record.sample is None else sample_digest(record.sample)
        place, of = (record.row, record.sample_id, digest, 0), (record.outcome.metric, record.judge, record.setup)
        # Rows of two batches may have the same texts; an id that the user gave is of one sample.
        while _is_line(place) and (place, of) in known:
            place = (*place[:3], place[3] + 1)
        known.add((place, of))
        samples.setdefault(place, []).append(encode(record))
    lacking = [name for name in _KEY if name not in names] if "sample_id" in names else []
    if lacking and (samples or damaged):
        raise ResultsError(
            f"{path}: lacks {name_list(lacking)}, without which no outcome is known; save all columns of "
            "Report.to_pandas() (not wide=True) or of a Scorer"
        )
    if not samples and (damaged or not bad_rows):
        raise no_results(path)
    results = _by_row(samples)
    results.info = {"bad_rows": bad_rows}
    some = ", ".join(damaged[:_NAMED]) + (", ..." if len(damaged) > _NAMED else "")
    results.notes = (f"left out {count(len(damaged), 'row')} without an outcome: {some}",) if damaged else ()
    return results


def _by_row(samples: "Mapping[_Place, Sequence[str]]") -> MemoryResults:
    """Results of records by their samples, each of which has a row's number of its own."""
    results, numbers = MemoryResults(), [place[0] for place in samples]
    counts_again, has_ids = len({*numbers}) < len(numbers), not all(map(_is_line, samples))
    for i, (place, lines) in enumerate(samples.items()):
        row, records = i if counts_again else place[0], [*map(decode, lines)]
        key = place[1] if has_ids else str(row + 1)
        results.add([replace(each, row=row, sample_id=key, sample=None) for each in records], records[0].sample)
    return results


def _items_of_parts(path: Path) -> Iterator[tuple[str, Item]]:
    """Yield each row of a file or of a folder's parts, and where it stands; one that is damaged is empty."""
    # Spark and others put what they partition by into the names of folders: metric=faithfulness.
    parts = [*path.glob("*"), *path.glob("*=*/**/*")] if path.is_dir() else [path]
    for part in sorted(parts, key=_in_order):
        number, beside = 0, dict(folder.name.split("=", 1) for folder in part.parents if "=" in folder.name)
        if not part.is_file() or part.name.startswith(("_", ".")) or not part.stat().st_size:
            continue
        try:
            with part.open("rb") as file:
                for number, item in enumerate(_cells(file, FRAME_COLUMNS), 1):
                    yield f"{part.name} row {number:,}", {**beside, **cast("Item", item)} if is_mapping(item) else {}
        except (ImportError, ResultsError):
            raise
        except Exception as error:
            if not number and isinstance(error, (UnicodeError, json.JSONDecodeError)):
                raise no_results(path) from error
            # Of damaged files pyarrow raises many kinds of errors.
            hint = _SPARKS if isinstance(error, csv.Error) else ""
            raise ResultsError(f"{part}: cannot be read after row {number:,}: {error}{hint}") from error


def no_results(path: Path) -> ResultsError:
    """The error of a file that holds something else."""
    return ResultsError(
        f"{path}: has no results: pass an unchanged file of `ragstone score --out` or Report.to_json, or what a Scorer "
        f"or Report.to_pandas() gave, as Parquet, JSON lines or CSV; samples are scored first: `ragstone score {path}`"
    )


def _in_order(path: Path) -> list[tuple[int, str]]:
    """A name's digits as numbers: part 10 comes after part 2."""
    return [(int(each or 0), text) for each, text in re.findall(r"(\d*)(\D*)", str(path))]


def _cells(file: io.BufferedReader, names: Collection[str]) -> Iterator[object]:
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


def _is_line(place: "_Place") -> bool:
    """Whether a sample's id is but its line, which it has where it was given none."""
    return place[1] == str(place[0] + 1)


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


def _record_in(item: Item) -> Record:
    """The record of a row of cells, with its sample; the sample is None where its columns were left out.

    Raises:
        KeyError, TypeError, ValueError: It is none.
    """
    values, (row, key) = _cell_values(item), _position(item)
    fields: dict[str, Any] = {name: values[name] for name in Sample.model_fields if name in values}
    named: dict[str, Any] = {} if key == str(row + 1) else {"id": key}
    sample = Sample(**{**fields, **named}) if fields else None
    facts = {**values, "id": key, "row": row, "status": "scored", "reason": values.get("reason", "")}
    if "unscored" in values:
        facts |= {"status": "unscored", "reason": values["unscored"], "detail": facts["reason"]}
    # Of tokens nothing is known where there is no number.
    usage = {name: values.get(name) for name in Usage.model_fields if name in values or name in _TOKENS}
    return replace(record_of({**facts, "usage": usage}), sample=sample)
