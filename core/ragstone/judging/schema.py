"""JSON Schemas of replies, from four pieces that every constrained decoder understands."""

from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}


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


def keyed(fields: dict[str, Schema]) -> Schema:
    """Return the schema of an object with exactly these keys: how one answer per item is demanded."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
