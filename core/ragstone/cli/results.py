"""A result file: one JSON line per sample and metric, written by `score`, read by `explain`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from ragstone.batch import Row
from ragstone.outcome import Outcome, Score, Unscored

_FORMS: Mapping[str, TypeAdapter[Outcome]] = {"scored": TypeAdapter(Score), "unscored": TypeAdapter(Unscored)}


class Result(NamedTuple):
    """One line of a result file."""

    id: str
    line: int
    outcome: Outcome


def result_line(row: Row, outcome: Outcome) -> str:
    """Return the line for an outcome: id and line of its sample, "scored" or "unscored", and all its fields."""
    status = "scored" if isinstance(outcome, Score) else "unscored"
    head = {"id": row.sample.id, "line": row.line, "status": status}
    return json.dumps(head | outcome.model_dump(mode="json"), ensure_ascii=False) + "\n"


def read_results(lines: Iterable[str]) -> Iterator[Result]:
    """Yield the results of a file.

    Raises:
        ValueError: A line is no result; says which.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            status, sample_id, at = value.pop("status"), value.pop("id"), value.pop("line")
            yield Result(sample_id, at, _FORMS[status].validate_python(value))
        except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
            raise ValueError(f"line {number}: not a line of `ragstone score --out` ({type(error).__name__})") from None
