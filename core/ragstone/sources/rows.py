"""One row of a source as a sample, whatever its fields are called; and JSON lines."""

import codecs
import dataclasses
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, cast
from uuid import UUID

from pydantic import BaseModel, ValidationError

from ragstone.errors import describe
from ragstone.sample import BadLine, Row, Sample, first_problem

# Our own names (which are ragas'), then ragas' older ones, then DeepEval's. Not ragas' reference_contexts nor
# DeepEval's context: they hold what should have been retrieved, and a score of them says nothing of a retriever.
_KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "user_input": ("user_input", "question", "input"),
    "retrieved_contexts": ("retrieved_contexts", "contexts", "retrieval_context"),
    "response": ("response", "answer", "actual_output"),
    "id": ("id",),
}
SAMPLE_FIELDS = tuple(_KNOWN_NAMES)
NAMING = "fields={'response': KEY, ...}"
"""How a message says where a row's keys are named: in Python; the command line has its own word."""
_PYTHON_LIST = re.compile(r"\[\s*['\"].*['\"]\s*,?\s*\]", re.DOTALL)
_LISTED = 20
Form = Literal["object", "json", "table"]


class SourceError(ValueError):
    """A source that holds no samples, or cannot be read; the message says why and what to do."""


def read_rows(
    lines: Iterable[bytes], fields: Mapping[str, str] | None = None, *, naming: str = NAMING
) -> Iterator[Row | BadLine]:
    r"""Yield a `Row` per line of JSON, lazily; a `BadLine` where there is none. Blank lines are skipped.

    Args:
        lines: UTF-8 JSON objects, one a line.
        fields: The row's key by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's). A row without it is a bad line. One text named here
            for `retrieved_contexts` is taken as one context.
        naming: How the user writes such a mapping, for the message about a row in which no field is found.

    Example:
        >>> rows = read_rows([b'{"question": "Why?", "answer": "So."}\n', b"oops"])
        >>> next(rows).sample.user_input
        'Why?'
        >>> next(rows)
        BadLine(line=2, problem='not JSON: Expecting value at column 1')
    """
    return RowReader(fields, naming).json_rows(lines)


