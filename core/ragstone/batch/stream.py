"""Samples in, outcomes out, in order, with as many under way as a window holds."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragstone.asking.flow import Meter
from ragstone.batch.rows import BadLine, Row
from ragstone.metrics.base import Metric
from ragstone.outcome import Outcome, Unscored


@dataclass(frozen=True, slots=True)
class Scored:
    """A row and its outcome by each metric, in the order of the metrics."""

    row: Row
    outcomes: tuple[Outcome, ...]


async def stream(
    rows: Iterable[Row | BadLine], metrics: Sequence[Metric], *, window: int = 32
) -> AsyncIterator[Scored | BadLine]:
    """Yield each row's outcomes in input order; a bad line comes through in its place.

    Never more than `window` rows are held, so a file of any size takes constant memory. A provider's failure
    is `Unscored("judge_error")` on its row and touches no other. The rows are read in a thread: a slow pipe
    holds nothing up.

    Args:
        rows: What `read_rows` yields.
        metrics: Each scores every row.
        window: Rows under way at most; the judge's own `max_concurrency` bounds the calls.
    """
    tasks: asyncio.Queue[asyncio.Task[Scored] | BadLine | BaseException | None] = asyncio.Queue(max(1, window - 1))
    started: set[asyncio.Task[Scored]] = set()

    async def read() -> None:
        iterator = iter(rows)
        try:
            while (row := await asyncio.to_thread(_next, iterator)) is not None:
                if isinstance(row, BadLine):
                    await tasks.put(row)
                    continue
                task = asyncio.create_task(_score(row, metrics))
                started.add(task)
                task.add_done_callback(started.discard)
                await tasks.put(task)
        except Exception as error:
            await tasks.put(error)
        await tasks.put(None)

    reader = asyncio.create_task(read())
    try:
        while (item := await tasks.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item if isinstance(item, BadLine) else await item
    finally:
        reader.cancel()
        for task in started:
            task.cancel()
        await asyncio.gather(reader, *started, return_exceptions=True)


def _next(iterator: Iterator[Row | BadLine]) -> Row | BadLine | None:
    return next(iterator, None)


async def _score(row: Row, metrics: Sequence[Metric]) -> Scored:
    return Scored(row, tuple(await asyncio.gather(*(score_safely(metric, row) for metric in metrics))))


async def score_safely(metric: Metric, row: Row) -> Outcome:
    """Score a row; what the judge's provider raises becomes `Unscored("judge_error")` with what was spent."""
    meter = Meter()
    try:
        return await metric.ascore(row.sample, meter=meter)
    except Exception as error:
        return Unscored(
            metric=metric.name,
            reason="judge_error",
            detail=f"{type(error).__name__}: {str(error)[:500]}",
            usage=meter.usage(),
            version=metric.version,
        )
