"""Where the fields of a file stand: the table that a person sees before anything is scored."""

import shutil
from collections.abc import Iterator
from itertools import chain

from ragstone.adapters.field_table import FieldLine, beginning, field_lines, field_table
from ragstone.adapters.guesses import Candidate, candidates, guess
from ragstone.cli.output import echo
from ragstone.fields.names import ID_FIELDS, STRONGLY, FieldName, bare, may_hold
from ragstone.fields.read import PLAIN, Found
from ragstone.plain import printable
from ragstone.sample import BadLine, FirstRow, Row, SampleField
from ragstone.sources.base import Rows

_WANTED: tuple[SampleField, ...] = ("user_input", "retrieved_contexts", "response")
_FURTHER: tuple[FieldName, ...] = ("reference", *ID_FIELDS, "history", "id", "metadata")
_WIDEST = 160


def with_fields_said(name: str, rows: Rows) -> Rows:
    """The rows, after the table of the fields of the first one was printed on standard error."""
    held: list[Row | BadLine] = []
    for row in rows:
        held.append(row)
        if isinstance(row, Row):
            if row.first is not None:
                width = min(_WIDEST, shutil.get_terminal_size((120, 24)).columns)
                echo("\n".join(_said_of_row(name, row, row.first, width)), err=True, needed=False)
            break
    return chain(held, rows)


def _said_of_row(name: str, row: Row, first: FirstRow, width: int) -> Iterator[str]:
    """Yield the lines of a row's table, and the options to paste for missing fields."""
    meant = {field: _candidates(field, first) for field in _WANTED if field not in first.found}
    name = f"{name}, {first.part}" if first.part else name
    yield printable(f"{name}: the fields by row {row.line}")
    lines = list(chain.from_iterable(_lines(field, row, first, meant.get(field, [])) for field in _WANTED))
    lines += chain.from_iterable(_lines(field, row, first, []) for field in _FURTHER if field in first.found)
    lines += [(field, "", "not read", why) for field, why in row.problems.items()]
    names = {each.name for found in meant.values() for each in found}
    yield from field_table(lines, [name for name in first.unread if name not in names], width)
    guesses = {field: guess(found) for field, found in meant.items()}
    ways = [first.way(field, each.name) for field, each in guesses.items() if each is not None]
    if ways:
        yield f"If what stands behind ? is right: {' '.join(ways)}"
    for field, found in meant.items():
        if found and guesses[field] is None:
            yield f"If one of them holds {field}: {first.way(field, 'NAME')}"


def _lines(field: FieldName, row: Row, first: FirstRow, meant: list[Candidate]) -> Iterator[FieldLine]:
    found = first.found.get(field)
    if field == "history" and found is not None:
        yield field, "<-", found.name, beginning([turn.content for turn in row.sample.history], "turn")
        return
    value = getattr(row.sample, field)
    yield from field_lines(field, None if found is None else _source(field, found, value), value, meant)


def _source(field: FieldName, found: Found, value: object) -> str:
    """The name of a field, and the form of contexts."""
    if field != "retrieved_contexts" or not isinstance(found.raw, str):
        return found.name
    return f"{found.name}, {'one text' if value == (found.raw,) else 'a list'} in each cell"


def _candidates(field: SampleField, first: FirstRow) -> list[Candidate]:
    """What can be meant by a missing field, of the names that say nothing."""
    unread = {name: each for name, each in first.unread.items() if may_hold(field, name) and bare(name) not in STRONGLY}
    known = [found.value for found in first.found.values()]
    return candidates(field, unread, PLAIN, known)
