"""A model object that the app and a judge share: what it says of itself, and calls that the app does not see.

Three things lead a LangChain call back to the app, and each is stopped here: what the app keeps in context variables
(callbacks, handlers of `register_configure_hook`), LangSmith's tracing, and callbacks that the model object itself
carries. None of the app's objects is changed. A hook whose handler is its variable's default, or is made by a variable
of the environment, listens still: LangChain has no public way to leave it out.
"""

import asyncio
import contextvars
import sys
from functools import partial
from operator import is_
from typing import Any, TypeVar, cast

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType] - a bare Mapping in it
from pydantic import BaseModel

from ragstone.adapters.shared_model import JUDGE_TAG, SharedModel, attribute
from ragstone.background import Async, Sync
from ragstone.plain import as_count, as_dict

M = TypeVar("M")
T = TypeVar("T")

_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
# Of a binding, of fallbacks, of a configurable, of a sequence, of cached embeddings.
_INSIDE = ("bound", "runnable", "default", "first", "underlying_embeddings")
# Of wrappers in wrappers that are looked into.
_DEPTH = 8
_QUIET: dict[str, Any] = {"callbacks": None, "verbose": False, "config_factories": []}
# What a config may have of these: a dict of steps has runnables.
_CONFIG = ("callbacks",)


class LangChainModel(SharedModel[M]):
    """What the adapters have in common: the object, and calls that are hidden from the app, unless traced."""

    def __init__(self, model: M, *, name: str | None, identity: str | None = None, trace: bool = False) -> None:
        super().__init__(model, identity, trace=trace)
        self.model: str = name or self._text(_NAMES) or type(self._layers()[-1]).__name__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @property
    def async_only(self) -> bool:
        """Whether the object shows that it has an async method alone, as a RunnableLambda may."""
        return any(hasattr(layer, "afunc") and not hasattr(layer, "func") for layer in self._layers())

    def _layers(self) -> list[object]:
        return _layers(self._given)

    def _lacks_method(self, error: Exception) -> bool:
        """Likewise where LangChain says so in words: "use `ainvoke` instead"."""
        return super()._lacks_method(error) or "ainvoke" in str(error)

    def _silent(self) -> M:
        """The model without the callbacks that it carries, of which the app may add some later."""
        return self._given if self._trace else without_callbacks(self._given)

    def _invoke(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model from sync code, hidden from the app."""
        return self._call(*self._hidden(sync, asynchronous))

    async def _ainvoke(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model for the running loop, hidden from the app."""
        return await self._acall(*self._hidden(sync, asynchronous))

    def _hidden(self, sync: Sync[T], asynchronous: Async[T]) -> tuple[Sync[T], Async[T]]:
        if self._trace:
            return sync, asynchronous
        untraced = tracing_context(enabled=False)(sync)
        return partial(contextvars.Context().run, untraced), partial(_await_untraced, asynchronous)


def is_decision_model(model: object) -> bool:
    """Whether a model, or the model inside it, is a decision model of langchain-core 1.8."""
    base: object = getattr(sys.modules.get("langchain_core.decisions.base"), "BaseDecisionModel", None)
    return isinstance(base, type) and any(isinstance(layer, base) for layer in _layers(model))


def input_limit(model: object) -> int | None:
    """The longest prompt in tokens by a model's profile; None if it has none."""
    limits = (as_count(as_dict(attribute(layer, "profile")).get("max_input_tokens")) for layer in _layers(model))
    return next(filter(None, limits), None)


def _layers(model: object) -> list[object]:
    """The object and what it wraps, from the outside in."""
    inside = next((part for name in _INSIDE if (part := attribute(model, name)) is not None), None)
    return [model] if inside is None else [model, *_layers(inside)]


def judge_config(task: str, *, trace: bool) -> RunnableConfig:
    """The config of a judge's run: marked as such and, unless it is to be traced, cut off from the app."""
    # "nostream" keeps its tokens out of LangGraph's `stream_mode="messages"` also where it is traced.
    config = RunnableConfig(
        run_name=f"ragstone:{task}", tags=[JUDGE_TAG, "nostream"], metadata={"ragstone_judge": True}
    )
    if not trace:
        # An empty list in its place makes text models fail.
        config["callbacks"] = CallbackManager(handlers=[])
    return config


async def _await_untraced(call: Async[T]) -> T:
    """Await a task in a context of its own."""

    async def untraced() -> T:
        with tracing_context(enabled=False):
            return await call()

    return await contextvars.Context().run(asyncio.get_running_loop().create_task, untraced())


def without_callbacks(thing: Any, depth: int = 0) -> Any:  # noqa: ANN401 - a runnable, or what one holds
    """A runnable without callbacks of its own: itself where it carries none, else a shallow copy."""
    if depth > _DEPTH:
        return thing
    kind = cast("type[object]", type(thing))
    # Steps, branches and fallbacks are lists.
    if isinstance(thing, (list, tuple)):
        held_items = cast("list[Any]", thing)
        items: list[Any] = [without_callbacks(item, depth + 1) for item in held_items]
        return held_items if all(map(is_, items, held_items)) else type(held_items)(items)
    if not isinstance(thing, (dict, Runnable)):
        return thing
    # Reading attributes would give warnings.
    held = cast("dict[str, Any]", thing if isinstance(thing, dict) else vars(thing))
    names = _CONFIG if held is thing else _QUIET
    changes: dict[str, Any] = {}
    # A copy of it is walked, because other threads may use it.
    for name, value in dict(held).items():
        loud = name in names and value and not isinstance(value, Runnable)
        quiet = _QUIET[name] if loud else without_callbacks(value, depth + 1)
        if quiet is not value:
            changes[name] = quiet
    if not changes:
        return cast("Any", thing)
    if isinstance(thing, BaseModel):
        return thing.model_copy(update=changes)
    if isinstance(thing, dict):
        return {**held, **changes}
    # copy.copy would ask a configurable model for what it does not have yet.
    copied = object.__new__(kind)
    vars(copied).update({**held, **changes})
    return copied
