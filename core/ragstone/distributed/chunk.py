"""The one thing that every engine runs on its workers: a chunk of rows in, outcomes as plain dicts out."""

import asyncio
import contextlib
import json
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from ragstone.batch.runner import Runner, Scored
from ragstone.distributed.outcomes import SharedOutcomes
from ragstone.distributed.spec import Spec
from ragstone.limits.gate import RequestGate
from ragstone.sample import BadLine, Row
from ragstone.sources import rows_of
from ragstone.store.record import Record, encode

_MOST_SESSIONS = 4
_lock = threading.Lock()
_sessions: "OrderedDict[tuple[int, str, str], WorkerSession]" = OrderedDict()


def score_chunk(rows: Iterable[object], spec: Spec | str, run: str = "") -> list[dict[str, Any]]:
    """Score rows within this worker's limits, blocking, and return a dict for each row, metric and draw, in order.

    The limits of the spec hold for this process, however many chunks it scores at once: give it a share
    (`Spec.divided`). The first chunk makes judge, event loop and journal, and the next chunks use them.

    What fails is data and touches nothing else: an outcome of status "unscored" with its reason, or a row of status
    "bad_row" that holds no sample. Only what concerns every row is raised.

    Args:
        rows: Dicts or `Sample`s; also a pandas or Arrow table. Give each an `id`: one without is called by its place
            in the chunk, from 1.
        spec: The spec, or its JSON.
        run: Any name. Chunks of one spec and one name share what they can: the judge, the limits, and replies to
            requests that are the same. Another name begins anew, but for the journal.

    Returns:
        For each outcome: id, row (the place in the chunk, from 0), draw, judge, status (scored or unscored) and the
        outcome's fields. For a row that is no sample: id, row, status "bad_row" and detail.

    Raises:
        SpecError: The spec is wrong, or the judge cannot be had on this machine.
        JournalError: The journal cannot be read or written; what it holds is safe.

    Example:
        >>> score_chunk([{"response": 5, "id": "a"}], Spec(metrics=["context_relevancy"], judge="m@http://127.0.0.1:9"))
        [{'id': '1', 'row': 0, 'status': 'bad_row', 'detail': 'response: is int, not text (str)'}]
    """
    if isinstance(spec, str):
        spec = Spec.from_json(spec)
    source = list(cast("Iterable[Row | BadLine]", rows_of(rows, spec.fields)))
    dicts: list[dict[str, Any]] = []
    for item in WorkerSession.of(spec, run).score(source):
        if isinstance(item, BadLine):
            dicts.append({"id": str(item.line), "row": item.line - 1, "status": "bad_row", "detail": item.problem})
        else:
            dicts.extend(map(_plain, item.records))
    return dicts


def _plain(result: Record) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(encode(result)))


class WorkerSession:
    """What one worker's process has for a run, once: judge, limits, journal, and an event loop in a thread."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._metrics = spec.build()
        self._outcomes = None if spec.journal is None else SharedOutcomes(spec.journal)
        self._gate = RequestGate(
            spec.max_concurrency,
            requests_per_minute=spec.requests_per_minute,
            tokens_per_minute=spec.tokens_per_minute,
            call_timeout=spec.call_timeout,
            share_replies=spec.share_replies,
            own_loop=True,
        )
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        threading.Thread(target=_run_loop, args=(started,), name="ragstone-chunks", daemon=True).start()
        self._loop, over = started.result()
        weakref.finalize(self, _end, self._loop, over, self._outcomes).atexit = False

    @classmethod
    def of(cls, spec: Spec, run: str) -> "WorkerSession":
        """Return this process's session for a run: made by the first chunk, kept for the next."""
        key = os.getpid(), run, spec.to_json()  # a forked process has none of its parent's threads
        with _lock:
            session = _sessions.get(key)
            if session is None:
                session = _sessions[key] = cls(spec)
            _sessions.move_to_end(key)
            while len(_sessions) > _MOST_SESSIONS:
                _sessions.popitem(last=False)
            return session

    def score(self, rows: Sequence[Row | BadLine]) -> list[Scored | BadLine]:
        """Score rows, blocking."""
        if self._outcomes is not None:
            self._outcomes.refresh()  # another worker may have been killed over these very rows
        return asyncio.run_coroutine_threadsafe(self._scored(rows), self._loop).result()

    async def _scored(self, rows: Sequence[Row | BadLine]) -> list[Scored | BadLine]:
        runner = Runner(
            rows,
            self._metrics,
            self._gate,
            repeat=self._spec.repeat,
            journal=self._outcomes,
            sample_timeout=self._spec.sample_timeout,
            flows=2 * self._spec.max_concurrency,
            window=16 * self._spec.max_concurrency,
        )
        async with contextlib.aclosing(runner.records()) as items:
            scored = [item async for item in items]
        if self._outcomes is not None:
            await asyncio.to_thread(self._outcomes.flush)
        return scored


def _run_loop(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
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
