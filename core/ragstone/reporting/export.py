"""Results as a table: one row per sample, metric and draw, for spreadsheets and data frames."""

import csv
import importlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.outcome import Score
from ragstone.store.private_files import replacing

if TYPE_CHECKING:
    from ragstone.sample import Sample
    from ragstone.store.record import Record

Cell = str | int | float | bool | None
# What pandas and Arrow call each type: all have a form for what is missing, so that there is no NaN.
_TEXT, _COUNT, _REAL, _FLAG = ("string", "string"), ("Int64", "int64"), ("Float64", "float64"), ("boolean", "bool_")
COLUMNS: Mapping[str, tuple[str, str]] = {
    "row": _COUNT, "sample_id": _TEXT, "metric": _TEXT, "version": _TEXT, "judge": _TEXT, "draw": _COUNT,
    "value": _REAL, "passed": _FLAG, "unscored": _TEXT, "reason": _TEXT, "breakdown": _TEXT, "verdicts": _TEXT,
    "llm_calls": _COUNT, "embed_calls": _COUNT, "input_tokens": _COUNT, "output_tokens": _COUNT, "seconds": _REAL,
    "user_input": _TEXT, "retrieved_contexts": _TEXT, "response": _TEXT,
}  # fmt: skip
# As a formula, also behind space, and in the full-width forms that spreadsheets in East Asian languages take.
_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_OBEYED_BY_SPREADSHEETS = ("\t", "\r", "\n")
_PAGE = 5_000


def to_rows(records: "Iterable[Record]", sample_of: "Callable[[Record], Sample | None]") -> Iterator[dict[str, Cell]]:
    """Yield each record as cells by column; what is a list or a mapping is JSON.

    `unscored` is the word of an `Unscored`, and `reason` its detail; `reason` of a `Score` is its sentence.
    """
    row, texts = None, dict[str, Cell]()
    for record in records:
        outcome = record.outcome
        if (record.row, record.sample_id) != row:
            row, texts = (record.row, record.sample_id), _texts(sample_of(record))
        score = outcome if isinstance(outcome, Score) else None
        yield {
            "row": record.row,
            "sample_id": record.sample_id,
            "metric": outcome.metric,
            "version": outcome.version,
            "judge": record.judge,
            "draw": record.draw,
            "value": None if score is None else score.value,
            "passed": None if score is None else score.passed,
            "unscored": None if isinstance(outcome, Score) else outcome.reason,
            "reason": outcome.reason if isinstance(outcome, Score) else outcome.detail,
            "breakdown": None if score is None else _json(score.breakdown),
            "verdicts": None if score is None else _json([verdict.model_dump() for verdict in score.verdicts]),
            **outcome.usage.model_dump(),
            **texts,
        }


def _texts(sample: "Sample | None") -> dict[str, Cell]:
    if sample is None:
        return dict.fromkeys(("user_input", "retrieved_contexts", "response"))
    contexts = _json(list(sample.retrieved_contexts)) if sample.retrieved_contexts else None
    return {"user_input": sample.user_input, "retrieved_contexts": contexts, "response": sample.response}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_csv(path: Path, rows: Iterable[Mapping[str, Cell]], *, neutralise: bool) -> None:
    """Write a CSV file: UTF-8, a missing value being an empty cell."""
    with replacing(path) as raw:
        target = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="")
        table = csv.writer(target)
        table.writerow(COLUMNS)
        for row in rows:
            table.writerow([neutral(cell) if neutralise else cell for cell in row.values()])
        target.flush()
        target.detach()


def neutral(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet runs: a text that it would gets a ' in front; numbers stay as they are."""
    if not isinstance(cell, str):
        return cell
    bare = cell.lstrip().lstrip("\ufeff").lstrip()
    runs = cell.startswith(_OBEYED_BY_SPREADSHEETS) or bare.startswith(_RUN_BY_SPREADSHEETS)
    return f"'{cell}" if runs else cell


def to_frame(rows: Iterable[Mapping[str, Cell]]) -> Any:  # noqa: ANN401 - a pandas.DataFrame; pandas is no dependency
    """Return a pandas DataFrame; a missing value is NA, never NaN."""
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from error
    columns: dict[str, list[Cell]] = {name: [] for name in COLUMNS}
    for row in rows:
        for name, cell in row.items():
            columns[name].append(_encodable(cell))
    return pandas.DataFrame({name: pandas.array(columns[name], dtype=kind) for name, (kind, _) in COLUMNS.items()})


def write_parquet(path: Path, rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write a Parquet file, some thousand rows at a time."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("to_parquet needs pyarrow, which is not installed: pip install pyarrow") from error
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, (_, kind) in COLUMNS.items()])
    left = iter(rows)
    with replacing(path) as target, parquet.ParquetWriter(target, schema) as writer:
        while page := [{name: _encodable(cell) for name, cell in row.items()} for row in islice(left, _PAGE)]:
            writer.write_table(arrow.Table.from_pylist(page, schema=schema))


def _encodable(cell: Cell) -> Cell:
    """Return a text without half characters, which Arrow cannot hold."""
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell
