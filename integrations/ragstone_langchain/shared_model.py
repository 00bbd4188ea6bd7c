"""A model object that the app and a judge share: what it says of itself, and calls that the app does not see.

Three things lead a LangChain call back to the app, and each is stopped here: what the app keeps in context variables
(callbacks, handlers of `register_configure_hook`), LangSmith's tracing, and callbacks that the model object itself
carries. None of the app's objects is changed. A hook whose handler is its variable's default, or is made by a variable
of the environment, listens still: LangChain has no public way to leave it out.
"""

import asyncio
import contextvars
import sys
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, cast

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType] - a bare Mapping in it
from pydantic import BaseModel

from ragstone.errors import secrets_in
from ragstone.plain import as_count, as_dict, is_list, is_mapping
from ragstone_langchain.messages import JUDGE_TAG

if TYPE_CHECKING:
    from ragstone.bridge import Bridge

M = TypeVar("M")
T = TypeVar("T")
Sync = Callable[[], T]
Async = Callable[[], Coroutine[Any, Any, T]]

_URLS = ("base_url", "openai_api_base", "azure_endpoint", "endpoint_url", "endpoint")
_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
# Of a binding, of fallbacks, of a configurable, of a sequence, of cached embeddings.
_INSIDE = ("bound", "runnable", "default", "first", "underlying_embeddings")
_FIRST_LOOPS: "weakref.WeakKeyDictionary[SharedModel[Any], weakref.ref[asyncio.AbstractEventLoop]]" = (
    weakref.WeakKeyDictionary()
)

_DEPTH = 8  # of wrappers in wrappers that are looked into


