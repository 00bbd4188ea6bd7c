"""Files of samples (JSON lines, JSON, CSV, TSV, Parquet) and tables in memory (pandas, Arrow)."""

import codecs
import csv
import gzip
import importlib
import io
import itertools
import json
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ragstone.sample import BadLine, Row
from ragstone.sources.rows import RowReader, SourceError, distinct

Rows = Iterator[Row | BadLine]
_KINDS = ".jsonl, .ndjson, .json, .csv, .tsv (each also with .gz behind it) or .parquet"
_LONGEST_CELL = 2**31 - 1
_CHUNK = 1_000  # rows of a table that are Python objects at a time


def file_rows(path: Path, reader: RowReader) -> Rows:
    """Return the rows of a file, lazily and in constant memory (a file that is one JSON list is read whole).

    Raises:
        SourceError: There is no such file, it cannot be opened, or its kind is not known; while it is read: it
            cannot be read to its end, or has no column with a field of a sample.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = "".join((suffixes[:-1] if packed else suffixes)[-1:])
    if not _exists(path):
        raise SourceError(f"{str(path)[:100]!r}: there is no such file; pass the path of one, or a list of samples")
    if path.is_dir():
        raise SourceError(f"{path}: is a folder; name a file in it")
    if kind == ".parquet" and not packed:
        return _parquet_rows(path, reader)
    if kind not in _READERS:
        raise SourceError(f"{path}: its name does not say of which kind it is; name it {_KINDS}")
    if path.is_file():  # a pipe can be opened only once
        with _explained(path), path.open("rb"):
            pass
    return _text_rows(path, packed, reader, _READERS[kind])


def table_rows(source: object, reader: RowReader) -> Rows | None:
    """Return the rows of a table, known by what it can do (neither library is imported); None when it is none.

    Raises:
        SourceError: None of its columns holds a field of a sample, or one that `fields` names is not there.
    """
    kind = type(source).__name__
    table = cast("Any", source)
    if hasattr(source, "itertuples") and hasattr(source, "columns"):  # pandas
        return _frame_rows(table, reader.columns(list(table.columns), kind), reader)
    names: object = getattr(getattr(source, "schema", None), "names", None)
    if not isinstance(names, list):
        return None
    if hasattr(source, "to_batches"):  # Arrow's Table
        batches = table.to_batches()
    else:
        batches = table if hasattr(source, "read_next_batch") else [table]
    return _batch_rows(batches, reader.columns(cast("list[object]", names), kind), reader)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a text that is too long for a path, or holds NUL
        return False


_Reader = Callable[[IO[bytes], RowReader, Path], Rows]


def _text_rows(path: Path, packed: bool, reader: RowReader, read: _Reader) -> Rows:
    with _explained(path), cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as file:
        yield from read(file, reader, path)


@contextmanager
def _explained(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"{path}: cannot be read: {why}") from error


def _jsonl_rows(file: IO[bytes], reader: RowReader, _path: Path) -> Rows:
    return reader.json_rows(file)


def _json_rows(file: IO[bytes], reader: RowReader, path: Path) -> Rows:
    first = file.readline()
    if _is_object(first):  # JSON lines under the name of .json, as Hugging Face datasets writes them
        yield from reader.json_rows(itertools.chain([first], file))
        return
    body = first + file.read()
    if not body.strip():
        return
    try:
        value: object = json.loads(body, object_pairs_hook=distinct)
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: is not UTF-8 at byte {error.start + 1}") from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: is not JSON: {str(error)[:200]}") from None
    if not isinstance(value, list):
        problem = value.problem if isinstance(value, BadLine) else f"holds one JSON {type(value).__name__}"
        raise SourceError(f"{path}: {problem}; it must be a list of samples, [{{...}}, ...]")
    for number, item in enumerate(cast("list[object]", value), 1):
        yield reader.row(number, item, "json")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.removeprefix(codecs.BOM_UTF8)), dict)
    except (ValueError, RecursionError):
        return False


def _csv_rows(file: IO[bytes], reader: RowReader, path: Path, delimiter: str = ",") -> Rows:
    start = cast("io.BufferedReader", file).peek(2)[:2]
    wide = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as spreadsheets save "Unicode text"
    encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
    with io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="") as lines:
        records = _records(lines, delimiter)
        header = next((names for _, names in records if names), None)
        if header is None:
            return
        if isinstance(header, str):
            raise SourceError(f"{path}: the first line, which names the columns, cannot be read: {header}")
        names = [name.strip() for name in header]
        try:
            columns = reader.columns(names, str(path))
        except SourceError as error:
            mark = next((mark for mark in (";", "\t", ",") if len(names) == 1 and mark in names[0]), None)
            raise SourceError(f"{error}; they seem to be separated by {mark!r}" if mark else str(error)) from None
        places = {name: names.index(name) for name in columns}
        number = 0
        for line, cells in records:
            if cells:
                number += 1
                row = _csv_row(reader, number, cells, places, len(names))
                if isinstance(row, BadLine):
                    row = BadLine(number, f"the record that begins on line {line} of the file: {row.problem}")
                yield row


def _csv_row(
    reader: RowReader, number: int, cells: list[str] | str, places: dict[str, int], width: int
) -> Row | BadLine:
    if isinstance(cells, str):
        return BadLine(number, cells)
    if len(cells) != width:
        return BadLine(number, f"has {len(cells)} cells, and there are {width} columns")
    values = {name: cells[place] or None for name, place in places.items()}
    for name, cell in values.items():
        if cell and not cell.isascii() and any("\udc80" <= character <= "\udcff" for character in cell):
            return BadLine(number, f"{name}: is not UTF-8; save the file as UTF-8")
    return reader.row(number, values, "table")


def _records(lines: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the line on which each record begins, and its cells; in their place what is wrong with it."""
    csv.field_size_limit(_LONGEST_CELL)  # one for the whole process; 131,072 characters are too few for a context
    records = csv.reader(lines, delimiter=delimiter, strict=True)  # else an open quote swallows the rest unsaid
    while True:
        line = records.line_num + 1
        try:
            record: list[str] | str = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            record = f"is not CSV: {error}"
        yield line, record


