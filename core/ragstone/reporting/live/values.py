"""Single values of a database, which a hand may have changed: what is not of its type is not taken for a value."""

import json
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError

from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

_LATEST = 253_402_300_799  # the end of the year 9999
_GREATEST = 1e100  # squares of what is beyond overflow
_VERDICTS = TypeAdapter(tuple[Verdict, ...])


def number(value: object) -> float | None:
    """Return a finite number; None for anything else.

    Example:
        >>> number(1), number("1"), number(float("inf"))
        (1.0, None, None)
    """
    if not isinstance(value, (int, float)) or not abs(value) <= _GREATEST:
        return None
    return float(value)


def time_of(value: object) -> float | None:
    """Return seconds since 1970 that a calendar can show; None for anything else."""
    seconds = number(value)
    return seconds if seconds is not None and 0 <= seconds <= _LATEST else None


def count(value: object) -> int:
    """Return a whole number from 0; 0 for anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def mapping_of(value: object) -> "Mapping[str, Any]":
    """Return the object that a JSON text holds; an empty one for anything else.

    Example:
        >>> mapping_of('{"a": 1}'), mapping_of("[]"), mapping_of(None)
        ({'a': 1}, {}, {})
    """
    found = loaded(value)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def counts_of(value: object) -> dict[str, int]:
    """Return the counts by name of a JSON text, or of a mapping."""
    given = cast("Mapping[str, Any]", value) if isinstance(value, dict) else mapping_of(value)
    return {name: count(n) for name, n in given.items()}


def loaded(value: object) -> object:
    """Return what a JSON text holds, half characters (lone surrogates) in it replaced; None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        whole = json.dumps(json.loads(value), ensure_ascii=False).encode("utf-8", "replace")
        return cast("object", json.loads(whole))
    except (ValueError, RecursionError):
        return None


def stored(
    metric: str, version: str, value: float, passed: bool | None, row: "tuple[Any, ...]"
) -> tuple[Score, Sample | None]:
    """Return a score, and its sample where it is stored, from the columns reason, breakdown, verdicts, sample."""
    reason, breakdown, verdicts, sample = row
    parts = {name: number(part) for name, part in mapping_of(breakdown).items()}
    score = Score(
        metric=metric,
        version=version,
        value=value,
        passed=passed,
        reason=str(reason or ""),
        breakdown={name: part for name, part in parts.items() if part is not None},
        verdicts=_verdicts(verdicts),
    )
    try:
        return score, Sample.model_validate(loaded(sample))
    except ValidationError:
        return score, None


def _verdicts(value: object) -> tuple[Verdict, ...]:
    try:
        return _VERDICTS.validate_python(loaded(value))
    except ValidationError:
        return ()
