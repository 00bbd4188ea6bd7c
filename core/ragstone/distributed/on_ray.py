"""`score_on_ray`: a Ray data set through actors that score."""

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from ragstone.distributed.chunk import score_chunk
from ragstone.distributed.spec import Spec
from ragstone.metrics.options import check_count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# Neither Ray nor Arrow has types that a checker could see without their being installed.
Dataset = Any
Table = Any


def score_on_ray(dataset: Dataset, spec: Spec, *, workers: int, batch_rows: int = 256) -> Dataset:
    """Return the data set of the results, which Ray makes as they are asked for (`iter_rows`, `write_parquet`).

    Each of a fixed number of actors scores within its share of the spec's limits (`Spec.divided`). Ray replaces an
    actor that dies; with a journal nothing that it had scored is judged again, and the same call goes on after a crash
    of everything. Ray is neither started nor stopped here.

    Args:
        dataset: Its columns are as for `evaluate`; give it an `id`. Where rows come out in another order, and they may,
            it alone says whose they are.
        spec: By what to score.
        workers: Actors, each with a process of its own.
        batch_rows: Samples in a batch; an actor has up to four under way.

    Returns:
        A row for each sample, metric and draw: id, metric, draw, value (null where there is none), status ("scored",
        "unscored", "bad_row") and result, a line of JSON as `ragstone score --out` writes it.

    Raises:
        SpecError: The limits cannot be divided among so many.
    """
    check_count("batch_rows", batch_rows)
    return dataset.map_batches(
        _Scorer,
        fn_constructor_kwargs={"spec": spec.divided(workers).to_json(), "run": secrets.token_hex(8)},
        batch_format="pyarrow",
        batch_size=batch_rows,
        concurrency=workers,
        zero_copy_batch=True,
    )


class _Scorer:
    """What an actor runs."""

    def __init__(self, spec: str, run: str) -> None:
        self._chunk = spec, run

    async def __call__(self, batch: Table) -> "AsyncIterator[Table]":
        yield to_table(await asyncio.to_thread(score_chunk, batch, *self._chunk))


def to_table(found: list[dict[str, Any]]) -> Table:
    """Return the results of a chunk as an Arrow table, of one schema whatever the metrics."""
    import json
    from importlib import import_module

    pa: Any = import_module("pyarrow")
    columns: dict[str, tuple[Any, list[Any]]] = {
        "id": (pa.string(), [each["id"] for each in found]),
        "metric": (pa.string(), [each.get("metric") for each in found]),
        "draw": (pa.int64(), [each.get("draw") for each in found]),
        "value": (pa.float64(), [each.get("value") for each in found]),
        "status": (pa.string(), [each["status"] for each in found]),
        "result": (pa.string(), [json.dumps(each) for each in found]),
    }
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