def _tsv_rows(file: IO[bytes], reader: RowReader, path: Path) -> Rows:
    return _csv_rows(file, reader, path, delimiter="\t")


_READERS: dict[str, _Reader] = {
    ".jsonl": _jsonl_rows,
    ".ndjson": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
}


def _parquet_rows(path: Path, reader: RowReader) -> Rows:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise SourceError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    return _parquet_batches(path, reader, parquet.ParquetFile)


def _parquet_batches(path: Path, reader: RowReader, file_of: Callable[[Path], Any]) -> Rows:
    try:
        with file_of(path) as file:
            columns = reader.columns(file.schema_arrow.names, str(path))
            yield from _batch_rows(file.iter_batches(batch_size=_CHUNK, columns=columns), columns, reader)
    except SourceError:
        raise
    except (ValueError, OSError) as error:  # what pyarrow raises is one or the other
        raise SourceError(f"{path}: cannot be read as Parquet: {error}") from error


def _batch_rows(batches: Iterable[Any], columns: Sequence[str], reader: RowReader) -> Rows:
    number = 0
    for batch in batches:
        wanted = batch.select(list(columns))
        for start in range(0, wanted.num_rows, _CHUNK):
            for item in wanted.slice(start, _CHUNK).to_pylist():
                number += 1
                yield reader.row(number, item, "table")


def _frame_rows(frame: Any, columns: Sequence[str], reader: RowReader) -> Rows:  # noqa: ANN401
    for start in range(0, len(frame), _CHUNK):
        part = frame.iloc[start : start + _CHUNK]
        cells = zip(*(part[column].tolist() for column in columns), strict=True)
        for number, values in enumerate(cells, start + 1):
            yield reader.row(number, dict(zip(columns, values, strict=True)), "table")
