"""What one worker's process has for a run, once, however many chunks it gets: judge, limits, journal, event loop."""

import asyncio
import contextlib
import os
import threading
import weakref
from collections import OrderedDict, deque
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ragstone.batch.runner import Runner, Scored
from ragstone.distributed.outcomes import SharedOutcomes
from ragstone.distributed.spec import Spec
from ragstone.limits.gate import Gate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from ragstone.sample import BadLine, Row

_KEPT = 4
_lock = threading.Lock()
_stations: "OrderedDict[tuple[int, str, str], Station]" = OrderedDict()


class Station:
    """Scores chunks on an event loop of its own, all through one gate: its limits hold for the whole process.

    Chunks may come from several threads at once. The loop ends when nobody holds the station any more.

    Args:
        spec: This worker's share.

    Raises:
        SpecError: The judge cannot be had on this machine.
        JournalError: The journal's folder cannot be used.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._metrics = spec.build()
        self._outcomes = None if spec.journal is None else SharedOutcomes(spec.journal)
        self._gate = Gate(
            spec.max_concurrency,
            requests_per_minute=spec.requests_per_minute,
            tokens_per_minute=spec.tokens_per_minute,
            call_timeout=spec.call_timeout,
            share_replies=spec.share_replies,
            own_loop=True,
        )
        self._line: _Line | None = None
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        threading.Thread(target=_live, args=(started,), name="ragstone-chunks", daemon=True).start()
        self._loop, over = started.result()
        weakref.finalize(self, _end, self._loop, over, self._outcomes).atexit = False

    @classmethod
    def of(cls, spec: Spec, run: str) -> "Station":
        """Return this process's station for a run: made by the first chunk, kept for the next."""
        key = os.getpid(), run, spec.to_json()  # a forked process has none of its parent's threads
        with _lock:
            station = _stations.get(key)
            if station is None:
                station = _stations[key] = cls(spec)
            _stations.move_to_end(key)
            while len(_stations) > _KEPT:
                _stations.popitem(last=False)
            return station

    def begin(self, rows: "Sequence[Row | BadLine]") -> "Future[list[Scored | BadLine]]":
        """Begin to score rows, and return at once.

        Raises:
            JournalError: The journal cannot be read.
        """
        if self._outcomes is not None:
            self._outcomes.refresh()  # another worker may have been killed over these very rows
        return asyncio.run_coroutine_threadsafe(self._scored(rows), self._loop)

    async def _scored(self, rows: "Sequence[Row | BadLine]") -> "list[Scored | BadLine]":
        if not rows:
            return []
        if self._line is None or self._line.over:
            self._line = _Line(self._runner)
        scored = await self._line.scored(rows)
        if self._outcomes is not None:
            await asyncio.to_thread(self._outcomes.flush)
        return scored

    def _runner(self, rows: "AsyncIterator[Row | BadLine]") -> Runner:
        spec = self._spec
        return Runner(
            rows,
            self._metrics,
            self._gate,
            repeat=spec.repeat,
            journal=self._outcomes,
            sample_timeout=spec.sample_timeout,
            flows=2 * spec.max_concurrency,
            window=16 * spec.max_concurrency,
        )


class _Line:
    """Chunks one behind the other through one runner: the next begins while the last rows of the one are waited for.

    It is over when nothing is left, or when the runner broke.
    """

    def __init__(self, runner: "Callable[[AsyncIterator[Row | BadLine]], Runner]") -> None:
        self._rows: asyncio.Queue[Row | BadLine | None] = asyncio.Queue()
        self._waiting: deque[tuple[int, asyncio.Future[list[Scored | BadLine]]]] = deque()
        self.over = False
        self._task = asyncio.ensure_future(self._run(runner(self._arriving())))

    async def scored(self, rows: "Sequence[Row | BadLine]") -> "list[Scored | BadLine]":
        """Return what becomes of the rows."""
        found: asyncio.Future[list[Scored | BadLine]] = asyncio.get_running_loop().create_future()
        self._waiting.append((len(rows), found))
        for row in rows:
            self._rows.put_nowait(row)
        return await found

    async def _arriving(self) -> "AsyncGenerator[Row | BadLine, None]":
        while (row := await self._rows.get()) is not None:
            yield row

    async def _run(self, runner: Runner) -> None:
        scored: list[Scored | BadLine] = []
        try:
            async with contextlib.aclosing(runner.results()) as items:
                async for item in items:
                    scored.append(item)
                    if len(scored) < self._waiting[0][0]:
                        continue
                    _, found = self._waiting.popleft()
                    if not found.done():  # else nobody waits for it any more
                        found.set_result(scored)
                    scored = []
                    if not self._waiting:
                        self.over = True
                        self._rows.put_nowait(None)
        except Exception as error:
            for _, found in self._waiting:
                if not found.done():
                    found.set_exception(error)
        finally:
            self.over = True


def _live(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    async def until_over() -> None:
        over = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), over))
        await over.wait()

    asyncio.run(until_over())


def _end(loop: asyncio.AbstractEventLoop, over: asyncio.Event, outcomes: SharedOutcomes | None) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(over.set)
    if outcomes is not None:
        outcomes.close()
