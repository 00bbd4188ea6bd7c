"""One thread that runs calls one after another, in the order in which they came."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Item = tuple["Future[Any]", Callable[[], Any]]


class Worker:
    """Runs calls first in, first out, in a daemon thread of its own, started by the first call.

    A daemon thread and not a `ThreadPoolExecutor`: the interpreter waits at exit for a pool's running call,
    and a call to a small model may take a minute.

    Example:
        >>> worker = Worker("demo")
        >>> worker.submit(lambda: 6 * 7).result()
        42
        >>> worker.stop()
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Item | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        """Queue a call; the future gets its result or exception.

        Raises:
            RuntimeError: In a forked child, where the thread does not exist and the future would never end.
        """
        if self._pid != os.getpid():
            raise RuntimeError("this object was made before a fork: make a new one in the child process")
        future: Future[T] = Future()
        with self._lock:
            if self._thread is None:
                # The queue, not self: an idle thread must not keep its owner alive.
                self._thread = threading.Thread(target=_run, args=(self._calls,), name=self._name, daemon=True)
                self._thread.start()
            self._calls.put((future, call))
        return future

    def stop(self) -> None:
        """End the thread after the calls that are queued, and wait for it; a later call starts a new one."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None or self._pid != os.getpid():
                return
            self._calls.put(None)
        if thread is not threading.current_thread():
            thread.join()


def _run(calls: "SimpleQueue[_Item | None]") -> None:
    while (item := calls.get()) is not None:
        future, call = item
        if future.set_running_or_notify_cancel():
            try:
                result = call()
            except BaseException as error:  # handed to whoever waits for the future
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del item, future, call  # while waiting, keep nothing of the last call alive
