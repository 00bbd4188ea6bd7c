"""Bounding the time of a call, and of an evaluation by what its calls take."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Counts the seconds in which at least one of an evaluation's calls is in flight; cancels its task when they end.

    The time that calls wait for their turn is not counted: a run that keeps to a rate is slow by its own wish.

    Args:
        seconds: How long it may take. Then the task that made this object is cancelled.

    Attributes:
        over: Whether it was.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._task = asyncio.current_task()
        self._calls = 0
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.over = False

    def __enter__(self) -> None:
        self._calls += 1
        if self._calls == 1:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._timer = loop.call_later(max(0.0, self._left), self._ring)

    def __exit__(self, *_: object) -> None:
        self._calls -= 1
        if not self._calls and self._timer is not None:
            self._timer.cancel()
            self._left -= asyncio.get_running_loop().time() - self._since

    def _ring(self) -> None:
        self.over = True
        if self._task is not None:
            self._task.cancel()


async def within(seconds: float | None, call: Awaitable[T], late: str) -> T:
    """Await a call for so many seconds at most; None: however long it takes.

    Not `asyncio.wait_for`, which, before Python 3.12, can swallow a cancellation that comes as the call ends.

    Raises:
        TimeoutError: It took longer; the message is `late`.
    """
    if seconds is None:
        return await call
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):  # of a second one, the first is on its way
                await asyncio.wait((task,), timeout=1.0)  # one that does not heed it is left behind
    raise TimeoutError(late)


def daemon(call: Callable[[], T], name: str = "ragstone-call") -> Future[T]:
    """Make a blocking call in a daemon thread of its own: one that hangs keeps no interpreter from ending."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # who waits may go, the call runs on
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(call)
        except StopIteration:  # which no future carries
            done.set_exception(RuntimeError("the call raised StopIteration"))
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=work, name=name, daemon=True).start()
    return done


async def in_daemon(call: Callable[[], T]) -> T:
    """Await a blocking call that `daemon` makes."""
    return await asyncio.wrap_future(daemon(call))
