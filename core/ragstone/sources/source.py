"""The rows of any source: one way in for lists, generators, tables and files."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import cast

from ragstone.sample import BadLine, Row, Sample
from ragstone.sources.files import file_rows, table_rows
from ragstone.sources.rows import RowReader

Source = Iterable[object] | AsyncIterable[object] | str | PathLike[str]


def rows_of(
    source: Source, fields: Mapping[str, str] | None = None
) -> Iterator[Row | BadLine] | AsyncIterator[Row | BadLine]:
    """Return the rows of a source, lazily: a `Row` per sample, a `BadLine` for what is none.

    Rows count from 1: lines of a file of JSON lines, else places (of CSV, records behind the line of names). A
    sample without an id keeps none; a row of a file or table, or a dict, gets its number. Ids may occur twice.

    Args:
        source: Any iterable, or asynchronous one, of `Sample`s, dicts, or objects with such fields (a sample of
            ragas, a test case of DeepEval); a pandas DataFrame; a Hugging Face Dataset; an Arrow Table, RecordBatch or
            RecordBatchReader; or the path of a file: .jsonl, .ndjson, .json (a list, or lines), .csv, .tsv, each also
            with .gz behind it, or .parquet (which needs pyarrow). Iterables without end are fine. In tables NaN and
            its like are as good as absent, and a text in the column of contexts is a JSON list of them or the only
            one; in CSV an empty cell is absent.
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's).

    Returns:
        An iterator; an asynchronous one for an asynchronous source. It may wait for a file or for the source. An
        exception that the source raises comes through.

    Raises:
        TypeError: The source is no such thing.
        SourceError: A file cannot be read, or a table has no column with a field of a sample; some of it only when
            the rows are read.

    Example:
        >>> rows = rows_of([{"question": "Why?", "output": "So."}, "oops"], fields={"response": "output"})
        >>> next(rows).sample.response
        'So.'
        >>> next(rows)
        BadLine(line=2, problem='is str, not a Sample or a dict')
    """
    reader = RowReader(fields)
    if isinstance(source, (str, PathLike)):
        return file_rows(Path(source), reader)
    table = table_rows(source, reader)
    if table is not None:
        return table
    _refuse_single(source)
    if isinstance(source, AsyncIterable):
        return _arriving(source, reader)
    names = getattr(source, "column_names", None)  # of a Hugging Face dataset
    named = isinstance(names, list)
    if named:
        reader.columns(cast("list[object]", names), type(source).__name__)
    return (reader.row(number, item, "table" if named else "object") for number, item in enumerate(source, 1))


async def _arriving(source: AsyncIterable[object], reader: RowReader) -> AsyncIterator[Row | BadLine]:
    number = 0
    async for item in source:
        number += 1
        yield reader.row(number, item)


def _refuse_single(source: object) -> None:
    kind = type(source).__name__
    if isinstance(source, Mapping):
        keys = ", ".join(repr(key)[:40] for key in list(cast("Mapping[object, object]", source))[:12]) or "no keys"
        raise TypeError(
            f"samples: is one {kind} (with {keys}), not a list of them; write [row], or take one of the splits"
        )
    if isinstance(source, (Sample, Row)):
        raise TypeError(f"samples: is one {kind}, not a list of them; write [sample]")
    if isinstance(source, (bytes, bytearray)) or not isinstance(source, (Iterable, AsyncIterable)):
        raise TypeError(
            f"samples: is {kind}; pass an iterable of Samples or dicts, a DataFrame, a Dataset, an Arrow Table, or the "
            "path of a file"
        )
    if hasattr(cast("object", source), "read"):
        raise TypeError(f"samples: is an open file ({kind}); pass its path")
