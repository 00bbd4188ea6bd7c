"""Checks of a metric's options when it is made: wrong ones are refused before the first sample."""

from collections.abc import Sequence


def check_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is none of the allowed words.

    Raises:
        ValueError: Names the option, the value and the words.
    """
    if value not in allowed:
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(map(repr, allowed))}")


def check_count(name: str, value: object) -> None:
    """Refuse what is no whole number of at least 1.

    Raises:
        ValueError: Names the option and the value.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: {value!r} is not a whole number of at least 1")
