"""A data set in parts: cut up for workers, and what they found put back to the rows that it is of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragstone.distributed.chunk import to_result
from ragstone.distributed.spec import Spec
from ragstone.reporting.batch.facts import MetricFacts
from ragstone.reporting.batch.result import Result
from ragstone.sample import BadLine, Row

Part = Sequence[Row | BadLine]
_CHARACTERS = 1_000_000  # Dask warns of tasks of ten megabytes


def parts(rows: Iterator[Row | BadLine], most: int) -> Iterator[Part]:
    """Yield the rows in parts of so many at most, and of fewer where their texts are long.

    Example:
        >>> [len(part) for part in parts(iter([BadLine(1, ""), BadLine(2, ""), BadLine(3, "")]), 2)]
        [2, 1]
    """
    part, characters = list[Row | BadLine](), 0
    for row in rows:
        part.append(row)
        characters += row.sample.characters() if isinstance(row, Row) else 0
        if len(part) >= most or characters >= _CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


def texts(part: Part) -> list[dict[str, Any]]:
    """Return what a worker needs of a part: no `metadata`; of a row that is no sample an empty dict, in its place."""
    return [
        row.sample.model_dump(exclude={"metadata"}, exclude_unset=True) if isinstance(row, Row) else {} for row in part
    ]


def matched(part: Part, found: Iterable[dict[str, Any]]) -> Iterator[tuple[Row | BadLine, list[Result]]]:
    """Yield the rows of a part with their results, which know only their place in the part."""
    of_place: dict[int, list[Result]] = {}
    for values in found:
        result = to_result(values)
        if isinstance(result, Result):
            of_place.setdefault(result.row, []).append(result)
    for place, row in enumerate(part):
        if isinstance(row, Row):
            name = str(row.line) if row.sample.id is None else row.sample.id
            yield row, [result._replace(row=row.line - 1, sample_id=name) for result in of_place[place]]
        else:
            yield row, []


def known(spec: Spec, results: Mapping[str, Result]) -> Iterator[MetricFacts]:
    """Yield what is known of each metric that has a result. Version and judge are what the workers say."""
    for metric in spec.unasked():
        if (result := results.get(metric.name)) is not None:
            yield replace(MetricFacts.of(metric), version=result.outcome.version, judge=result.judge)
