"""Tracing suppression: the app around sees nothing of a judge's call, no run, no token and no trace.

Four things lead a LangChain call back to the app, and each is stopped here: callbacks inherited through context
variables, handlers that a configure hook adds to every run (`register_configure_hook`), LangSmith's tracing, and
callbacks that the model object itself carries. None of the app's objects is changed.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from operator import is_
from typing import Any, TypeGuard, TypeVar, cast

from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tracers.context import _configure_hooks  # pyright: ignore[reportPrivateUsage] - no public way
from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType] - a bare Mapping in it
from pydantic import BaseModel

from ragstone.plain import as_dict, is_list, is_mapping
from ragstone_langchain.messages import JUDGE_TAG

T = TypeVar("T")

_DEPTH = 8  # of wrappers in wrappers that are looked into


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

    return _silent_context().run(untraced)


def start_untraced(call: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
    """Start a task on the running loop, in a context of its own."""

    async def untraced() -> T:
        with tracing_context(enabled=False):
            return await call()

    return _silent_context().run(asyncio.get_running_loop().create_task, untraced())


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


class _Silent(BaseCallbackHandler):
    """Stands where a configure hook would put the app's handler, and does nothing."""

    run_inline = True


_SILENT = _Silent()


def _silent_context() -> contextvars.Context:
    """Return a context that inherits nothing, and in which no hook finds a handler of the app."""
    context = contextvars.Context()
    # A fresh context is not enough: a variable may have a handler as its default, or be filled by the environment.
    for variable, _, handler_class, _ in _configure_hooks:
        if handler_class is not None or context.run(variable.get) is not None:
            context.run(variable.set, _SILENT)
    return context
