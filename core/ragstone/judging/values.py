"""Plain JSON values from outside, with nothing taken for granted."""

from typing import cast


def as_dict(value: object) -> dict[str, object]:
    """Return `value` if it is a JSON object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return `value` if it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def as_count(value: object) -> int | None:
    """Return `value` if it is a number of tokens, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
