"""The one thing that every engine runs on its workers: a chunk of rows in, results as plain dicts out."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ragstone.distributed.spec import Spec
from ragstone.outcome import Score, Unscored

if TYPE_CHECKING:
    from ragstone.reporting.batch.result import Result
    from ragstone.sample import BadLine, Row


def score_chunk(rows: Iterable[object], spec: Spec | str, run: str = "") -> list[dict[str, Any]]:
    """Score rows within this worker's limits, blocking, and return a dict for each row, metric and draw, in order.

    The limits of the spec hold for this process, however many chunks it scores at once: give it a share
    (`Spec.divided`). Judge, event loop and journal are made by the first chunk and kept for the next.

    What fails is data and touches nothing else: an outcome of status "unscored" with its reason, or a row of status
    "bad_row" that holds no sample. Only what concerns every row is raised.

    Args:
        rows: Dicts or `Sample`s; also a pandas or Arrow table. Give each an `id`: one without is called by its place
            in the chunk, from 1.
        spec: The spec, or its JSON.
        run: Any name. Chunks of one spec and one name share what they can: the judge, the limits, and replies to
            requests that are the same. Another name begins anew, but for the journal.

    Returns:
        What `ragstone score --out` writes a line each of: id, line (the place in the chunk, from 1), draw, judge,
        status ("scored", "unscored") and the outcome's fields. A row that is no sample: id, line, status "bad_row" and
        detail.

    Raises:
        SpecError: The spec is wrong, or the judge cannot be had on this machine.
        JournalError: The journal cannot be read or written; what it holds is safe.

    Example:
        >>> spec = Spec(metrics=["context_relevancy"], judge="http://127.0.0.1:9/v1")
        >>> score_chunk([{"response": 5, "id": "a"}], Spec(metrics=spec.metrics, judge="m@http://127.0.0.1:9"))
        [{'id': '1', 'line': 1, 'status': 'bad_row', 'detail': 'response: is int, not text (str)'}]
    """
    from ragstone.distributed.station import Station
    from ragstone.sample import BadLine
    from ragstone.sources import rows_of

    if isinstance(spec, str):
        spec = Spec.from_json(spec)
    source = cast("Iterable[Row | BadLine]", rows_of(rows, spec.fields))
    station = Station.of(spec, run)
    scored = station.begin(list(source)).result()
    found: list[dict[str, Any]] = []
    for item in scored:
        if isinstance(item, BadLine):
            found.append({"id": str(item.line), "line": item.line, "status": "bad_row", "detail": item.problem})
        else:
            found.extend(map(to_dict, item.results))
    return found


def to_dict(result: "Result") -> dict[str, Any]:
    """Return a result as plain values."""
    outcome = result.outcome
    status = "scored" if isinstance(outcome, Score) else "unscored"
    head = {"id": result.sample_id, "line": result.row + 1, "draw": result.draw, "judge": result.judge}
    return {**head, "status": status, **outcome.model_dump()}


def to_result(values: dict[str, Any]) -> "Result | BadLine":
    """Return the result that `score_chunk` made a dict of, or the row that was none."""
    from ragstone.reporting.batch.result import Result
    from ragstone.sample import BadLine

    rest = dict(values)
    sample_id, line, status = rest.pop("id"), rest.pop("line"), rest.pop("status")
    if status == "bad_row":
        return BadLine(line, rest["detail"])
    draw, judge = rest.pop("draw"), rest.pop("judge")
    outcome = (Score if status == "scored" else Unscored).model_validate(rest)
    return Result(line - 1, sample_id, draw, judge, outcome)
