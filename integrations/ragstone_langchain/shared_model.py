"""A model object that the app and a judge share: what it says of itself, and calls that the app does not see.

Three things lead a LangChain call back to the app, and each is stopped here: what the app keeps in context variables
(callbacks, handlers of `register_configure_hook`), LangSmith's tracing, and callbacks that the model object itself
carries. None of the app's objects is changed. A hook whose handler is its variable's default, or is made by a variable
of the environment, listens still: LangChain has no public way to leave it out.
"""

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from operator import is_
from typing import Any, Generic, TypeGuard, TypeVar, cast

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType] - a bare Mapping in it
from pydantic import BaseModel

from ragstone.bridge import SharedHalves, share
from ragstone.errors import secrets_in
from ragstone.plain import as_count, as_dict, is_list, is_mapping
from ragstone_langchain.messages import JUDGE_TAG

M = TypeVar("M")
T = TypeVar("T")
Sync = Callable[[], T]
Async = Callable[[], Coroutine[Any, Any, T]]

_URLS = ("base_url", "openai_api_base", "azure_endpoint", "endpoint_url", "endpoint")
_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
# Of a binding, of fallbacks, of a configurable, of a sequence, of cached embeddings.
_INSIDE = ("bound", "runnable", "default", "first", "underlying_embeddings")
_DEPTH = 8  # of wrappers in wrappers that are looked into


class SharedModel(SharedHalves, Generic[M]):
    """What `LangChainLLM` and `LangChainEmbedder` have in common: the object, and how it is called.

    Calls are hidden from the app, unless they are to be traced.
    """

    def __init__(self, model: M, *, name: str | None, identity: str | None = None, trace: bool = False) -> None:
        names = (_attribute(layer, each) for layer in _layers(model) for each in _NAMES)
        own_name = (each for each in names if isinstance(each, str) and each)
        self.model = name or next(own_name, type(_layers(model)[-1]).__name__)
        self.identity = identity
        self._shared = model
        self._trace = trace
        share(model)

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

    def _invoke(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model from sync code, hidden from the app."""
        return self._call(*self._hidden(sync, asynchronous))

    async def _ainvoke(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model for the running loop, hidden from the app."""
        return await self._acall(self._shared, *self._hidden(sync, asynchronous))

    def _hidden(self, sync: Sync[T], asynchronous: Async[T]) -> tuple[Sync[T], Async[T]]:
        if self._trace:
            return sync, asynchronous
        return partial(_call_untraced, sync), partial(_await_untraced, asynchronous)


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


def _call_untraced(call: Sync[T]) -> T:
    """Make a blocking call in a context of its own."""

    def untraced() -> T:
        with tracing_context(enabled=False):
            return call()

    return contextvars.Context().run(untraced)


async def _await_untraced(call: Async[T]) -> T:
    """Await a task in a context of its own."""

    async def untraced() -> T:
        with tracing_context(enabled=False):
            return await call()

    return await contextvars.Context().run(asyncio.get_running_loop().create_task, untraced())


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
