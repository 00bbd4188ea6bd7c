"""Results as a table: one row per sample, metric and draw, for spreadsheets and data frames."""

import csv
import importlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ragstone.outcome import Score
from ragstone.reporting.batch.file import replacing
from ragstone.sample import Sample
from ragstone.store.record import Record

Cell = str | int | float | bool | None
# By column, what pandas and Arrow call its type: each has one for numbers that may be missing, so that there is no NaN.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "row": ("Int64", "int64"),
    "sample_id": ("string", "string"),
    "metric": ("string", "string"),
    "version": ("string", "string"),
    "judge": ("string", "string"),
    "draw": ("Int64", "int64"),
    "value": ("Float64", "float64"),
    "passed": ("boolean", "bool_"),
    "unscored": ("string", "string"),
    "reason": ("string", "string"),
    "breakdown": ("string", "string"),
    "verdicts": ("string", "string"),
    "llm_calls": ("Int64", "int64"),
    "embed_calls": ("Int64", "int64"),
    "input_tokens": ("Int64", "int64"),
    "output_tokens": ("Int64", "int64"),
    "seconds": ("Float64", "float64"),
    "user_input": ("string", "string"),
    "retrieved_contexts": ("string", "string"),
    "response": ("string", "string"),
}
# As a formula, also behind space, and in the full-width forms that spreadsheets in East Asian languages take.
_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_OBEYED_BY_SPREADSHEETS = ("\t", "\r", "\n")
_PAGE = 5_000


def records(results: Iterable[Record], sample_of: Callable[[int], Sample | None]) -> Iterator[dict[str, Cell]]:
    """Yield each result as cells by column; what is a list or a mapping is JSON.

    `unscored` is the word of an `Unscored`, and `reason` its detail; `reason` of a `Score` is its sentence.
    """
    last: tuple[int, dict[str, Cell]] = -1, {}
    for record in results:
        row, outcome = record.row, record.outcome
        score = outcome if isinstance(outcome, Score) else None
        if last[0] != row or not last[1]:
            last = row, _texts(sample_of(row))
        usage = outcome.usage
        yield {
            "row": row,
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
            "llm_calls": usage.llm_calls,
            "embed_calls": usage.embed_calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "seconds": usage.seconds,
            **last[1],
        }


def _texts(sample: Sample | None) -> dict[str, Cell]:
    if sample is None:
        return dict.fromkeys(("user_input", "retrieved_contexts", "response"))
    contexts = _json(list(sample.retrieved_contexts)) if sample.retrieved_contexts else None
    return {"user_input": sample.user_input, "retrieved_contexts": contexts, "response": sample.response}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_csv(path: Path, rows: Iterable[Mapping[str, Cell]], *, neutralise: bool) -> None:
    """Write a CSV file: UTF-8, a missing value being an empty cell.

    Args:
        path: The file.
        rows: The cells by column.
        neutralise: Whether a text that a spreadsheet would run (it begins with = + - @ in half or full width, also
            behind space, or with a tab or line end) gets a ' in front.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as raw:
        target = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="")
        table = csv.writer(target)
        table.writerow(COLUMNS)
        for row in rows:
            table.writerow([neutral(cell) if neutralise else cell for cell in row.values()])
        target.flush()
        target.detach()


def neutral(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet runs; numbers stay as they are.

    Example:
        >>> neutral("=1+1"), neutral(-0.5), neutral("a = b")
        ("'=1+1", -0.5, 'a = b')
    """
    if not isinstance(cell, str):
        return cell
    runs = cell.startswith(_OBEYED_BY_SPREADSHEETS) or _bare(cell).startswith(_RUN_BY_SPREADSHEETS)
    return f"'{cell}" if runs else cell


def _bare(text: str) -> str:
    return text.lstrip().lstrip("\ufeff").lstrip()


def to_frame(rows: Iterable[Mapping[str, Cell]]) -> Any:  # noqa: ANN401 - a pandas.DataFrame; pandas is no dependency
    """Return a pandas DataFrame; a missing value is NA, never NaN.

    Raises:
        ImportError: pandas is not installed.
    """
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
    """Write a Parquet file, some thousand rows at a time.

    Raises:
        ImportError: pyarrow is not installed.
        OSError: It cannot be written.
    """
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
