"""Rows of JSON: an object a line, a list of them, or one object that holds the list."""

import codecs
import io
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import IO, Any, AnyStr

from ragstone.fields.names import strongly
from ragstone.fields.values import queries_in
from ragstone.plain import is_list, is_mapping
from ragstone.sample import BadLine, name_list
from ragstone.sources.base import Rows, SourceError, refuse_results
from ragstone.sources.passages import rows_from
from ragstone.sources.reader import RowReader
from ragstone.sources.shapes import rows_of_columns
from ragstone.sources.tables import SPLIT
from ragstone.sources.trace_spans import holds_spans
from ragstone.sources.written import json_value, values_behind_each_other

_BLANK_LINES = 1_000_000


def lines_of(file: IO[AnyStr], largest: int) -> Iterator[AnyStr]:
    """Yield a file's lines; none is read that is longer than `largest`."""
    number = blank = 0
    while line := file.readline(largest + 1):
        number += 1
        blank = blank + 1 if line.isspace() else 0
        if len(line) > largest:
            raise SourceError(f"line {number:,} is longer than {largest:,} bytes; {SPLIT}")
        if blank > _BLANK_LINES:
            raise SourceError(f"line {number:,} is blank, as are the {_BLANK_LINES:,} before it; take them out")
        yield line


def json_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """Yield the rows of JSON objects, one a line, or of one list of them. Blank lines are skipped."""
    blank = codecs.BOM_UTF8 + b" \t\r\n"
    lines: Iterator[tuple[int, bytes]] = (
        (number, line.strip()) for number, line in enumerate(lines_of(file, reader.largest), 1) if line.strip(blank)
    )
    for number, line in lines:
        value = json_value(line)
        if is_mapping(value):
            refuse_results(value, name)
        lines = chain([(number, line)], lines)
        if holds_spans(value):
            yield from reader.trace_rows((n, json_value(each)) for n, each in lines)
            return
        # It may be the beginning of a list, or hold one.
        is_row = is_mapping(value) and reader.knows(_without_rows(value)) and _columns_in(value, name) is None
        if not is_row or queries_in(value) is not None:
            held = list(lines)
            text = b"\n".join(line for _, line in held)
            whole = json_value(text)
            # Programs write objects behind each other, each over several lines.
            whole = values_behind_each_other(text) if isinstance(whole, BadLine) else whole
            if holds_spans(whole):
                yield from reader.trace_rows(enumerate(whole if is_list(whole) else [whole], 1), whole=True)
                return
            if (asked := queries_in(whole)) is not None:
                whole = asked
            if is_mapping(whole):
                whole, reader = _rows_in(whole, reader, name)
            if is_list(whole):
                yield from rows_from(enumerate(whole, 1), reader)
                return
            lines = iter(held)
        break
    yield from rows_from(((number, json_value(line)) for number, line in lines), reader)


def _rows_in(value: Mapping[Any, object], reader: RowReader, name: str) -> tuple[object, RowReader]:
    """The rows that one object is or holds, and what reads them."""
    if (columns := _columns_in(value, name)) is not None:
        return columns[0], reader.with_fields(columns[1])
    return [value] if reader.knows(_without_rows(value)) else _list_in(value, name), reader


def _columns_in(value: Mapping[Any, object], name: str) -> tuple[list[object], Mapping[str, str]] | None:
    try:
        return rows_of_columns(value)
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from None


def _without_rows(value: Mapping[Any, object]) -> list[object]:
    """The names that may hold fields of a row: not a list of objects, which may be the rows, nor documents by name."""
    names = [name for name, each in value.items() if not _are_rows(each)]
    return [name for name in names if not (is_mapping(value[name]) and strongly(name) == ("retrieved_contexts",))]


def _are_rows(value: object) -> bool:
    if not is_list(value) or not value or not all(map(is_mapping, value)):
        return False
    # Loaded when first used.
    from ragstone.sources.turns import turns_in

    return turns_in(value) is None


def _list_in(value: Mapping[Any, object], name: str) -> object:
    """Return the one list of objects in an object; the object itself, as the only row, where there is none."""
    lists = {key: each for key, each in value.items() if _are_rows(each)}
    if len(lists) > 1:
        raise SourceError(
            f"{name}: is one object with lists under {name_list(list(lists))}; pass the one with the samples, "
            f"such as json.load(open(PATH))[{next(iter(lists))!r}]"
        )
    return next(iter(lists.values())) if lists else [value]
