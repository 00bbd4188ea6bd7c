"""From sync to async and back: for objects with one half of a protocol, and for models that the app awaits too."""

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

CALLS: "contextvars.ContextVar[set[Future[Any]]]" = contextvars.ContextVar("ragstone_calls")
"""The calls in flight on loops of ours, for a caller that may have to cancel them from another thread."""


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
        self._loop: Loop | None = None

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
                self._loop = Loop("ragstone-loop")
        return self._loop.run(coroutine)


class Loop:
    """A private event loop in a daemon thread, until it is closed or nobody refers to it.

    Then calls in flight are cancelled, and `ending` is awaited.
    """

    def __init__(self, name: str, ending: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._calls: set[Future[Any]] = set()
        threading.Thread(target=_serve, args=(self._loop, self._calls, ending), name=name, daemon=True).start()
        self.close = weakref.finalize(self, _stop, self._loop, self._pid)
        self.close.atexit = False  # a daemon thread ends with the program

    @property
    def forked(self) -> bool:
        """Whether this is a copy in a forked process, where its thread does not run."""
        return self._pid != os.getpid()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine on the loop."""
        call = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        for calls in (self._calls, CALLS.get(set())):
            calls.add(call)
            call.add_done_callback(calls.discard)
        return call

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Block until a coroutine is done on the loop."""
        call = self.begin(coroutine)
        try:
            return call.result()
        finally:
            call.cancel()  # if the wait was interrupted


def _serve(
    loop: asyncio.AbstractEventLoop,
    calls: "set[Future[Any]]",
    ending: Callable[[], Coroutine[Any, Any, None]] | None,
) -> None:
    async def end() -> None:
        for call in list(calls):  # each once: a second time would end the closing of its connection
            call.cancel()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)
        if ending is not None:
            await ending()

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()  # `asyncio.run` would end with a thread, which a program's end forbids
        loop.run_until_complete(end())
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    with suppress(RuntimeError):  # the loop has ended
        if pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)


class SharedHalves:
    """Calls one half of a model object that the app may call too.

    A client keeps connections of the event loop that it was awaited on, and fails the app when it is awaited on
    another. So each object has one home loop, whoever shares it: the loop that ran when it was first shared, else the
    first that awaits it. Any other loop gets a thread and the object's sync half. Where a half is missing
    (`NotImplementedError`), the other stands in: an async one then runs on a loop of ours.
    """

    one_loop: ClassVar[bool] = True  # `ragstone.evaluate`, which has a loop of its own, calls the sync half
    _bridge: Callable[[], Bridge]
    _lacks: tuple[str, ...] = ()

    def _call(self, sync: Callable[[], T], asynchronous: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Call the model from sync code."""
        if "sync" not in self._lacks:
            try:
                return sync()
            except (NotImplementedError, TypeError) as error:
                if not says_it_lacks(error):
                    raise
        result = self._bridge().on_loop(asynchronous())
        self._lacks = ("sync",)  # not before the other half has answered: the error may have been about something else
        return result

    async def _acall(
        self, shared: object, sync: Callable[[], T], asynchronous: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Call the model, which is or stands for the shared object, for the running loop."""
        lacks: tuple[str, ...] = self._lacks
        if "async" not in lacks and is_at_home(shared):
            try:
                return await asynchronous()
            except (RuntimeError, TypeError) as error:
                if says_it_lacks(error):
                    lacks = ("async",)
                elif str(error) != "Event loop is closed":  # that of another object with the same client
                    raise
        result = await self._bridge().in_thread(lambda: self._call(sync, asynchronous))
        self._lacks = self._lacks or lacks
        return result


def says_it_lacks(error: Exception) -> bool:
    """Whether the error says that the half which was called does not exist."""
    return isinstance(error, NotImplementedError) or "ainvoke" in str(error)  # an async-only RunnableLambda names it


# The home loop of each model object by its id, as models can be neither hashed nor marked; an empty list: none yet.
# A loop that is gone stays the home: its connections may be left.
_HOMES: dict[int, "list[weakref.ref[asyncio.AbstractEventLoop]]"] = {}
_LOCK = threading.Lock()


def share(model: object) -> "list[weakref.ref[asyncio.AbstractEventLoop]]":
    """Give an object that is shared for the first time the running loop as its home, if one runs."""
    with _LOCK:
        if id(model) not in _HOMES:
            try:
                weakref.finalize(model, _HOMES.pop, id(model), None)
            except TypeError:  # of a class with __slots__, which cannot be watched: no home
                return []
            _HOMES[id(model)] = []
            with suppress(RuntimeError):  # none runs yet: the first that awaits it is the home
                _HOMES[id(model)].append(weakref.ref(asyncio.get_running_loop()))
        return _HOMES[id(model)]


def is_at_home(model: object) -> bool:
    """Whether the running loop is an object's home; it becomes that of one without."""
    home, running = share(model), asyncio.get_running_loop()
    with _LOCK:
        if not home:
            home.append(weakref.ref(running))
        return home[0]() is running
