"""Steps of handlers that are no work for the app's threads: run one after another, on a thread of the monitor's."""

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from ragstone.background import start_thread
from ragstone.live.waiting import wait_while

_MOST = 1_000
_LARGEST = 20_000_000

_Step = tuple[contextvars.Context, Callable[[], object], int]


class Steps:
    """Steps that wait to be run, first in, first out, each in the context of the app that it comes from.

    Args:
        failed: Counts the error of a step.

    Attributes:
        waiting: How many have not ended.
    """

    def __init__(self, failed: Callable[[str, BaseException], object]) -> None:
        self.waiting = 0
        self._size = 0
        self._failed = failed
        self._started = self._closed = False
        # Re-entrant: the garbage collector may end a stream, and so add a step, while we count.
        self._lock = threading.RLock()
        self._steps: SimpleQueue[_Step | None] = SimpleQueue()

    def add(self, step: Callable[[], object], size: int) -> bool:
        """Add a step that holds so many characters; False where too much waits, or none is run any more."""
        with self._lock:
            fits = self.waiting < _MOST and (not self.waiting or self._size + size <= _LARGEST)
            if self._closed or not fits:
                return False
            if not self._started:
                start_thread(self._run, "ragstone-reading")
                self._started = True
            self.waiting += 1
            self._size += size
            self._steps.put((contextvars.copy_context(), step, size))
            return True

    def wait(self, over: Callable[[], bool]) -> bool:
        """Wait until all have ended; False when the time for it is over before."""
        return wait_while(lambda: self.waiting, over)

    def close(self, over: Callable[[], bool]) -> None:
        """Take no more, and wait; what is left when the time is over is run here, so that no sample is lost."""
        with self._lock:
            self._closed = True
        self.wait(over)
        with suppress(Empty):
            while self._next(block=False):
                pass
        self._steps.put(None)

    def _run(self) -> None:
        going = True
        while going:
            try:
                going = self._next()
            except BaseException as error:  # noqa: PERF203 - what ends threads may be raised by a step: this one lives on
                self._failed("reading", error)

    def _next(self, *, block: bool = True) -> bool:
        """Run the step that waited longest; False where there is none any more."""
        taken = self._steps.get(block)
        if taken is None:
            return False
        context, step, size = taken
        try:
            context.run(step)
        except Exception as error:
            self._failed("reading", error)
        finally:
            with self._lock:
                self.waiting -= 1
                self._size -= size
        return True
