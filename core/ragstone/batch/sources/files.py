"""Files of samples: JSON lines, JSON, CSV, TSV, Parquet."""

import codecs
import csv
import gzip
import importlib
import io
import itertools
import json
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ragstone.batch.sources.rows import RepeatedKey, distinct, read_rows
from ragstone.batch.sources.samples import Reading, SourceError
from ragstone.batch.sources.tables import CHUNK, batch_rows
from ragstone.sample import BadLine, Row

_KINDS = ".jsonl, .ndjson, .json, .csv, .tsv (each also with .gz behind it) or .parquet"
_LONGEST_CELL = 2**31 - 1
_borrowing = threading.Lock()
_borrowed: list[int] = []  # the limit as it was first, then one for each other reader


def file_rows(path: Path, reading: Reading) -> Iterator[Row | BadLine]:
    """Return the rows of a file, lazily and in constant memory (a file that is one JSON list is read whole).

    Raises:
        SourceError: There is no such file, it cannot be opened, or its kind is not known; while it is read: it
            cannot be read to its end, or has no column with a field of a sample.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if not _exists(path):
        raise SourceError(f"{str(path)[:100]!r}: there is no such file; pass the path of one, or a list of samples")
    if path.is_dir():
        raise SourceError(f"{path}: is a folder; name a file in it")
    if kind == [".parquet"] and not packed:
        return _parquet_rows(path, reading)
    if not kind or kind[0] not in _READERS:
        raise SourceError(f"{path}: of which kind it is cannot be told from its name; name it {_KINDS}")
    if path.is_file():  # a pipe can be opened only once
        with _explained(path), path.open("rb"):
            pass
    return _text_rows(path, packed, reading, _READERS[kind[0]])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a text that is too long for a path, or holds NUL
        return False


_Reader = Callable[[IO[bytes], Reading, Path], Iterator[Row | BadLine]]


def _text_rows(path: Path, packed: bool, reading: Reading, read: _Reader) -> Iterator[Row | BadLine]:
    with _explained(path), cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as file:
        yield from read(file, reading, path)


@contextmanager
def _explained(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"{path}: cannot be read: {why}") from error


def _jsonl_rows(file: IO[bytes], reading: Reading, _path: Path) -> Iterator[Row | BadLine]:
    return read_rows(file, reading.fields)


def _json_rows(file: IO[bytes], reading: Reading, path: Path) -> Iterator[Row | BadLine]:
    first = file.readline()
    if _is_object(first):  # JSON lines under the name of .json, as Hugging Face datasets writes them
        yield from read_rows(itertools.chain([first], file), reading.fields)
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
    if isinstance(value, RepeatedKey):
        raise SourceError(f"{path}: {value.problem}; it must be a list of samples, [{{...}}, ...]")
    if not isinstance(value, list):
        raise SourceError(
            f"{path}: holds one JSON {type(value).__name__}; it must be a list of samples, [{{...}}, ...]"
        )
    for number, item in enumerate(cast("list[object]", value), 1):
        yield BadLine(number, item.problem) if isinstance(item, RepeatedKey) else reading.row(number, item)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.removeprefix(codecs.BOM_UTF8)), dict)
    except (ValueError, RecursionError):
        return False


def _csv_rows(file: IO[bytes], reading: Reading, path: Path, delimiter: str = ",") -> Iterator[Row | BadLine]:
    start = cast("io.BufferedReader", file).peek(2)[:2]
    wide = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as spreadsheets save "Unicode text"
    encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
    with _long_cells(), io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="") as lines:
        records = _records(lines, delimiter)
        header = next((names for _, names in records if names), None)
        if header is None:
            return
        if isinstance(header, str):
            raise SourceError(f"{path}: the first line, which names the columns, cannot be read: {header}")
        names = [name.strip() for name in header]
        try:
            wanted = reading.columns(names, str(path))
        except SourceError as error:
            mark = next((mark for mark in (";", "\t", ",") if len(names) == 1 and mark in names[0]), None)
            raise SourceError(f"{error}; they seem to be separated by {mark!r}" if mark else str(error)) from None
        places = [(name, names.index(name)) for name in wanted]
        number = 0
        for line, cells in records:
            if cells:
                number += 1
                yield _csv_row(reading, number, line, cells, places, len(names))


def _csv_row(
    reading: Reading, number: int, line: int, cells: list[str] | str, places: list[tuple[str, int]], width: int
) -> Row | BadLine:
    where = f"the record that begins on line {line} of the file"
    if isinstance(cells, str):
        return BadLine(number, f"{where}: {cells}")
    if len(cells) != width:
        return BadLine(number, f"{where}: has {len(cells)} cells, and there are {width} columns")
    found = {name: cells[place] or None for name, place in places}
    for name, cell in found.items():
        if cell and not cell.isascii() and any("\udc80" <= character <= "\udcff" for character in cell):
            return BadLine(number, f"{where}: {name}: is not UTF-8; save the file as UTF-8")
    row = reading.row(number, found, table=True)
    return BadLine(number, f"{where}: {row.problem}") if isinstance(row, BadLine) else row


def _records(lines: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the line on which each record begins, and its cells; in their place what is wrong with it."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)  # else an open quote swallows the rest unsaid
    while True:
        line = reader.line_num + 1
        try:
            record: list[str] | str = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            record = f"is not CSV: {error}"
        yield line, record


@contextmanager
def _long_cells() -> Generator[None, None, None]:
    """Let cells be as long as they are. Python has one limit for the whole process: it is lent, and given back."""
    with _borrowing:
        _borrowed.append(csv.field_size_limit(_LONGEST_CELL))
    try:
        yield
    finally:
        with _borrowing:
            limit = _borrowed.pop(0)
            if _borrowed:
                _borrowed[0] = limit
            else:
                csv.field_size_limit(limit)


def _tsv_rows(file: IO[bytes], reading: Reading, path: Path) -> Iterator[Row | BadLine]:
    return _csv_rows(file, reading, path, delimiter="\t")


_READERS: dict[str, _Reader] = {
    ".jsonl": _jsonl_rows,
    ".ndjson": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
}


def _parquet_rows(path: Path, reading: Reading) -> Iterator[Row | BadLine]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise SourceError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    return _parquet_batches(path, reading, parquet.ParquetFile)


def _parquet_batches(path: Path, reading: Reading, file_of: Callable[[Path], Any]) -> Iterator[Row | BadLine]:
    try:
        with file_of(path) as file:
            columns = reading.columns(file.schema_arrow.names, str(path))
            yield from batch_rows(file.iter_batches(batch_size=CHUNK, columns=columns), columns, reading)
    except SourceError:
        raise
    except (ValueError, OSError) as error:  # what pyarrow raises is one or the other
        raise SourceError(f"{path}: cannot be read as Parquet: {error}") from error
