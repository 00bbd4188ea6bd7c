"""Running a coroutine for a caller that has no event loop, or has one that runs; and what Ctrl-C does meanwhile."""

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")
_PATIENCE = 3
# A signal that comes just before a thread goes to wait does not wake it: so it wakes by itself.
_BEAT = 0.2


class Interrupts:
    """Runs one coroutine to its end, and turns Ctrl-C into an orderly stop of it.

    The first Ctrl-C calls what `on_first` was given, the second cancels the coroutine, the third raises where it is.
    Only Python's own handling of Ctrl-C is replaced meanwhile, never an app's.

    Attributes:
        count: How often Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._stop: Callable[[], object] | None = None

    def on_first(self, stop: Callable[[], object]) -> None:
        """Say, from within the coroutine, what the first Ctrl-C is to call, on the event loop."""
        self._loop, self._task, self._stop = asyncio.get_running_loop(), asyncio.current_task(), stop
        if self.count:
            stop()
        self._beat()

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `main()` on an event loop of its own: in this thread, or in a new one if a loop runs in this one.

        Raises:
            KeyboardInterrupt: It was cancelled by Ctrl-C.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            in_this_thread = True
        else:
            in_this_thread = False
        try:
            with self._handled():
                return asyncio.run(main()) if in_this_thread else self._in_thread(main())
        except asyncio.CancelledError:
            if self.count:
                raise KeyboardInterrupt from None
            raise

    def _beat(self) -> None:
        asyncio.get_running_loop().call_later(_BEAT, self._beat)

    def _in_thread(self, main: Coroutine[Any, Any, T]) -> T:
        done: Future[T] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                result = context.run(asyncio.run, main)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        threading.Thread(target=work, name="ragstone-evaluate", daemon=True).start()
        while not done.done():
            try:
                wait((done,), _BEAT)
            except KeyboardInterrupt:  # noqa: PERF203 - it is what the loop is for
                self._pressed()
        return done.result()

    @contextmanager
    def _handled(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread() or not _is_pythons(
            signal.getsignal(signal.SIGINT)
        ):
            yield
            return
        before = signal.signal(signal.SIGINT, lambda _signal, _frame: self._pressed())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _pressed(self) -> None:
        self.count += 1
        if self.count >= _PATIENCE:
            raise KeyboardInterrupt
        if self._loop is None or self._task is None or self._stop is None:
            return  # not begun: `on_first` will see it
        with suppress(RuntimeError):  # the loop is closed: it is over already
            self._loop.call_soon_threadsafe(self._stop if self.count == 1 else self._task.cancel)


def _is_pythons(handler: object) -> bool:
    function = getattr(handler, "func", handler)  # asyncio.run's is a partial
    return handler is signal.default_int_handler or getattr(function, "__module__", "") == "asyncio.runners"
