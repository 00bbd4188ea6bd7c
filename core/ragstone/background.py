"""What runs beside an app: one event loop in a thread of its own, and daemon threads."""

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar, cast

T = TypeVar("T")
Sync = Callable[[], T]
Async = Callable[[], Coroutine[Any, Any, T]]

# By the process's id, because a forked process lacks the thread.
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
SHORT_LOOPS: "weakref.WeakSet[asyncio.AbstractEventLoop]" = weakref.WeakSet()
"""Loops that end with a run, as `evaluate`'s: they await no model object, whose connections would be left open."""


class Calls:
    """The calls in flight on ragstone's own event loop, which another thread may have to cancel.

    What begins after `cancel` is cancelled at once: a request may be out before its call is noted here.
    """

    def __init__(self) -> None:
        self._calls: set[Future[Any]] = set()
        self._cancelled = False

    def add(self, call: Future[Any]) -> None:
        """Note a call until it is done."""
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        if self._cancelled:
            call.cancel()

    def cancel(self) -> None:
        """Cancel all, whose connections are closed then."""
        self._cancelled = True
        for call in self._calls.copy():
            call.cancel()


CALLS: "contextvars.ContextVar[Calls]" = contextvars.ContextVar("ragstone_calls")
"""Those of the caller, for who may have to cancel them."""


def begin(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on ragstone's own event loop, which serves the whole process from a daemon thread."""
    pid = os.getpid()
    if pid not in _LOOPS:
        loop = asyncio.new_event_loop()
        if _LOOPS.setdefault(pid, loop) is loop:
            threading.Thread(target=loop.run_forever, name="ragstone-loop", daemon=True).start()
        else:
            # Another thread was faster.
            loop.close()
    call = asyncio.run_coroutine_threadsafe(_seen(coroutine), _LOOPS[pid])
    if (calls := CALLS.get(None)) is not None:
        calls.add(call)
    return call


async def _seen(coroutine: Coroutine[Any, Any, T]) -> T:
    # Who cancels a call does not ask how it ended meanwhile: asyncio would print that.
    cast("asyncio.Task[Any]", asyncio.current_task()).add_done_callback(
        lambda done: done.cancelled() or done.exception()
    )
    return await coroutine


def result(call: Future[T]) -> T:
    """Block until a call on ragstone's own event loop is done.

    Raises:
        RuntimeError: The caller runs on that loop, which would wait for itself.
    """
    try:
        if running_loop() in _LOOPS.values():
            raise RuntimeError("an async judge or embedder called the sync method of another: await its async one")
        return call.result()
    finally:
        # The wait may have been interrupted.
        call.cancel()


def daemon(call: Sync[T], name: str = "ragstone-call") -> Future[T]:
    """Make a blocking call in a daemon thread of its own: one that hangs keeps no interpreter from ending."""
    done: Future[T] = Future()
    # Who waits may stop waiting; the call runs on.
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(call)
        except StopIteration:
            # No future carries a StopIteration.
            done.set_exception(RuntimeError("the call raised StopIteration"))
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(value)

    threading.Thread(target=work, name=name, daemon=True).start()
    return done


def start_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread with nothing of the app's context: no trace, no callbacks."""
    thread = threading.Thread(target=contextvars.Context().run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


async def in_daemon(call: Sync[T]) -> T:
    """Await a blocking call that `daemon` makes."""
    return await asyncio.wrap_future(daemon(call))


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; None where none does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
