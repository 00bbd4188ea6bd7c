"""Results as a table: one row per sample, metric and draw, for spreadsheets and data frames."""

import csv
import importlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.outcome import Unscored
from ragstone.store.private_files import replacing

if TYPE_CHECKING:
    from ragstone.sample import Sample
    from ragstone.store.record import Record

Cell = str | int | float | bool | None
# What pandas (polars: with a capital) and Arrow call each type: all have a form for what is missing, so none is NaN.
_TEXT, _COUNT, _REAL, _FLAG = ("string", "string"), ("Int64", "int64"), ("Float64", "float64"), ("boolean", "bool_")
COLUMNS: Mapping[str, tuple[str, str]] = {
    "row": _COUNT, "sample_id": _TEXT, "metric": _TEXT, "version": _TEXT, "judge": _TEXT, "draw": _COUNT,
    "chosen_by": _TEXT,
    "value": _REAL, "passed": _FLAG, "unscored": _TEXT, "reason": _TEXT, "breakdown": _TEXT, "verdicts": _TEXT,
    "llm_calls": _COUNT, "embed_calls": _COUNT, "input_tokens": _COUNT, "output_tokens": _COUNT, "seconds": _REAL,
    "user_input": _TEXT, "retrieved_contexts": _TEXT, "response": _TEXT, "reference": _TEXT,
}  # fmt: skip
# As a formula, also behind space, and in the full-width forms that spreadsheets in East Asian languages take.
_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_OBEYED_BY_SPREADSHEETS = ("\t", "\r", "\n")
_OF_RECORD = ("row", "sample_id", "judge", "draw", "chosen_by")
_PAGE = 5_000


def to_rows(records: "Iterable[Record]", sample_of: "Callable[[Record], Sample | None]") -> Iterator[dict[str, Cell]]:
    """Yield each record as cells by column; what is a list or a mapping is JSON.

    `unscored` is the word of an `Unscored`, and `reason` its detail; `reason` of a `Score` is its sentence.
    """
    row, texts = None, dict[str, object]()
    for record in records:
        if (record.row, record.sample_id) != row:
            row, sample = (record.row, record.sample_id), sample_of(record)
            texts = (
                {}
                if sample is None
                else {name: None if value in ((), []) else value for name, value in sample.model_dump().items()}
            )
        outcome = record.outcome.model_dump()
        if isinstance(record.outcome, Unscored):
            outcome |= {"unscored": record.outcome.reason, "reason": record.outcome.detail}
        cells = {**texts, **outcome, **outcome["usage"], **{name: getattr(record, name) for name in _OF_RECORD}}
        yield {name: _cell(cells.get(name)) for name in COLUMNS}


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, (int, float)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()  # without half characters, which Arrow cannot hold


def write_csv(path: Path, rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write a CSV file: UTF-8, a missing value being an empty cell."""
    with replacing(path) as raw:
        target = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        table = csv.writer(target)
        table.writerow(COLUMNS)
        table.writerows([neutral(row[name]) for name in COLUMNS] for row in rows)
        target.flush()
        target.detach()


def neutral(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet runs: a text that it would gets a ' in front; numbers stay as they are."""
    if not isinstance(cell, str):
        return cell
    bare = cell.lstrip().lstrip("\ufeff").lstrip()
    runs = cell.startswith(_OBEYED_BY_SPREADSHEETS) or bare.startswith(_RUN_BY_SPREADSHEETS)
    return f"'{cell}" if runs else cell


def _installed(module: str, export: str) -> Any:  # noqa: ANN401 - pandas or pyarrow, which are no dependencies
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{export} needs {package}, which is not installed: pip install {package}") from error


def to_frame(rows: Iterable[Mapping[str, Cell]]) -> Any:  # noqa: ANN401 - a pandas.DataFrame
    """Return a pandas DataFrame; a missing value is NA, never NaN."""
    pandas = _installed("pandas", "to_pandas")
    kept = list(rows)
    columns = {name: pandas.array([row[name] for row in kept], dtype=kind) for name, (kind, _) in COLUMNS.items()}
    return pandas.DataFrame(columns)


def to_polars(rows: Iterable[Mapping[str, Cell]]) -> Any:  # noqa: ANN401 - a polars.DataFrame
    """Return a polars DataFrame; a missing value is null, never NaN."""
    polars = _installed("polars", "to_polars")
    schema = {name: getattr(polars, kind.capitalize()) for name, (kind, _) in COLUMNS.items()}
    return polars.DataFrame(list(rows), schema=schema)


def write_parquet(path: Path, rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write a Parquet file, some thousand rows at a time."""
    arrow, parquet = _installed("pyarrow", "to_parquet"), _installed("pyarrow.parquet", "to_parquet")
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, (_, kind) in COLUMNS.items()])
    left = iter(rows)
    with replacing(path) as target, parquet.ParquetWriter(target, schema) as writer:
        while page := list(islice(left, _PAGE)):
            writer.write_table(arrow.Table.from_pylist(page, schema=schema))
