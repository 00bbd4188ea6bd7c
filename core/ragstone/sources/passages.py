"""Rows with one passage of an answer each: recognised, or joined by a value that they share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ragstone.fields.names import strongly
from ragstone.fields.read import read
from ragstone.plain import fields_of, is_mapping
from ragstone.sample import BadLine, name_list
from ragstone.sources.base import Rows, SourceError
from ragstone.sources.cells import CELLS, python_value
from ragstone.sources.reader import RowReader
from ragstone.sources.shapes import filled, id_of_question, is_passage, texts_under

_ONCE = ("user_input", "response", "reference")

Items = Iterable[tuple[int, object]]


def rows_from(items: Items, reader: RowReader, *, table: bool = False) -> Rows:
    """The rows of a source's items, each behind its number; where these are spans, those of stored traces.

    Raises:
        SourceError: Tools of traces are named, and there are none; rows are passages of one answer, or rows of one
            value do not stand together.
    """
    if reader.of_traces:
        return reader.trace_rows(items)
    if reader.retriever_tools:
        raise SourceError("retriever_tools: names tools of stored traces, and there are none here; leave it out")
    items = _together(items, reader.rows_by) if reader.rows_by else _apart(iter(items), reader)
    return (reader.row(number, item, table=table) for number, item in items)


def _together(items: Items, name: str) -> Items:
    """Items of which those that share a value are one, with their passages in order; they have to stand together.

    Raises:
        SourceError: A value comes again behind others.
    """
    seen: set[str] = set()
    for value, group in groupby(items, lambda each: python_value((_entries(each[1]) or {}).get(name))):
        if value is None:
            yield from ((number, _not_one(name, item)) for number, item in group)
            continue
        members = list(group)
        number = members[0][0]
        if str(value) in seen:
            raise SourceError(f"row {number}: {name} {value!r} comes again behind other rows; sort them by {name}")
        seen.add(str(value))
        yield number, _one_of([_entries(item) or {} for _, item in members])


def _not_one(name: str, item: object) -> BadLine:
    there = name_list(list(_entries(item) or ()))
    return item if isinstance(item, BadLine) else BadLine(0, f"has no {name}, by which rows are one; it has {there}")


def _one_of(rows: Sequence[Mapping[Any, object]]) -> Mapping[Any, object] | BadLine:
    """One row of several: of each name the value, or the list of those that differ; of passages all."""
    one: dict[Any, object] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        if is_passage(name):
            try:
                one[name] = texts_under([name], *rows).value
            except ValueError as error:
                return BadLine(0, str(error))
            continue
        different = {str(cell): cell for row in rows if (cell := filled(row, name)) is not None}
        one[name] = [*different.values()] if len(different) > 1 else next(iter(different.values()), None)
        if len(different) > 1 and {*strongly(name)} & {*_ONCE}:
            return BadLine(0, f"{name}: differs in rows that are to be one")
    return one


def _apart(items: Iterator[tuple[int, object]], reader: RowReader) -> Items:
    """The items, if they are not a passage each of one answer; where two in a row may be, the reader notes it.

    Raises:
        SourceError: Two rows share id and question, have different passages, and one answer. The message has the way.
    """
    if (first := next(items, None)) is None:
        return
    before = _entries(first[1]) or {}
    name = id_of_question(before)
    if not name:
        yield first
        yield from _after(dict(before), items, reader)
        return
    held, before = first, dict(before)
    for number, item in items:
        entries = _entries(item) or {}
        answers = _answers(name, before, entries)
        if "" in answers:
            raise SourceError(
                f"rows {held[0]} and {number} have one {name} and one question, two passages and one answer: each "
                f"row is a passage; to score the answer by all of them: {reader.way_by(name)}"
            )
        if answers:
            reader.note_passages(name)
        yield held
        held, before = (number, item), dict(entries)
    yield held


def _after(before: Mapping[Any, object], items: Iterator[tuple[int, object]], reader: RowReader) -> Items:
    """The items behind a row without an id, none of which waits for the next one."""
    name = next(filter(_is_question, before), "")
    if name and (second := next(items, None)) is not None:
        if _answers(name, before, _entries(second[1]) or {}):
            reader.note_passages(name)
        yield second
    yield from items


def _answers(name: str, one: Mapping[Any, object], other: Mapping[Any, object]) -> set[object]:
    """The answers of two rows that share a value and may be passages of one answer; none where they are not."""
    value = one.get(name)
    if not isinstance(value, str | int) or value != other.get(name):
        return set()
    ours, others = read(one, CELLS), read(other, CELLS)
    # Spreadsheets leave out what is the same as above.
    same = others.value("user_input") in (None, ours.value("user_input"))
    passages = [[row.get(each) for each in row if is_passage(each)] for row in (one, other)]
    # A list of contexts is what one answer had.
    lists = any(isinstance(python_value(each), list) for row in passages for each in row)
    if lists or not same or passages[0] == passages[1]:
        return set()
    answers: set[object] = {python_value(each.value("response")) or "" for each in (ours, others)}
    return answers if len(answers) == 1 + ("" in answers) and answers != {""} else set()


def _is_question(name: object) -> bool:
    return isinstance(name, str) and "user_input" in strongly(name)


def _entries(item: object) -> Mapping[Any, object] | None:
    return item if is_mapping(item) else None if isinstance(item, BadLine) else fields_of(item)
