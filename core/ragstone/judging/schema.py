"""A reply's schema: it is sent to the judge, it checks the reply strictly, and it writes the example in the prompt."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}

_TYPES: Mapping[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
_SPOKEN = {"object": "a JSON object", "array": "a list", "string": "text", "integer": "an integer", "boolean": "a flag"}
_MOST_NAMED = 10
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_MAYBE_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


class BadReply(ValueError):  # noqa: N818 - named for what it is about, as CannotScore is
    """The judge's reply cannot be used; the message says what was wrong, in words for the judge."""


def one_of(values: Iterable[str]) -> Schema:
    """Return the schema of one of the given words."""
    return {"type": "string", "enum": list(values)}


def whole(least: int, most: int) -> Schema:
    """Return the schema of an integer within bounds, both included."""
    return {"type": "integer", "minimum": least, "maximum": most}


def listing(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """Return the schema of a list of `least` to `most` items (no upper bound when None)."""
    bounds: Schema = {"minItems": least} if most is None else {"minItems": least, "maxItems": most}
    return {"type": "array", "items": items, **bounds}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields."""
    return keyed(fields)


def keyed(fields: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with exactly these keys: how one answer per item is demanded."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def bare_json(schema: Schema, names: Mapping[str, str] | None = None) -> str:
    """Return the sentence that asks for a reply of a schema, by its example.

    Args:
        schema: Of the reply.
        names: What stands for the texts under a key, by key; "TEXT" (of an enum "WORD") where it is not named.

    Example:
        >>> bare_json(record(questions=listing(TEXT, 3, 3)), {"questions": "QUESTION"})
        'Reply with bare JSON: {"questions": [QUESTION]}, 3 in the list.'
        >>> bare_json(record(answers=keyed({"1": one_of(("yes", "no"))})))
        'Reply with bare JSON: {"answers": {NUMBER: WORD}}.'
    """
    fields: Mapping[str, Schema] = schema["properties"]
    inside = next(iter(fields.values()))
    size = inside.get("maxItems")
    count = f", {size} in the list" if size is not None and size == inside["minItems"] else ""
    return f"Reply with bare JSON: {_example(schema, names or {}, None)}{count}."


def _example(schema: Schema, names: Mapping[str, str], name: str | None) -> str:
    kind = schema["type"]
    if kind == "object":
        fields: Mapping[str, Schema] = schema["properties"]
        first = next(iter(fields))
        if first.isdigit():
            return f"{{NUMBER: {_example(fields[first], names, name)}}}"
        parts = (f'"{key}": {_example(field, names, names.get(key, name))}' for key, field in fields.items())
        return f"{{{', '.join(parts)}}}"
    if kind == "array":
        return f"[{_example(schema['items'], names, name)}]"
    if kind == "string":
        return name or ("WORD" if "enum" in schema else "TEXT")
    return "true or false" if kind == "boolean" else "NUMBER"


def parse(text: str, schema: Schema) -> Any:  # noqa: ANN401 - a JSON value; the schema says of what type
    """Return the one JSON value that `text` is, which is of the schema in every part.

    Raises:
        BadReply: It is not one JSON value, or not of the schema: exact types, no other keys, and no key missing.

    Example:
        >>> parse('{"ids": [1, 2]}', record(ids=listing(whole(1, 2))))
        {'ids': [1, 2]}
        >>> parse('{"ids": [3]}', record(ids=listing(whole(1, 2))))
        Traceback (most recent call last):
        ragstone.judging.schema.BadReply: ids.0: 3 is not from 1 to 2
    """
    value = parse_json(text)
    if problem := _problem(value, schema):
        raise BadReply(f"{problem[0] or 'the whole'}: {problem[1]}")
    return value


def _problem(value: Any, schema: Schema) -> tuple[str, str] | None:  # noqa: ANN401 - a JSON value
    """Return where a value is not of its schema, and why."""
    kind: str = schema["type"]
    if type(value) is not _TYPES[kind]:  # exactly: True is no integer
        return "", f"is not {_SPOKEN[kind]}"
    if kind == "object":
        fields: Mapping[str, Schema] = schema["properties"]
        if value.keys() != fields.keys():
            return "", _wrong_keys(value, fields)
        inside: Iterable[tuple[str, Any, Schema]] = ((key, value[key], field) for key, field in fields.items())
    elif kind == "array":
        least: int = schema["minItems"]
        exact = schema.get("maxItems") == least  # other upper bounds stop constrained judges that do not end a list
        if len(value) < least or (exact and len(value) > least):
            return "", f"{len(value)} in the list where {'' if exact else 'at least '}{least} were asked for"
        inside = ((str(i), item, schema["items"]) for i, item in enumerate(value))
    elif kind == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return None if low <= value <= high else ("", f"{str(value)[:20]} is not from {low} to {high}")
    elif "enum" in schema and value not in schema["enum"]:
        return "", f"is not one of {', '.join(schema['enum'])}"
    else:
        return None
    for key, part, field in inside:
        if problem := _problem(part, field):
            path, why = problem
            return f"{key[:40]}.{path}" if path else key[:40], why
    return None


def _wrong_keys(value: Iterable[str], fields: Iterable[str]) -> str:
    """Say which keys are missing or unknown; keys that are numbers in the order of numbers."""
    has, wants = set(value), set(fields)
    for what, keys in (("missing", wants - has), ("unknown", has - wants)):
        if keys:
            named = sorted(keys, key=lambda key: (len(key), key))[:_MOST_NAMED]
            return f"{what}: {', '.join(key[:20] for key in named)}"
    raise AssertionError("the keys are the same")


def distinct(items: Sequence[str], what: str) -> tuple[str, ...]:
    """Return texts of a reply, each once and without space around it: what is said twice would count twice.

    Raises:
        BadReply: One is blank.

    Example:
        >>> distinct(["A?", "A? "], "question")
        ('A?',)
    """
    bare = [item.strip() for item in items]
    if not all(bare):
        raise BadReply(f"a {what} is blank")
    return tuple(dict.fromkeys(bare))


def parse_json(text: str) -> Any:  # noqa: ANN401 - a JSON value has no narrower type before it is checked
    """Return the one JSON value that `text` is.

    Half characters (lone surrogates, which no encoding can carry) in it become U+FFFD.

    Raises:
        BadReply: It is empty, is not JSON, holds more than one value or anything around it, repeats a key in
            an object, or holds NaN, Infinity or a number that no float holds.

    Example:
        >>> parse_json('{"ids": [1]}')
        {'ids': [1]}
        >>> parse_json('{"ids": [1]} {"ids": [2]}')
        Traceback (most recent call last):
        ragstone.judging.schema.BadReply: there is more than one value, or text after the JSON
    """
    if not text.strip():
        raise BadReply("it was empty")
    try:
        value = _loads(text)
        if _MAYBE_HALF.search(text):
            value = _loads(_HALF_CHARACTER.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
        return value
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise BadReply("there is more than one value, or text after the JSON") from None
        raise BadReply(f"it is not bare JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise BadReply("it is nested too deeply") from None
    except BadReply:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise BadReply(f"it is not usable JSON ({str(error)[:80]})") from None


def _loads(text: str) -> Any:  # noqa: ANN401 - as parse_json
    return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise BadReply(f"the key {twice[:40]!r} stands twice in one object")
    return value


def _no_constant(name: str) -> float:
    raise BadReply(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadReply(f"the number {digits[:20]} is too large")
    return value
