"""Reading samples from JSON lines, whatever their fields are called."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from ragstone.sample import Sample

# Our own names first, then ragas' (new and old), then DeepEval's.
_KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "user_input": ("user_input", "question", "input"),
    "retrieved_contexts": ("retrieved_contexts", "contexts", "reference_contexts", "retrieval_context", "context"),
    "response": ("response", "answer", "actual_output"),
    "id": ("id",),
}
SAMPLE_FIELDS = tuple(_KNOWN_NAMES)


@dataclass(frozen=True, slots=True)
class Row:
    """A sample and the line it stood on, counted from 1."""

    line: int
    sample: Sample


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no sample, and why."""

    line: int
    problem: str


def read_rows(lines: Iterable[bytes], fields: Mapping[str, str] | None = None) -> Iterator[Row | BadLine]:
    r"""Yield a `Row` per line of JSON, lazily; a `BadLine` where there is none. Blank lines are skipped.

    Args:
        lines: UTF-8 JSON objects, one a line.
        fields: Where a sample's field is not found under one of its known names (ragstone's, ragas',
            DeepEval's): the row's key by the sample's field, such as {"user_input": "query"}. One text named
            here for `retrieved_contexts` is taken as one context.

    Example:
        >>> rows = read_rows([b'{"question": "Why?", "answer": "So."}\n', b"oops"])
        >>> next(rows).sample.user_input
        'Why?'
        >>> next(rows)
        BadLine(line=2, problem='not JSON: Expecting value at column 1')
    """
    for number, raw in enumerate(lines, 1):
        body = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if not body.strip():
            continue
        try:
            yield Row(number, to_sample(_object(body), fields or {}, default_id=str(number)))
        except _BadRow as bad:
            yield BadLine(number, str(bad))


class _BadRow(ValueError):  # noqa: N818 - becomes a BadLine
    """Why a row is no sample."""


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BadRow(f"not UTF-8: byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise _BadRow(f"not JSON: {error.msg} at column {error.colno}") from None
    except (RecursionError, ValueError) as error:
        raise _BadRow(f"not usable JSON: {str(error)[:80]}") from None
    if not isinstance(value, dict):
        raise _BadRow(f"a JSON {type(value).__name__}, not an object")
    return cast("Mapping[str, Any]", value)


def to_sample(row: Mapping[str, Any], fields: Mapping[str, str], default_id: str) -> Sample:
    """Return a row's sample, its fields found by `fields` or by their known names.

    Raises:
        ValueError: A mapped key is not there, or a value is not of its field's type.
    """
    found: dict[str, Any] = {}
    for field, names in _KNOWN_NAMES.items():
        if (mapped := fields.get(field)) is not None:
            if mapped not in row:
                raise _BadRow(f"{field}: no key {mapped!r} (--field {field}={mapped}); the row has {_keys(row)}")
            value = row[mapped]
            found[field] = [value] if field == "retrieved_contexts" and isinstance(value, str) else value
        elif (name := next((name for name in names if name in row), None)) is not None:
            found[field] = row[name]
    if isinstance(found.get("id"), (int, float)):
        found["id"] = str(found["id"])
    if found.get("id") is None:
        found["id"] = default_id
    try:
        return Sample(**found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _BadRow(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None


def _keys(row: Mapping[str, Any]) -> str:
    keys = ", ".join(repr(key) for key in list(row)[:12])
    return keys or "no keys"
