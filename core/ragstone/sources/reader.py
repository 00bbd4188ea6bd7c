"""One row becomes a sample, whatever its fields are called, or a bad line that says why."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from pydantic import ValidationError

from ragstone.errors import describe
from ragstone.fields.names import (
    FIELDS,
    ID_FIELDS,
    STRONGLY,
    WEAKLY,
    FieldName,
    bare,
    may_hold,
    meant_by,
    strongly,
)
from ragstone.fields.read import Found, Read, likely, read, under
from ragstone.plain import fields_of, is_list, is_mapping
from ragstone.sample import BadLine, FirstRow, Row, Sample, name_list, naming_of
from ragstone.sources.base import LARGEST, NAMING, Rows, SourceError, refuse_results
from ragstone.sources.cells import CELLS, LOGGED, field_value, python_value

SAMPLE_FIELDS = FIELDS
PRESETS: Mapping[str, Mapping[str, str]] = {
    "phoenix": {"user_input": "input", "retrieved_contexts": "reference", "response": "output"},
}
"""Fields of rows whose names mean something else than usual, by what they come from."""
# None of these alone is a sample.
_NO_SAMPLE = {"id", "history", "metadata", "reference", "reference_ids"}
# What a row that lacks them is asked for.
_ASKED_FOR: Sequence[FieldName] = ("user_input", "retrieved_contexts", "response", "reference", "reference_ids")

# These say of what they are the id, not that it should have been retrieved: they are only offered.
_OFFERED = ("chunk_id", "chunk_ids", "doc_id", "doc_ids", "document_id", "document_ids", "source", "sources")


class RowReader:
    """Makes a source's items rows of samples, whatever their fields are called; the arguments are `rows_of`'s."""

    def __init__(
        self,
        fields: Mapping[str, str] | str | None = None,
        naming: str = NAMING,
        largest: int = LARGEST,
        retriever_tools: Collection[str] = (),
        rows_by: str | None = None,
    ) -> None:
        named: object = PRESETS.get(fields, fields) if isinstance(fields, str) else fields or {}
        if not is_mapping(named):
            raise TypeError(
                f"fields: is {type(named).__name__}; pass a mapping such as {{'response': 'output'}}, or one of "
                f"{', '.join(PRESETS)}"
            )
        for field, name in named.items():
            if field not in SAMPLE_FIELDS:
                # Loaded where something is wrong.
                from ragstone.fields.problems import other_way_round

                way = other_way_round(named) or f"there are {', '.join(SAMPLE_FIELDS)}"
                raise ValueError(f"fields: {field!r} is no field of a sample; {way}")
            if not isinstance(name, str):
                raise TypeError(f"fields[{field!r}]: is {type(name).__name__}; name a column or key")
        self.said = cast("Mapping[FieldName, str]", named)
        self._others: Sequence[FieldName] = [field for field in FIELDS if field not in self.said]
        self.naming = naming
        self.largest, self.rows_by = largest, rows_by
        self.retriever_tools = retriever_tools
        # Those of a table that are not looked at.
        self._columns: Sequence[object] = ()
        self._has_first = False
        self.of_traces = False
        # Of a source of several parts, the one that is read.
        self.part = ""
        self._notes: list[str] = []

    def with_fields(self, fields: Mapping[str, str]) -> "RowReader":
        """The same reader, which reads further fields from names that the form of the source says hold them."""
        named = {**fields, **cast("Mapping[str, str]", self.said)}
        return RowReader(named, self.naming, self.largest, rows_by=self.rows_by)

    def note_passages(self, name: str) -> None:
        """Say once that rows which share a value may be passages of one answer."""
        if not self._notes:
            self._notes.append(f"each row is scored by itself; if rows are passages of one answer: {self.way_by(name)}")

    def way_by(self, name: str) -> str:
        """How the user says that rows which share a value are one."""
        option = self.naming.startswith("--")
        return f"--rows-by {shlex.quote(name)}" if option else f"evaluate(rows_of(..., rows_by={name!r}), ...)"

    def columns(self, names: Sequence[object], table: str, *, all_of_them: bool = False) -> list[str]:
        """The columns of a table that may hold fields of a sample; all of them where none may hold contexts.

        Args:
            names: The names of its columns.
            table: What it is called.
            all_of_them: Whether to look at all where none is known to hold contexts.

        Raises:
            SourceError: None does, or one that is named is not there.
        """
        refuse_results(names, table)
        # Loaded when a table comes.
        from ragstone.sources.shapes import columns_of, is_envelope, is_needed, numbered
        from ragstone.sources.trace_spans import holds_spans

        if holds_spans(dict.fromkeys(map(str, names), "")):
            self.of_traces = True
            return [*map(str, names)]
        there = f"the columns are {name_list(names)}"
        by = [("rows_by", self.rows_by)] if self.rows_by else []
        named: Sequence[tuple[str, str]] = [*self.said.items(), *by]
        for field, name in named:
            if not columns_of(name, names):
                raise SourceError(f"{table}: {field}: there is no column {name!r}; {there}")
        if not (self.knows(names) or any(map(is_envelope, names))):
            raise SourceError(f"{table}: no column holds a field of a sample; {there}: {self._ways(names)}")
        texts = [name for i, name in enumerate(names) if isinstance(name, str) and (name or not i)]
        said = [each for _, name in named for each in columns_of(name, names)] + [*numbered(tuple(names))]
        contexts = "retrieved_contexts" in self.said or any("retrieved_contexts" in _meanings(name) for name in texts)
        all_of_them = all_of_them and not (contexts or numbered(tuple(names)))
        columns = [name for name in texts if all_of_them or name in said or _meanings(name) or is_needed(name)]
        if twice := [name for name in columns if Counter(names)[name] > 1]:
            raise SourceError(f"{table}: the column {twice[0]!r} is there more than once; {there}")
        self._columns = [name for name in names if name not in columns]
        return columns

    def knows(self, names: Iterable[object]) -> bool:
        """Whether some of these are a sample's fields."""
        # Loaded when first used.
        from ragstone.sources.shapes import columns_of

        there = [*names]
        if any(columns_of(name, there) for field, name in self.said.items() if field not in _NO_SAMPLE):
            return True
        return any(_meanings(name) - _NO_SAMPLE for name in there if isinstance(name, str))

    def _ways(self, names: Iterable[object]) -> str:
        """The option that names a field's key, if exactly one name is near."""
        # Loaded when first used.
        from ragstone.adapters.guesses import meant_by_words
        from ragstone.sources.shapes import one_name

        meant: dict[str, list[str]] = {}
        for name in names:
            field = meant_by_words(name) if isinstance(name, str) else None
            if field is not None and may_hold(field, str(name)):
                meant.setdefault(field, []).append(str(name))
        one = {field: alone for field, found in meant.items() if (alone := one_name(found)) is not None}
        ways = [self._way(field, name) for field, name in one.items()]
        return f"perhaps {' '.join(ways)}" if ways else f"name them with {self._way()}"

    def _way(self, field: str = "FIELD", key: str = "KEY") -> str:
        return naming_of(self.naming, field, key)

    def trace_rows(self, items: Iterable[tuple[int, object]], *, whole: bool = False) -> Rows:
        """The rows of stored traces: see `TraceReader.rows`."""
        # Loaded when first used.
        from ragstone.sources.stored_traces import TraceReader

        self.of_traces = True

        return TraceReader(self.said, self.naming, self.retriever_tools).rows(items, whole=whole)

    def row(self, number: int, item: object, *, table: bool = False) -> Row | BadLine:
        """Return the row of one item.

        Args:
            number: Its place, from 1, which is its id where it has none; 0: it has none.
            item: A `Sample`, `Row` or `BadLine`, which stay as they are (a `BadLine` of no line gets this one); a
                mapping, or an object with fields.
            table: Whether it is of a table, where numbers may stand for ids.
        """
        if not is_mapping(item):
            if isinstance(item, BadLine):
                return replace(item, line=item.line or number)
            if isinstance(item, Row):
                return item
            if isinstance(item, Sample):
                return Row(number, item)
        try:
            values = item if is_mapping(item) else fields_of(item)
            if values is None:
                return BadLine(number, f"is {type(item).__name__}, not a Sample or a dict")
            reading = self._read(values)
            problems: dict[str, str] = {}
            sample = self._sample(number, reading, problems, table=table)
            first, self._has_first = None if self._has_first else self._says(reading, problems), True
            return Row(number, sample, first=first, problems=problems)
        except ValueError as error:
            return BadLine(number, str(error))
        except Exception as error:
            # A user's object may raise anything when it is looked into.
            return BadLine(number, describe(error, most=200))

    def _read(self, row: Mapping[Any, object]) -> Read:
        """Read a row: what the user said of it, and the other fields under their usual names."""
        if self.rows_by is None and not self.said and not _may_have_forms(tuple(row)):
            return self._with_turns(read(row, CELLS))
        # Loaded when first used.
        from ragstone.sources.shapes import starred, texts_under, with_columns, without_json

        row = without_json(row)
        taken = [each for name in self.said.values() for each in (name, *starred(name, row))]
        free = {name: value for name, value in row.items() if name not in taken}
        reading = with_columns(free, read(free, CELLS, self._others), self.rows_by, self._others)
        reading = self._with_turns(reading)
        found: dict[FieldName, Found] = {}
        for field, name in self.said.items():
            if several := starred(name, row):
                found[field] = texts_under(several, row)
                continue
            value = under(row, name, CELLS, missing=CELLS)
            if value is CELLS:
                raise ValueError(f"{field}: there is no key {name!r}; the row has {name_list(list(row))}")
            if (value := python_value(value)) is not None:
                found[field] = Found(CELLS.value(field, value), name, value)
                if found[field].value is None and field not in ID_FIELDS:
                    raise ValueError(f"{field}: {name!r} is {type(value).__name__}, not text")
        unread = {name: value for name, value in reading.unread.items() if name not in map(first_name, taken)}
        return replace(reading, found={**reading.found, **found}, unread=unread)

    def _with_turns(self, reading: Read) -> Read:
        """A reading with what is said around its question, where that is the last one of a conversation."""
        asked = reading.found.get("user_input")
        if asked is None or not is_list(asked.raw):
            return reading
        # Loaded when first used.
        from ragstone.sources.turns import around

        said = around(asked.raw)
        found = {field: Found(said[field], asked.name, said[field]) for field in said if field in self._others}
        return replace(reading, found={**found, **reading.found})

    def _sample(self, number: int, reading: Read, problems: dict[str, str], *, table: bool) -> Sample:
        """The sample of a row, and why it has no ids; `ValueError`: another field cannot be read."""
        for field, names in reading.conflicts.items():
            why = f"{name_list(names)} hold different texts; say which with {self._way(field)}"
            if field not in ID_FIELDS:
                raise ValueError(f"{field}: {why}")
            problems[field] = why
        values: dict[str, Any] = {"id": str(number)} if number else {}
        for field, found in reading.found.items():
            values[field] = _value(field, found, problems, table=table)
        filled = [name for name, value in reading.unread.items() if value is not None]
        if not values.keys() - _NO_SAMPLE and (number or filled):
            names = name_list([*reading.unread, *(each.name for each in reading.found.values())])
            raise ValueError(f"none of a sample's fields has a value; the row has {names}: {self._ways(filled)}")
        try:
            return Sample(**values)
        except ValidationError as error:
            # Loaded where something is wrong.
            from ragstone.fields.problems import first_problem

            raise ValueError(first_problem(error, {name: each.name for name, each in reading.found.items()})) from None

    def _says(self, reading: Read, problems: Mapping[str, str]) -> FirstRow:
        """What a source's first row says of where its fields stand."""
        # Loaded when first used.
        from ragstone.sources.shapes import is_index

        unread = dict.fromkeys(map(str, self._columns)) | {
            name: value for name, value in reading.unread.items() if not is_index(name, value)
        }
        may_be: dict[FieldName, str] = {}
        for field in _ASKED_FOR:
            near = [name for name in unread if _is_near(name, field)]
            meant = likely(reading, field) if not field.startswith("reference") else None
            meant = meant or (near[0] if len(near) == 1 else None)
            if field not in reading.found and meant is not None:
                may_be[field] = meant
        # An entry that may be two fields is neither.
        once: dict[FieldName, str] = {
            field: name for field, name in may_be.items() if [*may_be.values()].count(name) == 1
        }
        told: Mapping[FieldName, Found] = {
            field: each for field, each in reading.found.items() if field not in problems
        }
        return FirstRow(told, unread, once, self.naming, self.part, self._notes)


