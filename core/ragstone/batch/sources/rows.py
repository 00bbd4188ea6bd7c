"""Reading samples from JSON lines, whatever their fields are called."""

import codecs
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from ragstone.sample import BadLine, Row, Sample, first_problem

# Our own names (which are ragas'), then ragas' older ones, then DeepEval's. Not ragas' reference_contexts nor
# DeepEval's context: they hold what should have been retrieved, and a score of them says nothing of a retriever.
KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "user_input": ("user_input", "question", "input"),
    "retrieved_contexts": ("retrieved_contexts", "contexts", "retrieval_context"),
    "response": ("response", "answer", "actual_output"),
    "id": ("id",),
}
SAMPLE_FIELDS = tuple(KNOWN_NAMES)
NAMING = "fields={'response': KEY, ...}"
"""How a message says where a row's keys are named: in Python; the command line has its own word."""
_JSON_KINDS: Mapping[type, str] = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}


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
    for number, raw in enumerate(lines, 1):
        body = (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).rstrip()
        if not body:
            continue
        try:
            yield Row(number, to_sample(_object(body), fields or {}, default_id=str(number), naming=naming))
        except _BadRow as bad:
            yield BadLine(number, str(bad))


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """What stands for a JSON object that has a key twice, of which Python's parser would take the last unseen."""

    key: str

    @property
    def problem(self) -> str:
        """What is wrong, in words."""
        return f"the key {self.key[:40]!r} stands twice in one object"


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any] | RepeatedKey:
    """Return a JSON object for `json.loads(..., object_pairs_hook=distinct)`: a `RepeatedKey` for one without sense.

    Example:
        >>> json.loads('{"answer": "Yes.", "answer": "No."}', object_pairs_hook=distinct)
        RepeatedKey(key='answer')
    """
    row = dict(pairs)
    if len(row) != len(pairs):
        return RepeatedKey(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return next((value for value in row.values() if isinstance(value, RepeatedKey)), row)


class _BadRow(ValueError):  # noqa: N818 - becomes a BadLine
    """Why a row is no sample."""


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=distinct)
    except UnicodeDecodeError as error:
        guess = ": it looks like UTF-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""
        raise _BadRow(f"not UTF-8 at byte {error.start + 1}{guess}") from None
    except json.JSONDecodeError as error:
        raise _BadRow(f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}") from None
    except RecursionError:
        raise _BadRow("not usable JSON: nested too deeply") from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise _BadRow(f"not usable JSON: {str(error).partition(':')[0]}") from None
    if isinstance(value, RepeatedKey):
        raise _BadRow(value.problem)
    if not isinstance(value, dict):
        kind = _JSON_KINDS.get(type(cast("object", value)), "a number")
        raise _BadRow(f"is {kind}, not an object: each line is one sample, {{...}}")
    return cast("Mapping[str, Any]", value)


def to_sample(row: Mapping[str, Any], fields: Mapping[str, str], default_id: str, naming: str = NAMING) -> Sample:
    """Return a row's sample, its fields found by `fields` or by their known names; null is as good as absent.

    Raises:
        ValueError: A mapped key is not there, no field is, or a value is not of its field's type.
    """
    found: dict[str, Any] = {}
    for field, names in KNOWN_NAMES.items():
        if (mapped := fields.get(field)) is not None:
            if mapped not in row:
                raise _BadRow(f"{field}: there is no key {mapped!r}; the row has {_keys(row)}")
            value = row[mapped]
            found[field] = [value] if field == "retrieved_contexts" and isinstance(value, str) else value
        else:
            found[field] = next((row[name] for name in names if row.get(name) is not None), None)
    found = {field: value for field, value in found.items() if value is not None}
    if not found.keys() - {"id"}:
        raise _BadRow(f"none of a sample's fields; the row has {_keys(row)}: name them with {naming}")
    found["id"] = _id(found.get("id", default_id))
    try:
        return Sample(**found)
    except ValidationError as error:
        raise _BadRow(first_problem(error)) from None


def _id(value: object) -> object:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return str(value) if number else value


def _keys(row: Mapping[str, Any]) -> str:
    keys = ", ".join(repr(key[:40]) for key in list(row)[:12])
    return keys or "no keys"
