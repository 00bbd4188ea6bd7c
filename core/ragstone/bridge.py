"""From sync to async and back, for objects that have only one half of the `LLM` or `Embedder` protocol."""

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Bridge:
    """Runs a sync half from async code and an async half from sync code, for one object.

    Async from sync uses one event loop in one daemon thread per object, so that a client kept inside the
    object sees one loop only, and so that it works when the caller's thread already runs a loop.
    """

    def __init__(self, threads: int) -> None:
        self._pid = os.getpid()
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def forked(self) -> bool:
        """Whether this is a copy in a forked process, where none of its threads run."""
        return self._pid != os.getpid()

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Await a blocking call, made in a thread that sees the caller's context variables."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="ragstone-llm")
                weakref.finalize(self, self._pool.shutdown, wait=False)
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, call)

    def on_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Block until a coroutine is done on the object's own event loop."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=_run_loop, args=(loop,), name="ragstone-loop", daemon=True).start()
                weakref.finalize(self, loop.call_soon_threadsafe, loop.stop)
                self._loop = loop
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
