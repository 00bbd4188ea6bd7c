"""Tables in memory: pandas' data frames, and what Arrow has. Known by what they can do; neither is imported."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from ragstone.batch.sources.samples import Reading
from ragstone.sample import BadLine, Row

CHUNK = 1_000
"""Rows of a table that are Python objects at a time."""


def table_rows(source: object, reading: Reading) -> Iterator[Row | BadLine] | None:
    """Return the rows of a table; None when it is no table.

    Raises:
        SourceError: None of its columns holds a field of a sample, or one that `fields` names is not there.
    """
    kind = type(source).__name__
    table = cast("Any", source)
    if hasattr(source, "itertuples") and hasattr(source, "columns"):  # pandas
        return _frame_rows(table, reading.columns(list(table.columns), kind), reading)
    names: object = getattr(getattr(source, "schema", None), "names", None)
    if not isinstance(names, list):
        return None
    if hasattr(source, "to_batches"):  # Arrow's Table
        batches = table.to_batches()
    elif hasattr(source, "read_next_batch"):  # a RecordBatchReader
        batches = table
    else:
        batches = [table]
    return batch_rows(batches, reading.columns(cast("list[object]", names), kind), reading)


def batch_rows(batches: Iterable[Any], columns: Sequence[str], reading: Reading) -> Iterator[Row | BadLine]:
    """Yield the rows of Arrow's record batches."""
    number = 0
    for batch in batches:
        wanted = batch.select(list(columns))
        for start in range(0, wanted.num_rows, CHUNK):
            for item in wanted.slice(start, CHUNK).to_pylist():
                number += 1
                yield reading.row(number, item, table=True)


def _frame_rows(frame: Any, columns: Sequence[str], reading: Reading) -> Iterator[Row | BadLine]:  # noqa: ANN401
    for start in range(0, len(frame), CHUNK):
        part = frame.iloc[start : start + CHUNK]
        cells = zip(*(part[column].tolist() for column in columns), strict=True)
        for number, values in enumerate(cells, start + 1):
            yield reading.row(number, dict(zip(columns, values, strict=True)), table=True)
