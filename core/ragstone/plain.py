"""Values of any kind, told apart and made plain: what JSON knows, and text that a line can hold."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date, time
from decimal import Decimal
from enum import Enum
from itertools import islice
from numbers import Integral, Real
from pathlib import PurePath
from typing import TypeGuard, TypeVar, cast
from unicodedata import category
from uuid import UUID

from pydantic import BaseModel

T = TypeVar("T")
# Python writes no integer of more than 4,300 decimal digits.
_DIGITS = 4_000
# Of Hangul and Braille: by category letters and a symbol, and yet empty.
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
# Invisible, but Persian, Indic scripts and emoji are wrong without them.
_JOINERS = "\u200c\u200d"


def is_visible(text: str) -> bool:
    r"""Whether a text shows something: a letter, a number, punctuation or a symbol.

    Example:
        >>> is_visible("?"), is_visible("\u0301\ufe0f \u200b")
        (True, False)
    """
    return any(category(letter)[0] in "LNPS" and letter not in _FILLERS for letter in text)


def printable(text: object, width: int = 500) -> str:
    r"""Return a text from outside as one line of a log or a terminal: cut to a width, with nothing that either obeys.

    White space becomes one space; control and invisible characters become their escapes.

    Example:
        >>> printable("a\n\x1b[31mb")
        'a \\x1b[31mb'
    """
    flat = " ".join(str(text)[: 4 * width].split())
    line = "".join([c if c.isprintable() or c in _JOINERS else c.encode("unicode_escape").decode() for c in flat])
    return line if len(line) <= width and len(str(text)) <= 4 * width else f"{line[: width - 1]}…"


def count(n: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "row"), count(2_000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def to_json(value: object) -> str:
    r"""Return any value as JSON in ASCII, NUL and lone surrogates as escapes. Never raises.

    NaN and the infinities become the texts "NaN", "Infinity" and "-Infinity", a key becomes a text, sets and tuples
    become lists, dates and paths their usual texts. What JSON does not know is named by its type, and so is what lies
    deeper than 50 levels, as in a value that holds itself.

    Example:
        >>> to_json({"text": "a\x00\ud83d", 7: float("nan"), "big": 2**70, "what": object()})
        '{"text": "a\\u0000\\ud83d", "7": "NaN", "big": 1180591620717411303424, "what": "<object>"}'
    """
    return json.dumps(to_plain(value), ensure_ascii=True, allow_nan=False)


def to_plain(
    value: object, other: Callable[[object], object] | None = None, depth: int = 50, left: list[int] | None = None
) -> object:
    """Return any value as what JSON knows: None, bool, int, finite float, str, list, dict.

    Args:
        value: The value.
        other: What stands for an object that is no number, text, date, path, enum or collection of them; it may hold
            such objects in its turn. By default a dataclass or a pydantic model gives its fields, and anything else
            its type; then nothing is ever raised.
        depth: How many levels are looked into.
        left: How many items of lists, sets and mappings may still be kept, as the only item of a list; None: all.

    Example:
        >>> from ragstone import Usage
        >>> to_plain((Usage(llm_calls=1).llm_calls, {1.5: {2}}))
        [1, {'1.5': [2]}]
    """
    kind = type(value)
    if value is None or kind in (str, bool):
        return value
    try:
        if isinstance(value, str):
            return str.__str__(value)
        if depth and is_list(value):
            items = _items_left(value, left)
            return [item if type(item) is str else to_plain(item, other, depth - 1, left) for item in items]
        if depth and is_mapping(value):
            pairs = _items_left(value.items(), left)
            return {
                key if type(key) is str else _name(key, depth, left): to_plain(item, other, depth - 1, left)
                for key, item in pairs
            }
        if isinstance(value, _SCALARS):
            return _scalar(value)
        # In one order, whatever the hashes of this process.
        if depth and is_set(value):
            items = _items_left(value, left)
            return sorted((to_plain(item, other, depth - 1, left) for item in items), key=json.dumps)
        if other is not None:
            return to_plain(other(value), other, max(depth - 1, 0), left)
        if depth and (fields := fields_of(value)) is not None:
            return to_plain(fields, None, depth - 1, left)
    except Exception:
        # An object of the app's may fail when it is looked into.
        if other is not None:
            raise
    return f"<{kind.__name__}>"


_SCALARS = (Real, Decimal, date, time, UUID, PurePath, Enum)


def _scalar(value: Real | Decimal | date | time | UUID | PurePath | Enum) -> object:
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, Integral):
        whole = int(value)
        return whole if whole.bit_length() < 3 * _DIGITS else hex(whole)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else json.dumps(number)
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _items_left(items: Iterable[T], left: list[int] | None) -> Iterable[T]:
    """The items that may still be kept."""
    if left is None:
        return items
    first = list(islice(items, left[0]))
    left[0] -= len(first)
    return first


def _name(key: object, depth: int, left: list[int] | None) -> str:
    plain = to_plain(key, None, depth, left)
    return plain if isinstance(plain, str) else json.dumps(plain)


def fields_of(value: object) -> dict[str, object] | None:
    """Return the fields of a pydantic model or a dataclass; None for anything else."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return None


def as_dict(value: object) -> dict[str, object]:
    """Return `value` if it is a JSON object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return `value` if it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether it is a mapping, of whatever it may be."""
    # The check for a dict is quicker.
    return isinstance(value, (dict, Mapping))


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it is a list or a tuple, of whatever it may be."""
    return isinstance(value, (list, tuple))


def is_set(value: object) -> TypeGuard[Set[object]]:
    """Whether it is a set, of whatever it may be."""
    return isinstance(value, Set)


def id_of(value: object) -> object:
    """An id as text: a whole number, also where a table has it as a float, is its digits; anything else stays.

    Example:
        >>> id_of(7), id_of(7.0), id_of("returns.md"), id_of(True)
        ('7', '7', 'returns.md', True)
    """
    is_whole = isinstance(value, (int, Integral)) and not isinstance(value, bool)
    return str(int(cast("int", value))) if is_whole or (isinstance(value, float) and value.is_integer()) else value


def as_count(value: object) -> int | None:
    """Return `value` if it is a number of tokens, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
