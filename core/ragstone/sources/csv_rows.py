"""Rows of CSV and TSV, as programs and spreadsheets write them."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from ragstone.sample import BadLine
from ragstone.sources.base import Rows
from ragstone.sources.json_rows import lines_of
from ragstone.sources.passages import rows_from
from ragstone.sources.reader import RowReader
from ragstone.sources.written import json_value

# These begin what spreadsheets save as "Unicode text".
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def csv_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """Yield the rows behind a line of names; the mark between cells is found by it."""
    wide = file.peek(2)[:2] in WIDE
    encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
    with io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="") as text:
        lines = lines_of(text, reader.largest)
        passed, first = next(((i, line) for i, line in enumerate(lines) if line.strip()), (0, ""))
        if not first:
            return
        # Spreadsheets write this line.
        if said := re.fullmatch(r"(?i)sep=(.)\s*", first):
            passed, first = passed + 1, next(lines, "")
        known = (mark for mark in ",;\t" if reader.knows(_column_names(first, mark)))
        mark = said[1] if said else next(known, "\t" if "\t" in first else ",")
        # This is of the whole process. The usual 131,072 characters are too few for a context.
        csv.field_size_limit(reader.largest // 2)
        # Unless it is strict, an open quote swallows the rest.
        records = csv.reader(chain([first], lines), delimiter=mark, strict=True)
        names = [cell.strip() for cell in next(records)]
        columns = reader.columns(names, name, all_of_them=True)
        positions = {column: names.index(column) for column in columns}
        yield from rows_from(enumerate(_csv_items(records, positions, len(names), passed), 1), reader, table=True)


def _column_names(line: str, mark: str) -> list[str]:
    return [cell.strip() for record in csv.reader([line], delimiter=mark) for cell in record]


def _csv_items(records: Any, positions: Mapping[str, int], width: int, passed: int) -> Iterator[object]:  # noqa: ANN401
    """Yield the records of a `csv.reader` behind the line of names; a bad one says where in the file it ends."""
    while True:
        try:
            cells: list[str] = next(records)
            "".join(cells).encode()
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"is not CSV: {error}"
        except UnicodeEncodeError:
            problem = "is not UTF-8; save the file as UTF-8"
        else:
            if len(cells) == width:
                yield _without_json_quotes({name: cells[i] or None for name, i in positions.items()})
                continue
            if not cells:
                continue
            problem = f"has {len(cells)} cells, and there are {width} columns"
        yield BadLine(0, f"{problem} (it ends on line {passed + records.line_num} of the file)")


def _without_json_quotes(row: dict[str, str | None]) -> dict[str, str | None]:
    """A row of texts without JSON's quotes, as TruLens and Langfuse write them around each; not around one."""
    quoted = {name: json_value(cell) for name, cell in row.items() if cell and cell[0] == cell[-1] == '"'}
    texts = {name: text or None for name, text in quoted.items() if isinstance(text, str)}
    return row | texts if len(texts) > 1 else row
