"""Values that a text writes: as JSON, or as Python writes its lists and mappings."""

import ast
import json
import re
from contextlib import suppress

from ragstone.sample import BadLine

# The syntax tree of a list that Python wrote is 50 times as large as its characters.
_LONGEST_LITERAL = 1_000_000
# What gave nothing is "null".
_JSON = re.compile(r'\s*[{["]|null$')


def written_value(text: str) -> object:
    """What a text holds as JSON or as Python writes it; a `BadLine` where it is neither."""
    value = json_value(text)
    if isinstance(value, BadLine):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            found = ast.literal_eval(text.strip()[:_LONGEST_LITERAL])
            # Texts that stand side by side, as numpy writes an array, would be one text to Python.
            if "".join(repr(found).split()) == "".join(text.split()):
                return found
    return value


def parsed(value: object, mime_type: object = None) -> object:
    """The value that a text writes, unless it is said to be plain; anything else as it is."""
    if not isinstance(value, str) or mime_type == "text/plain" or not _JSON.match(value):
        return value
    found = written_value(value)
    return value if isinstance(found, BadLine) else found


def json_value(text: str | bytes) -> object:
    """A text's JSON value; a `BadLine` where it has none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return BadLine(0, f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        # An integer may have too many digits, or brackets may stand in brackets.
        return BadLine(0, f"not JSON: {str(error)[:100]}")


def values_behind_each_other(text: bytes) -> object:
    """The list of the JSON values of a text that has several behind each other; a `BadLine` where it is none."""
    values: list[object] = []
    at, decoder = 0, json.JSONDecoder()
    try:
        rest = text.decode("utf-8-sig").strip()
        while at < len(rest):
            value, at = decoder.raw_decode(rest, at)
            values.append(value)
            at += len(rest[at : at + 1_000]) - len(rest[at : at + 1_000].lstrip())
    except (ValueError, RecursionError) as error:
        return BadLine(0, f"not JSON: {str(error)[:100]}")
    return values
