"""Samples in, outcomes out, in order, with as many under way as a window holds."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ragstone.batch.rows import BadLine, Row
from ragstone.metrics.base import Metric
from ragstone.metrics.safely import ascore_safely
from ragstone.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Scored:
    """A row and its outcome by each metric, in the order of the metrics."""

    row: Row
    outcomes: tuple[Outcome, ...]


async def stream(
    rows: Iterable[Row | BadLine], metrics: Sequence[Metric], *, window: int = 32
) -> AsyncGenerator[Scored | BadLine, None]:
    """Yield each row's outcomes in input order; a bad line comes through in its place.

    Never more than `window` rows are held, so a file of any size takes constant memory. What scoring a row
    raises is `Unscored("judge_error")` on that row and touches no other. The rows are read in a thread of
    their own, one at a time: what has been read is scored while a slow pipe waits for its next line. Close the
    generator (`contextlib.aclosing`) to stop early; what is under way is then cancelled.

    Args:
        rows: What `read_rows` yields. An exception that it raises is raised here, after the rows before it.
        metrics: Each scores every row.
        window: Rows under way at most; the judge's own `max_concurrency` bounds the calls.
    """
    arrived: asyncio.Queue[asyncio.Task[Scored] | BadLine | BaseException | None] = asyncio.Queue()
    tasks: set[asyncio.Task[Scored]] = set()
    loop = asyncio.get_running_loop()

    def accept(item: Row | BadLine | BaseException | None) -> None:
        if not isinstance(item, Row):
            arrived.put_nowait(item)
        elif not reader.stopped:
            task = loop.create_task(_score(item, metrics))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            arrived.put_nowait(task)

    reader = _Reader(rows, window, lambda item: loop.call_soon_threadsafe(accept, item))
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item if isinstance(item, BadLine) else await item
            del item  # the caller is done with it: hold nothing of it while waiting for the next
            reader.more()
    finally:
        reader.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Reader:
    """Reads rows in a daemon thread, never more than `window` ahead of `more()`.

    Not a pool's thread: the interpreter waits for those at exit, and a read of a pipe may never return.
    """

    def __init__(
        self,
        rows: Iterable[Row | BadLine],
        window: int,
        send: Callable[[Row | BadLine | BaseException | None], object],
    ) -> None:
        self._rows = rows
        self._send = send
        self._room = threading.Semaphore(max(1, window))
        self.stopped = False
        threading.Thread(target=self._read, name="ragstone-rows", daemon=True).start()

    def more(self) -> None:
        self._room.release()

    def stop(self) -> None:
        self.stopped = True
        self._room.release()

    def _read(self) -> None:
        with suppress(RuntimeError):  # from `send`: the loop is closed, nobody waits for more
            try:
                rows = iter(self._rows)
                while self._room.acquire() and not self.stopped:
                    row = next(rows, None)
                    self._send(row)
                    if row is None:
                        return
                    del row
            except Exception as error:
                self._send(error)


async def _score(row: Row, metrics: Sequence[Metric]) -> Scored:
    return Scored(row, tuple(await asyncio.gather(*(ascore_safely(metric, row.sample) for metric in metrics))))
