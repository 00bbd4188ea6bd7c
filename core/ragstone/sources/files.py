"""Rows of a file of whatever kind; its content says which it is."""

import codecs
import gzip
import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from ragstone.plain import count
from ragstone.sample import BadLine, Row
from ragstone.sources.base import Rows, SourceError
from ragstone.sources.csv_rows import WIDE, csv_rows
from ragstone.sources.excel import excel_rows
from ragstone.sources.json_rows import json_rows
from ragstone.sources.reader import RowReader
from ragstone.sources.tables import arrow_rows, folder_rows, parquet_rows

# Where so many rows of a file are no samples, it is something else.
_LOOKED_AT = 20


def file_rows(path: str, reader: RowReader) -> Rows:
    """Yield the rows of a file, in constant memory (one that is a JSON list is read whole)."""
    name = "standard input" if path == "-" else path
    with _as_source_errors(name):
        rows = folder_rows(Path(path), reader) if os.path.isdir(path) else _opened_rows(path, reader, name)  # noqa: PTH112
        bad: list[BadLine] = []
        for row in rows:
            if isinstance(row, Row):
                yield from bad
                yield row
                yield from rows
                return
            bad.append(row)
            # An app's traces may begin with any number of other calls.
            if len(bad) == _LOOKED_AT and not reader.of_traces:
                break
        if not bad:
            raise SourceError(f"{name}: is empty: it holds no rows")
        raise SourceError(
            f"{name}: no sample in its first {count(len(bad), 'row')}; line {bad[0].line}: {bad[0].problem}"
        )


def _opened_rows(path: str, reader: RowReader, name: str) -> Rows:
    with _open_bytes(path) as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        body = cast("io.BufferedReader", gzip.GzipFile(fileobj=file)) if packed else file
        # These are read from their end.
        if not file.seekable() and body.peek(6).startswith((b"PAR1", b"ARROW1", b"PK")):
            body = cast("io.BufferedReader", io.BufferedReader(io.BytesIO(body.read())))
        yield from _rows_in(body, reader, name)


def _open_bytes(path: str) -> io.BufferedReader:
    if path != "-":
        return Path(path).open("rb")
    # A thread that waits in sys.stdin for a line would abort the interpreter's exit.
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):
        # It is no file, as in tests.
        return io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))


@contextmanager
def _as_source_errors(name: str) -> Generator[None, None, None]:
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        # Of damaged files pyarrow raises many kinds of errors.
        why = str(getattr(error, "strerror", None) or error) or type(error).__name__
        raise SourceError(f"{name}: cannot be read: {why}") from error


def _rows_in(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """The rows of a file of whatever kind; its content says which it is, and of damaged JSON its name."""
    start = file.peek(200)[:200]
    if start.startswith(b"PAR1"):
        return parquet_rows(file, reader, name)
    # A file begins with the one, a stream, as Hugging Face writes it, with the other.
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return arrow_rows([file], reader, name)
    if start.startswith(b"PK\x03\x04"):
        return excel_rows(file, reader, name)
    is_json = Path(name.lower().removesuffix(".gz")).suffix in (".json", ".jsonl", ".ndjson")
    if is_json or start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return json_rows(file, reader, name)
    if b"\0" in start and start[:2] not in WIDE:
        raise SourceError(f"{name}: is neither JSON, CSV, Parquet, Arrow nor .xlsx (not .xls); save a table as CSV")
    return csv_rows(file, reader, name)
