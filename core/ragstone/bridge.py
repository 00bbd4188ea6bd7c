"""From sync to async and back, beside an app whose event loops and threads stay its own."""

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from ragstone.errors import secrets_in

T = TypeVar("T")
Sync = Callable[[], T]
Async = Callable[[], Coroutine[Any, Any, T]]

_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}  # by the process: a forked one lacks the thread
_HOMES: "dict[int, weakref.ref[asyncio.AbstractEventLoop]]" = {}  # by the model's id: it may lack a hash
SHORT_LOOPS: "weakref.WeakSet[asyncio.AbstractEventLoop]" = weakref.WeakSet()
"""Loops that end with a run, as `evaluate`'s: they await no model object, whose connections would be left open."""
_URLS = ("base_url", "api_base", "openai_api_base", "azure_endpoint", "endpoint_url", "endpoint")


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
        else:  # another thread was faster
            loop.close()
    call = asyncio.run_coroutine_threadsafe(coroutine, _LOOPS[pid])
    if (calls := CALLS.get(None)) is not None:
        calls.add(call)
    return call


def result(call: Future[T]) -> T:
    """Block until a call on ragstone's own event loop is done.

    Raises:
        RuntimeError: The caller runs on that loop, which would wait for itself.
    """
    try:
        if _running_loop() in _LOOPS.values():
            raise RuntimeError("an async judge or embedder called the sync method of another: await its async one")
        return call.result()
    finally:
        call.cancel()  # if the wait was interrupted


def daemon(call: Sync[T], name: str = "ragstone-call") -> Future[T]:
    """Make a blocking call in a daemon thread of its own: one that hangs keeps no interpreter from ending."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # who waits may go, the call runs on
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(call)
        except StopIteration:  # which no future carries
            done.set_exception(RuntimeError("the call raised StopIteration"))
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(value)

    threading.Thread(target=work, name=name, daemon=True).start()
    return done


async def in_daemon(call: Sync[T]) -> T:
    """Await a blocking call that `daemon` makes."""
    return await asyncio.wrap_future(daemon(call))


class SharedModel:
    """A framework's model object, which the app may call too.

    A client's connections belong to the event loop that opened them; on a second one they break, for the app as well.
    So one loop awaits an object, whoever shares it: the one that ran when it was first shared, else the first that
    awaits it. All others call its sync half in a thread. The other half stands in for one that is missing.
    """

    def _original(self) -> object:
        """Return the app's object."""
        raise NotImplementedError

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._original())

    @property
    def base_url(self) -> str | None:
        """The address of the model's server, if the object has one."""
        return self._text(_URLS)

    def _layers(self) -> Sequence[object]:
        """Return the object and what it wraps, from the outside in."""
        return (self._original(),)

    def _text(self, names: Sequence[str]) -> str | None:
        """Return the first text that the object has under one of the names."""
        texts = (attribute(layer, name) for layer in self._layers() for name in names)
        return next((text for text in texts if isinstance(text, str) and text), None)

    def _call(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        try:
            return sync()
        except Exception as error:
            if not _is_missing(error):
                raise
        return result(begin(asynchronous()))

    async def _acall(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        if is_home(self._original()):
            try:
                return await asynchronous()
            except Exception as error:
                # another object with the same client may have left it connections
                if not _is_missing(error) and str(error) != "Event loop is closed":
                    raise
        return await in_daemon(partial(self._call, sync, asynchronous))


def attribute(thing: object, name: str) -> object:
    """Return an attribute; None where reading it fails."""
    try:
        return getattr(thing, name, None)
    except Exception:  # a model that is yet to be configured may lack a key or a package
        return None


def is_home(model: object) -> bool:
    """Whether the running loop is the one that awaits a model object, or becomes it."""
    running = _running_loop()
    if running is None or running in SHORT_LOOPS:
        return False
    if id(model) not in _HOMES:
        try:
            weakref.finalize(model, _HOMES.pop, id(model), None)
        except TypeError:  # of a class with __slots__: no loop awaits it
            return False
    return _HOMES.setdefault(id(model), weakref.ref(running))() is running


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _is_missing(error: Exception) -> bool:
    """Whether an error tells that the half which was called does not exist."""
    return isinstance(error, NotImplementedError) or "ainvoke" in str(error)  # "use ainvoke instead"