def _value(field: FieldName, found: Found, problems: dict[str, str], *, table: bool) -> object:
    """A field's value; None for ids that cannot be read, which few metrics need: the problem is noted."""
    try:
        return field_value(field, found, table=table)
    except ValueError as error:
        if field not in ID_FIELDS:
            raise
        problems[field] = str(error)
        return None


def _meanings(name: str) -> set[str]:
    return {*strongly(name), *WEAKLY.get(bare(name), ())}


def _is_near(name: str, field: FieldName) -> bool:
    """Whether an unread name is near to one of a field, or ends as those do."""
    meanings = _meanings(name)
    by_end = meanings == {field} and bare(name) not in STRONGLY and bare(name) not in WEAKLY
    is_offered = field == "reference_ids" and bare(name) in map(bare, _OFFERED)
    return by_end or is_offered or (not meanings and meant_by(name) == field)


def first_name(name: str) -> str:
    """The column that a name with dots begins with."""
    return name.partition(".")[0]


@lru_cache(maxsize=10_000)
def _may_have_forms(names: tuple[object, ...]) -> bool:
    """Whether some names end in a number, or are those under which loggers keep JSON."""
    return any(isinstance(name, str) and (bare(name)[-1:].isdigit() or bare(name) in LOGGED) for name in names)
