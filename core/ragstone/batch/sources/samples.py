"""One thing that a source of samples yields, as a `Row`; or as a `BadLine`, where it is none."""

import dataclasses
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel

from ragstone.batch.sources.rows import KNOWN_NAMES, NAMING, SAMPLE_FIELDS, to_sample
from ragstone.errors import describe
from ragstone.sample import BadLine, Row, Sample

_PYTHON_LIST = re.compile(r"\[\s*['\"].*['\"]\s*,?\s*\]", re.DOTALL)


class SourceError(ValueError):
    """A source that holds no samples, or cannot be read; the message says why and what to do."""


class Reading:
    """How a source's rows become samples.

    Args:
        fields: The row's key by the sample's field, as for `ragstone.batch.read_rows`.

    Raises:
        TypeError: `fields` is no mapping of texts.
        ValueError: It names no field of a sample.
    """

    def __init__(self, fields: Mapping[str, str] | None) -> None:
        given = cast("object", {} if fields is None else fields)
        if not isinstance(given, Mapping):
            raise TypeError(f"fields: is {type(given).__name__}; pass a mapping such as {{'response': 'output'}}")
        self.fields = dict(cast("Mapping[str, str]", given))
        for field, name in self.fields.items():
            if field not in SAMPLE_FIELDS:
                raise ValueError(f"fields: {field!r} is no field of a sample; there are {', '.join(SAMPLE_FIELDS)}")
            if not isinstance(cast("object", name), str):
                raise TypeError(f"fields[{field!r}]: is {type(name).__name__}; name a column or key")
        self._names = {
            field: (self.fields[field],) if field in self.fields else KNOWN_NAMES[field] for field in KNOWN_NAMES
        }

    def columns(self, there: Sequence[object], what: str) -> list[str]:
        """Return which of a table's columns hold fields of a sample.

        Raises:
            SourceError: A column that `fields` names is not there, none holds a field, or one is there twice.
        """
        listed = _listed(there)
        for field, name in self.fields.items():
            if name not in there:
                raise SourceError(f"{what}: {field}: there is no column {name!r}; the columns are {listed}")
        found = [name for names in self._names.values() for name in names if name in there]
        if not set(found).difference(self._names["id"]):
            raise SourceError(
                f"{what}: no column holds a field of a sample; the columns are {listed}: name them with "
                "fields={'response': COLUMN, ...}"
            )
        if twice := [name for name in found if Counter(there)[name] > 1]:
            raise SourceError(f"{what}: the column {twice[0]!r} is there more than once; the columns are {listed}")
        return found

    def row(self, number: int, item: object, *, table: bool = False) -> Row | BadLine:
        """Return the row of what stands at a place, counted from 1.

        Args:
            number: The place.
            item: A `Sample`, `Row` or `BadLine`, which stay as they are; a mapping, or an object with fields.
            table: Whether it is a table's row: a text for `retrieved_contexts` is then a JSON list or one context.
        """
        if isinstance(item, (Row, BadLine)):
            return item
        if isinstance(item, Sample):
            return Row(number, item)
        try:
            values = _mapping(item)
            if values is None:
                return BadLine(number, f"is {type(item).__name__}, not a Sample or a dict")
            return Row(number, to_sample(self._clean(values, table=table), self.fields, default_id=str(number)))
        except Exception as error:  # a user's object may raise anything when it is looked into
            told = isinstance(error, ValueError)
            return BadLine(number, str(error) if told else describe(error, most=200))

    def _clean(self, values: Mapping[object, object], *, table: bool) -> dict[str, object]:
        row = {name: value for name, value in values.items() if isinstance(name, str)}
        empty = True
        for field, names in self._names.items():
            for name in names:
                if name in row:
                    value = row[name] = self._value(field, row[name], table=table)
                    empty = empty and (value is None or field == "id")
                elif field in self.fields:
                    raise ValueError(f"{field}: there is no key {name!r}; the row has {_listed(list(row))}")
        if empty and table:
            raise ValueError("every cell is empty that could hold a field of a sample")
        if empty:
            raise ValueError(f"none of a sample's fields; the row has {_listed(list(row))}: name them with {NAMING}")
        return row

    @staticmethod
    def _value(field: str, cell: object, *, table: bool) -> object:
        value = plain(cell)
        if field == "id":
            return _id(value, table=table)
        return contexts(value) if field == "retrieved_contexts" and table and isinstance(value, str) else value


def _listed(names: Sequence[object]) -> str:
    return ", ".join(repr(name)[:40] for name in names[:40]) or "none"


def plain(value: object) -> Any:  # noqa: ANN401 - it may be anything, as in the user's row
    """Return a cell's value as Python's own, and None where it is missing (NaN, NA, NaT).

    Example:
        >>> plain(float("nan")) is None, plain("nan")
        (True, 'nan')
    """
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(value, Real) and hasattr(value, "item"):  # of numpy
        value = cast("Any", value).item()
    return None if isinstance(value, float) and math.isnan(value) else value


def contexts(text: str) -> list[str]:
    """Return the contexts that a cell of text holds: a JSON list of them, or itself as the only one.

    Raises:
        ValueError: It is a list as Python writes it, which may be anything once it is text.

    Example:
        >>> contexts('["One.", "Two."]'), contexts("[1] One, two.")
        (['One.', 'Two.'], ['[1] One, two.'])
    """
    if text.lstrip().startswith("["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            if _PYTHON_LIST.fullmatch(text.strip()):
                raise ValueError(
                    "retrieved_contexts: is a Python list that was written as text; write it as JSON (json.dumps)"
                ) from None
        else:
            return cast("list[str]", value)
    return [text]


def _id(value: object, *, table: bool) -> object:
    if isinstance(value, float) and value.is_integer() and table:
        return str(int(value))  # a column of whole numbers of which one is missing comes as floats
    return str(value) if isinstance(value, (UUID, date, Decimal)) else value


def _mapping(item: object) -> Mapping[object, object] | None:
    if isinstance(item, Mapping):
        return cast("Mapping[object, object]", item)
    if isinstance(item, BaseModel):  # such as a sample of ragas or a test case of DeepEval
        return {name: getattr(item, name) for name in type(item).model_fields}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    return None
