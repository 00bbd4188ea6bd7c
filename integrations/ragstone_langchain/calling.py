"""A LangChain model or embeddings object: what it says of itself, and calls of its sync or async half."""

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from ragstone.identity import settings_of
from ragstone.plain import as_count, as_dict
from ragstone_langchain.tracing import call_untraced, start_untraced

if TYPE_CHECKING:
    from ragstone.bridge import Bridge

T = TypeVar("T")
Sync = Callable[[], T]
Async = Callable[[], Coroutine[Any, Any, T]]

_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
# Of a binding, of fallbacks, of a configurable, of a sequence, of cached embeddings.
_INSIDE = ("bound", "runnable", "default", "first", "underlying_embeddings")


class Calling:
    """How one model is called; it learns which of the halves the model lacks.

    A LangChain object has both halves by type, and one that lacks a half says so only when that is called
    (`NotImplementedError`). The other half then stands in: an async one on a loop in a thread of its own, a sync
    one in a thread. With `trace` the app may see the call.
    """

    def __init__(self, name: str, bridge: "Callable[[], Bridge]", *, timeout: float | None, trace: bool) -> None:
        self._name = name
        self._bridge = bridge
        self._timeout = timeout
        self._trace = trace
        self._lacks_sync = False
        self._lacks_async = False
        self._first_loop: weakref.ref[asyncio.AbstractEventLoop] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_first_loop": None}

    def call(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model from sync code."""
        if not self._lacks_sync:
            try:
                return self._call(sync)
            except (NotImplementedError, TypeError) as error:
                if not _lacks(error):
                    raise
        result = self._bridge().on_loop(self._acall(asynchronous))
        self._lacks_sync = True  # not before the other half has answered: the error may have been about something else
        return result

    async def acall(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model on the running loop."""
        if self._began_on_a_loop_that_is_closed() and not self._lacks_sync:
            try:
                return await self._bridge().in_thread(lambda: self._call(sync))
            except (NotImplementedError, TypeError) as error:
                if not _lacks(error):
                    raise
        if not self._lacks_async:
            try:
                return await self._acall(asynchronous)
            except (NotImplementedError, TypeError) as error:
                if not _lacks(error):
                    raise
            except RuntimeError as error:  # another model of the same server began on a loop that is closed
                if str(error) != "Event loop is closed":
                    raise
                return await self._bridge().in_thread(lambda: self._call(sync))
        result = await self._bridge().in_thread(lambda: self._call(sync))
        self._lacks_async = True
        return result

    def _began_on_a_loop_that_is_closed(self) -> bool:
        """Whether the model's client may keep connections of a closed loop, as langchain-openai's do: none answers."""
        loop = asyncio.get_running_loop()
        if self._first_loop is None:
            self._first_loop = weakref.ref(loop)
        first = self._first_loop()
        return first is None or (first is not loop and first.is_closed())

    def _call(self, sync: Sync[T]) -> T:
        if not self._trace:
            sync = partial(call_untraced, sync)
        return sync() if self._timeout is None else self._in_time(sync, self._timeout)

    def _in_time(self, sync: Sync[T], seconds: float) -> T:
        future: Future[T] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                future.set_result(context.run(sync))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="ragstone-judge", daemon=True).start()
        try:
            return future.result(seconds)
        except FutureTimeout:
            if future.done():  # the model's own
                raise
            raise self._late("its thread runs on until the model ends it") from None

    async def _acall(self, asynchronous: Async[T]) -> T:
        task = asyncio.ensure_future(asynchronous()) if self._trace else start_untraced(asynchronous)
        try:
            await asyncio.wait((task,), timeout=self._timeout)
            if task.done():
                return task.result()
            raise self._late("the call was cancelled; a model without an async half runs on in its thread")
        finally:
            task.cancel()

    def _late(self, state: str) -> TimeoutError:
        return TimeoutError(f"{self._name} did not reply within {self._timeout:g} s; {state}")


def _lacks(error: Exception) -> bool:
    """Whether the error says that the half which was called does not exist."""
    return isinstance(error, NotImplementedError) or "ainvoke" in str(error)  # an async-only RunnableLambda names it


def model_name(model: object) -> str:
    """Return the name that a model object, or the one that it wraps, gives to its model; else its class."""
    names = (_attribute(layer, name) for layer in _layers(model) for name in _NAMES)
    return next((name for name in names if isinstance(name, str) and name), type(_layers(model)[-1]).__name__)


def identity_settings(model: object) -> dict[str, object]:
    """Return what makes a model object, for journals: the settings of all its layers, without keys.

    Beside fields and attributes that is what each layer says of itself for LangChain's own caches and traces.

    """
    follow = (Runnable, Embeddings, type(model))
    identifying = [_attribute(layer, "_identifying_params") for layer in _layers(model)]
    return {
        "settings": settings_of(model, follow),
        "identifying": [settings_of(each, follow) for each in map(as_dict, identifying) if each],
    }


def input_limit(model: object) -> int | None:
    """Return the longest prompt in tokens by a model's profile; None if it has none."""
    limits = (as_count(as_dict(_attribute(layer, "profile")).get("max_input_tokens")) for layer in _layers(model))
    return next(filter(None, limits), None)


def check_timeout(timeout: object) -> None:
    """Refuse what is no number of seconds above 0.

    Raises:
        ValueError: Names the option and the value.
    """
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (number and cast("float", timeout) > 0):
        raise ValueError(f"timeout: {timeout!r} is not a number of seconds above 0")


def _layers(model: object) -> list[object]:
    """Return the object and what it wraps, from the outside in."""
    inside = next((part for name in _INSIDE if (part := _attribute(model, name)) is not None), None)
    return [model] if inside is None else [model, *_layers(inside)]


def _attribute(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # a configurable model makes the model for it, which may need a key or a package
        return None