class SharedModel(Generic[M]):
    """What `LangChainLLM` and `LangChainEmbedder` have in common: the object, and which of its halves it lacks.

    One that lacks a half says so only when that is called (`NotImplementedError`). The other half then stands in: an
    async one on a loop in a thread of its own, a sync one in a thread.
    """

    _bridge: "Callable[[], Bridge]"

    def __init__(self, model: M, *, name: str | None, identity: str | None = None, trace: bool = False) -> None:
        names = (_attribute(layer, each) for layer in _layers(model) for each in _NAMES)
        own_name = (each for each in names if isinstance(each, str) and each)
        self.model = name or next(own_name, type(_layers(model)[-1]).__name__)
        self.identity = identity
        self._shared = model
        self._trace = trace
        self._lacks_sync = False
        self._lacks_async = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._shared)

    @property
    def async_only(self) -> bool:
        """Whether the object shows that it has an async half alone: a RunnableLambda's."""
        return any(hasattr(layer, "afunc") and not hasattr(layer, "func") for layer in _layers(self._shared))

    @property
    def base_url(self) -> str | None:
        """The address of the model's server, if the object says it."""
        urls = (_attribute(layer, each) for layer in _layers(self._shared) for each in _URLS)
        return next((each for each in urls if isinstance(each, str) and each), None)

    def _call(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model from sync code."""
        if not self._lacks_sync:
            try:
                return self._call_sync(sync)
            except (NotImplementedError, TypeError) as error:
                if not _says_it_lacks(error):
                    raise
        result = self._bridge().on_loop(self._await_async(asynchronous))
        self._lacks_sync = True  # not before the other half has answered: the error may have been about something else
        return result

    async def _acall(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model on the running loop."""
        in_thread = partial(self._bridge().in_thread, partial(self._call_sync, sync))
        if self._lacks_async or self._began_on_a_closed_loop():
            try:
                return await in_thread()
            except (NotImplementedError, TypeError) as error:
                if self._lacks_async or not _says_it_lacks(error):
                    raise
            return await self._await_async(asynchronous)
        try:
            return await self._await_async(asynchronous)
        except (RuntimeError, TypeError) as error:
            lacks = _says_it_lacks(error)
            if not lacks and str(error) != "Event loop is closed":  # that of another model of the same server
                raise
        result = await in_thread()
        self._lacks_async = lacks
        return result

    def _began_on_a_closed_loop(self) -> bool:
        """Whether the model's client may keep connections of a closed loop, as langchain-openai's do: none answers."""
        loop = asyncio.get_running_loop()
        first = _FIRST_LOOPS.setdefault(self, weakref.ref(loop))()
        return first is None or (first is not loop and first.is_closed())

    def _call_sync(self, sync: Sync[T]) -> T:
        return sync() if self._trace else call_untraced(sync)

    async def _await_async(self, asynchronous: Async[T]) -> T:
        return await (asynchronous() if self._trace else start_untraced(asynchronous))


def _says_it_lacks(error: Exception) -> bool:
    """Whether the error says that the half which was called does not exist."""
    return isinstance(error, NotImplementedError) or "ainvoke" in str(error)  # an async-only RunnableLambda names it


def is_decision_model(model: object) -> bool:
    """Whether a model, or what it wraps, is a decision model: of langchain-core 1.8, which then has been loaded."""
    base: object = getattr(sys.modules.get("langchain_core.decisions.base"), "BaseDecisionModel", None)
    return isinstance(base, type) and any(isinstance(layer, base) for layer in _layers(model))


def input_limit(model: object) -> int | None:
    """Return the longest prompt in tokens by a model's profile; None if it has none."""
    limits = (as_count(as_dict(_attribute(layer, "profile")).get("max_input_tokens")) for layer in _layers(model))
    return next(filter(None, limits), None)


def _layers(model: object) -> list[object]:
    """Return the object and what it wraps, from the outside in."""
    inside = next((part for name in _INSIDE if (part := _attribute(model, name)) is not None), None)
    return [model] if inside is None else [model, *_layers(inside)]


def _attribute(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # a configurable model makes the model for it, which may need a key or a package
        return None


def judge_config(task: str, *, trace: bool) -> RunnableConfig:
    """Return the config of a judge's run: marked as such and, unless it is to be traced, cut off from the app."""
    # "nostream" keeps its tokens out of LangGraph's `stream_mode="messages"` also where it is traced.
    config = RunnableConfig(
        run_name=f"ragstone:{task}", tags=[JUDGE_TAG, "nostream"], metadata={"ragstone_judge": True}
    )
    if not trace:
        config["callbacks"] = CallbackManager(handlers=[])  # an empty list makes text models fail
    return config


def call_untraced(call: Callable[[], T]) -> T:
    """Make a blocking call in a context of its own."""

    def untraced() -> T:
        with tracing_context(enabled=False):
            return call()

    return contextvars.Context().run(untraced)


def start_untraced(call: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
    """Start a task on the running loop, in a context of its own."""

    async def untraced() -> T:
        with tracing_context(enabled=False):
            return await call()

    return contextvars.Context().run(asyncio.get_running_loop().create_task, untraced())


def without_callbacks(runnable: T) -> T:
    """Return a runnable without callbacks of its own: itself where it carries none, else a shallow copy."""
    return cast("T", _stripped(runnable, 0))


def _stripped(thing: object, depth: int) -> object:
    if depth > _DEPTH:
        return thing
    if is_mapping(thing) and isinstance(thing, dict):  # alternatives, steps side by side
        old = as_dict(thing)
        new = {name: _stripped(item, depth + 1) for name, item in old.items()}
        return old if all(map(is_, new.values(), old.values())) else new
    if is_list(thing):  # steps, branches, fallbacks
        items = [_stripped(item, depth + 1) for item in thing]
        return thing if all(map(is_, items, thing)) else tuple(items) if isinstance(thing, tuple) else items
    if not _is_runnable(thing):
        return thing
    changes: dict[str, object] = {}
    # A copy of what it holds, as other threads may use it; not by getattr, which warns of deprecated fields.
    for name, value in dict(vars(thing)).items():
        if name == "callbacks" and value:
            changes[name] = None
        elif name == "verbose" and value:  # prints each run
            changes[name] = False
        elif name == "config_factories" and value:  # with_listeners
            changes[name] = []
        elif name in ("config", "_default_config") and "callbacks" in as_dict(value):  # a binding's, a configurable's
            changes[name] = {key: setting for key, setting in as_dict(value).items() if key != "callbacks"}
        elif (inner := _stripped(value, depth + 1)) is not value:
            changes[name] = inner
    return _changed(thing, changes) if changes else thing


def _changed(runnable: object, changes: dict[str, object]) -> object:
    if isinstance(runnable, BaseModel):
        return runnable.model_copy(update=changes)
    changed = object.__new__(type(runnable))  # copy.copy would ask a configurable model for what it does not have yet
    vars(changed).update({**vars(runnable), **changes})
    return changed


def _is_runnable(thing: object) -> TypeGuard[Runnable[Any, Any]]:
    return isinstance(thing, Runnable)
