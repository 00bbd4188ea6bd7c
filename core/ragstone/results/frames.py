"""Results as a frame: a row for each sample and metric, in columns of plain cells. `frame_files` reads them back."""

import csv
import importlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragstone.outcome import Unscored
from ragstone.plain import to_plain
from ragstone.results.record import Record, row_of

Cell = str | int | float | bool | None
# What pandas calls each type: all have a form for what is missing, so none is NaN.
TEXT, REAL, _COUNT, _FLAG = "string", "Float64", "Int64", "boolean"
FRAME_COLUMNS: Mapping[str, str] = {
    "row": _COUNT, "sample_id": TEXT, "metric": TEXT, "version": TEXT, "judge": TEXT, "setup": TEXT,
    "chosen_by": TEXT, "group": TEXT,
    "value": REAL, "passed": _FLAG, "unscored": TEXT, "reason": TEXT, "breakdown": TEXT, "verdicts": TEXT,
    "llm_calls": _COUNT, "embed_calls": _COUNT, "input_tokens": _COUNT, "output_tokens": _COUNT, "seconds": REAL,
    "user_input": TEXT, "retrieved_contexts": TEXT, "response": TEXT, "reference": TEXT,
    "reference_ids": TEXT, "retrieved_ids": TEXT, "history": TEXT, "metadata": TEXT,
    "rate": REAL, "submitted_at": REAL, "run_name": TEXT, "tags": TEXT, "user_id": TEXT, "thread_id": TEXT,
}  # fmt: skip
_OF_RECORD = (
    "row", "sample_id", "judge", "setup", "chosen_by", "group",
    "rate", "submitted_at", "run_name", "tags", "user_id", "thread_id",
)  # fmt: skip
NO_SAMPLE = "no_sample"
"""What stands in `unscored` of a row that held no sample; it has no metric."""
# As a formula, also behind space, and in the full-width forms that spreadsheets in East Asian languages take.
_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_OBEYED_BY_SPREADSHEETS = ("\t", "\r", "\n")


def to_rows(records: Iterable[Record]) -> Iterator[dict[str, Cell]]:
    """Yield each record, with its sample, as cells by column; what is a list or a mapping is JSON.

    `unscored` is the word of an `Unscored`, and `reason` its detail; `reason` of a `Score` is its sentence.
    """
    row, texts = None, dict[str, object]()
    for record in records:
        if row_of(record) != row:
            row, sample = row_of(record), record.sample
            fields = {} if sample is None else sample.model_dump()
            texts = {name: None if value in ((), [], {}) else value for name, value in fields.items()}
        outcome = record.outcome.model_dump()
        if isinstance(record.outcome, Unscored):
            outcome |= {"unscored": record.outcome.reason, "reason": record.outcome.detail}
        cells = {**texts, **outcome, **outcome["usage"], **{name: getattr(record, name) for name in _OF_RECORD}}
        yield {name: plain_cell(cells.get(name)) for name in FRAME_COLUMNS}


def plain_cell(value: object) -> Cell:
    """A value as a frame's cell; a list or a mapping as JSON."""
    if value is None or isinstance(value, (int, float)):
        return value
    # Half characters of UTF-16 are escaped: Arrow cannot hold them.
    text = value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def write_csv(path: Path, rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write a CSV file: UTF-8, a missing value being an empty cell."""
    from ragstone.results.private_files import replacing

    with replacing(path) as raw:
        target = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        table = csv.writer(target)
        table.writerow(FRAME_COLUMNS)
        table.writerows([neutral(row[name]) for name in FRAME_COLUMNS] for row in rows)
        target.flush()
        target.detach()


def neutral(cell: Cell) -> Cell:
    """A cell that no spreadsheet runs: a text that it would gets a ' in front; numbers stay as they are."""
    if not isinstance(cell, str):
        return cell
    # Python 3.10 cannot write it, and many readers end at it.
    cell = cell.replace("\x00", "\ufffd")
    return f"'{cell}" if _is_run(cell) else cell


def as_written(cell: str) -> str:
    """The text of a cell that `neutral` may have given.

    Example:
        >>> [as_written(neutral(text)) for text in ("=1+1", "'tis", "- a list")]
        ['=1+1', "'tis", '- a list']
    """
    return cell[1:] if cell.startswith("'") and _is_run(cell) else cell


def _is_run(text: str) -> bool:
    # A text that begins so itself gets one more, so that what is written can be read back.
    text = text.lstrip("'")
    bare = text.lstrip().lstrip("\ufeff").lstrip()
    return text.startswith(_OBEYED_BY_SPREADSHEETS) or bare.startswith(_RUN_BY_SPREADSHEETS)


def installed(module: str, export: str) -> Any:  # noqa: ANN401 - a module that is no dependency
    """The module that an export needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{export} needs {module}, which is not installed: pip install {module}") from error


def to_frame(rows: Iterable[Mapping[str, Cell]], columns: Mapping[str, str] = FRAME_COLUMNS) -> Any:  # noqa: ANN401 - a pandas.DataFrame
    """A pandas DataFrame of columns of these types; a missing value is NA, never NaN."""
    pandas = installed("pandas", "to_pandas")
    kept = list(rows)
    return pandas.DataFrame(
        {name: pandas.array([row[name] for row in kept], dtype=kind) for name, kind in columns.items()}
    )