class RowReader:
    """Makes a source's items rows of samples.

    Args:
        fields: The row's key by the sample's field, as for `read_rows`.
        naming: How the user writes such a mapping.

    Raises:
        TypeError: `fields` is no mapping of texts.
        ValueError: It names no field of a sample.
    """

    def __init__(self, fields: Mapping[str, str] | None = None, naming: str = NAMING) -> None:
        mapping = cast("object", {} if fields is None else fields)
        if not isinstance(mapping, Mapping):
            raise TypeError(f"fields: is {type(mapping).__name__}; pass a mapping such as {{'response': 'output'}}")
        self._fields = dict(cast("Mapping[str, str]", mapping))
        self._naming = naming
        for field, name in self._fields.items():
            if field not in SAMPLE_FIELDS:
                raise ValueError(f"fields: {field!r} is no field of a sample; there are {', '.join(SAMPLE_FIELDS)}")
            if not isinstance(cast("object", name), str):
                raise TypeError(f"fields[{field!r}]: is {type(name).__name__}; name a column or key")
        self._names = {**_KNOWN_NAMES, **{field: (name,) for field, name in self._fields.items()}}

    def json_rows(self, lines: Iterable[bytes]) -> Iterator[Row | BadLine]:
        """Yield the rows of JSON lines."""
        for number, line in enumerate(lines, 1):
            if body := (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip():
                yield self.row(number, _parsed(body), "json")

    def columns(self, names: Sequence[object], table: str) -> list[str]:
        """Return which of a table's columns hold fields of a sample.

        Raises:
            SourceError: A column that `fields` names is not there, none holds a field, or one is there twice.
        """
        there = f"the columns are {_listed(names)}"
        for field, name in self._fields.items():
            if name not in names:
                raise SourceError(f"{table}: {field}: there is no column {name!r}; {there}")
        columns = [name for known in self._names.values() for name in known if name in names]
        if not set(columns).difference(self._names["id"]):
            way_out = "name them with fields={'response': COLUMN, ...}"
            raise SourceError(f"{table}: no column holds a field of a sample; {there}: {way_out}")
        if twice := [name for name in columns if Counter(names)[name] > 1]:
            raise SourceError(f"{table}: the column {twice[0]!r} is there more than once; {there}")
        return columns

    def row(self, number: int, item: object, form: Form = "object") -> Row | BadLine:
        """Return the row of one item.

        Args:
            number: Its place, from 1.
            item: A `Sample`, `Row` or `BadLine`, which stay as they are; a mapping, or an object with fields.
            form: Where it comes from. In "json" a NaN is not absent, but wrong. In a "table" a text for
                `retrieved_contexts` is a JSON list of contexts or one context.
        """
        if isinstance(item, (Row, BadLine)):
            return BadLine(number, item.problem) if isinstance(item, BadLine) and form == "json" else item
        if isinstance(item, Sample):
            return Row(number, item)
        try:
            values = _mapping(item)
            if values is None:
                wanted = "an object {...}" if form == "json" else "a Sample or a dict"
                return BadLine(number, f"is {type(item).__name__}, not {wanted}")
            return Row(number, self._sample(number, values, form))
        except ValidationError as error:
            return BadLine(number, first_problem(error))
        except ValueError as error:
            return BadLine(number, str(error))
        except Exception as error:  # a user's object may raise anything when it is looked into
            return BadLine(number, describe(error, most=200))

    def _sample(self, number: int, row: Mapping[object, object], form: Form) -> Sample:
        values: dict[str, Any] = {}
        for field, names in self._names.items():
            if field in self._fields and names[0] not in row:
                raise ValueError(f"{field}: there is no key {names[0]!r}; the row has {_listed(list(row))}")
            for name in names:
                value = row.get(name)
                if form != "json":
                    value = _plain(value)
                if value is not None:
                    values[field] = self._value(field, value, form)
                    break
        if not values.keys() - {"id"}:
            if form == "table":
                raise ValueError("every cell is empty that could hold a field of a sample")
            raise ValueError(
                f"none of a sample's fields; the row has {_listed(list(row))}: name them with {self._naming}"
            )
        values.setdefault("id", str(number))
        return Sample(**values)

    def _value(self, field: str, value: object, form: Form) -> object:
        if field == "id":
            return _id(value, form)
        if field == "retrieved_contexts" and isinstance(value, str):
            if form == "table":
                return _contexts(value)
            return [value] if field in self._fields else value
        return value


def _parsed(body: bytes) -> object:
    """Return a line's JSON value; a `BadLine` where it has none."""
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=distinct)
    except UnicodeDecodeError as error:
        guess = ": it looks like UTF-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""
        problem = f"not UTF-8 at byte {error.start + 1}{guess}"
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    except RecursionError:
        problem = "not usable JSON: nested too deeply"
    except ValueError as error:  # an integer of more digits than Python converts
        problem = f"not usable JSON: {str(error).partition(':')[0]}"
    return BadLine(0, problem)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any] | BadLine:
    """Return a JSON object, for `json.loads(..., object_pairs_hook=distinct)`; a `BadLine` for one with a key twice.

    Python's parser would take the last of the two.

    Example:
        >>> json.loads('{"answer": "Yes.", "answer": "No."}', object_pairs_hook=distinct)
        BadLine(line=0, problem="the key 'answer' stands twice in one object")
    """
    row = dict(pairs)
    if len(row) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return BadLine(0, f"the key {twice[:40]!r} stands twice in one object")
    return next((value for value in row.values() if isinstance(value, BadLine)), row)


def _listed(names: Sequence[object]) -> str:
    return ", ".join(repr(name)[:40] for name in names[:_LISTED]) or "(none)"


def _plain(value: object) -> Any:  # noqa: ANN401 - it may be anything, as in the user's row
    """Return a cell's value as Python's own; None where it is missing (NaN, NA, NaT)."""
    if value is None or isinstance(value, str):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(value, Real) and hasattr(value, "item"):  # of numpy
        value = cast("Any", value).item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _contexts(text: str) -> object:
    """Return the contexts that a cell of text holds: a JSON list of them, or itself as the only one."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):  # a list as Python writes it may be anything once it is text
            if _PYTHON_LIST.fullmatch(text.strip()):
                raise ValueError(
                    "retrieved_contexts: is a Python list that was written as text; write it as JSON (json.dumps)"
                ) from None
    return [text]


def _id(value: object, form: Form) -> object:
    if isinstance(value, float) and value.is_integer() and form == "table":
        return str(int(value))  # a column of whole numbers of which one is missing comes as floats
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return str(value) if number or isinstance(value, (UUID, date, Decimal)) else value


def _mapping(item: object) -> Mapping[object, object] | None:
    if isinstance(item, Mapping):
        return cast("Mapping[object, object]", item)
    if isinstance(item, BaseModel):  # such as a sample of ragas or a test case of DeepEval
        return {name: getattr(item, name) for name in type(item).model_fields}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    return None
