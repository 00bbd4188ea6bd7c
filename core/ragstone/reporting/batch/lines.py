"""A result as a line of JSON: what `ragstone score --out` writes, and `Report.load` and `ragstone explain` read."""

import json
from collections.abc import Mapping

from pydantic import TypeAdapter

from ragstone.outcome import Outcome, Score, Unscored
from ragstone.reporting.batch.result import Result

_FORMS: Mapping[str, TypeAdapter[Outcome]] = {"scored": TypeAdapter(Score), "unscored": TypeAdapter(Unscored)}


def result_line(result: Result) -> str:
    """Return the line for a result: whose it is, "scored" or "unscored", and all fields of the outcome."""
    outcome = result.outcome
    status = "scored" if isinstance(outcome, Score) else "unscored"
    head = {"id": result.sample_id, "line": result.row + 1, "draw": result.draw, "judge": result.judge}
    return json.dumps({**head, "status": status, **outcome.model_dump()}, ensure_ascii=False) + "\n"


def encoded(line: str) -> bytes:
    """Return a line of JSON as UTF-8. A half character, which UTF-8 cannot carry, becomes its escape in JSON."""
    return line.encode("utf-8", "backslashreplace")


def result_of(line: bytes) -> Result | None:
    """Return the result that a line holds; None where it holds none, such as the last one of a killed run.

    Example:
        >>> score = Score(metric="demo", value=0.5, reason="", version="1")
        >>> result_of(encoded(result_line(Result(0, "a", 0, "judge", score)))).outcome == score
        True
    """
    try:
        value = json.loads(line)
        status, sample_id, at = value.pop("status"), value.pop("id"), value.pop("line")
        draw, judge = value.pop("draw", 0), value.pop("judge", "")  # older files have neither
        if not (_whole(at) and _whole(draw) and isinstance(sample_id, str) and isinstance(judge, str)):
            return None
        return Result(at - 1, sample_id, draw, judge, _FORMS[status].validate_python(value))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
