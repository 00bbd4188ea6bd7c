r"""Values that every store takes: what one of them would refuse or lose is written another way, once for all stores.

PostgreSQL takes no NUL in a text and no store takes half a surrogate pair; databases have no integers beyond 64 bits
and treat NaN each in its own way; JSON has no NaN at all.
"""

import math
import re
from hashlib import blake2b

# The most characters of a text that is part of a key: PostgreSQL's index holds some 2,700 bytes for all parts.
KEY_LENGTH = 200

_REFUSED = re.compile("[\x00\ud800-\udfff]|\\\\(?=u(?:0000|005c|d[89a-f][0-9a-f]{2}))")
_ESCAPED = re.compile(r"\\u(0000|005c|d[89a-f][0-9a-f]{2})")
_LARGEST_INTEGER = 2**63 - 1
_LARGEST_REAL = 1.7976931348623157e308


def clean_text(text: str) -> str:
    r"""Return the text with NUL and lone surrogates written as `\uXXXX`. Two texts never become the same one.

    Example:
        >>> clean_text("C:\\temp, \U0001f44d, \x00"), clean_text("a\ud83d")
        ('C:\\temp, 👍, \\u0000', 'a\\ud83d')
    """
    return _REFUSED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def restored_text(text: str) -> str:
    r"""Return the text that `clean_text` was given; one in which nothing was escaped stays as it is.

    Example:
        >>> restored_text("a\\u0000") == "a\x00"
        True
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def clean_key(text: str) -> str:
    """Return the text as part of a key: clean, and of at most `KEY_LENGTH` characters.

    A longer one keeps its start and ends in a digest of the whole, so that two keys never become one.

    Example:
        >>> clean_key("run-1"), len(clean_key("x" * 1_000_000))
        ('run-1', 200)
    """
    cleaned = clean_text(text)
    if len(cleaned) <= KEY_LENGTH:
        return cleaned
    digest = blake2b(cleaned.encode(), digest_size=16).hexdigest()
    return f"{cleaned[: KEY_LENGTH - 1 - len(digest)]}~{digest}"


def clean_integer(value: int) -> int:
    """Return the integer of 64 bits that is nearest."""
    return max(-_LARGEST_INTEGER, min(_LARGEST_INTEGER, int(value)))


def clean_real(value: float) -> float:
    """Return the finite number that is nearest; 0.0 for NaN. For times and durations, never for a score."""
    if math.isnan(value):
        return 0.0
    return max(-_LARGEST_REAL, min(_LARGEST_REAL, float(value)))
