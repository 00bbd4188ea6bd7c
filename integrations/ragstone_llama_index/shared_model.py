"""A silent copy of the app's model: what a judge asks it is hidden from the app, and awaited on one event loop only."""

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from llama_index.core.callbacks import CallbackManager
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags
from llama_index_instrumentation.span import active_span_id
from pydantic import BaseModel

from ragstone.adapters.shared_model import JUDGE_TAG as JUDGE_TAG
from ragstone.adapters.shared_model import SharedModel
from ragstone.background import Async, Sync, in_daemon

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class LlamaIndexModel(SharedModel[M | None], ABC, Generic[M]):
    """A model object of the app, or the one in LlamaIndex' `Settings`, which is looked up for each call.

    Calls go to a shallow copy, which shares clients, limits and settings with the object: the object itself is never
    changed.
    """

    _setting: ClassVar[Literal["llm", "embed_model"]]
    _kind: ClassVar[type[BaseModel]]
    _wanted: ClassVar[str]
    """The kind in words, and what to pass."""
    _apps_own: ClassVar[tuple[str, ...]]
    """Fields of the object that the copy does not have."""

    def __init__(self, model: M | None, *, identity: str | None, trace: bool) -> None:
        if not isinstance(model, self._kind | None):
            raise TypeError(
                f"{self._setting}: {type(model).__name__} is not a LlamaIndex {self._wanted}, or None for "
                f"Settings.{self._setting}"
            )
        super().__init__(model, identity, trace=trace)
        self._copied: tuple[M, M] | None = None

    @property
    def model(self) -> str:
        """The name that the model gives itself, else its class; what stands for it while `Settings` has none."""
        original = self._original()
        if original is None:
            return f"Settings.{self._setting}"
        name = self._name_of(original)
        return name if name and name != "unknown" else type(original).__name__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @abstractmethod
    def _name_of(self, model: M) -> str | None:
        """The name that a model gives itself."""

    @abstractmethod
    def _only_calls_sync(self, model: M) -> bool:
        """Whether the async method only calls the sync one, which would block the event loop."""

    def _original(self) -> M | None:
        """The app's object; None where there is none, and LlamaIndex cannot make its default either."""
        with suppress(ValueError):
            return self._found()
        return None

    @contextmanager
    def _hidden(self) -> Generator[M, None, None]:
        """Give the copy to call, tagged as a judge's and hidden from the app. ValueError: `Settings` has no object."""
        original, copied = self._found(), self._copied
        if copied is None or copied[0] is not original:
            silent = {} if self._trace else {"callback_manager": _SilentCallbacks()}
            copied = original, original.model_copy(update={**dict.fromkeys(self._apps_own), **silent})
            self._copied = copied
        with ExitStack() as undo:
            # The app's own tags stay.
            undo.enter_context(instrument_tags({**active_instrument_tags.get(), JUDGE_TAG: True}))
            if not self._trace:
                undo.callback(active_span_id.reset, active_span_id.set(None))
            # All instrumentations of OpenTelemetry load this package.
            if not self._trace and "opentelemetry.instrumentation" in sys.modules:
                from opentelemetry.instrumentation.utils import suppress_instrumentation

                undo.enter_context(suppress_instrumentation())
            yield copied[1]

    async def _ainvoke(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        """Call the model for the running loop, unless its async method would block that."""
        if self._only_calls_sync(self._found()):
            return await in_daemon(sync)
        return await self._acall(sync, asynchronous)

    def _found(self) -> M:
        """The app's object, which keeps its callback manager."""
        from llama_index.core import Settings

        if self._given is not None:
            return self._given
        try:
            found: list[M] = []
            for _ in range(2):
                settings = copy.copy(Settings)
                # Else each look would give the model the manager of Settings.
                settings.callback_manager = cast("Any", None)
                found.append(getattr(settings, self._setting))
            # Two looks find two objects where there was none, and LlamaIndex made its default.
            default: M = getattr(Settings, self._setting) if found[0] is not found[1] else found[0]
            return default
        except (ImportError, ValueError) as error:
            reason = " ".join(str(error).replace("*", " ").split())
            raise ValueError(
                f"{self._setting}: there is none here or in Settings.{self._setting}: pass one, or set "
                f"llama_index.core.Settings.{self._setting} ({reason})"
            ) from error


def defined_by(model: object, method: str) -> type:
    """The class that defines a method; the methods themselves are wrapped anew at each access."""
    return next(kind for kind in type(model).__mro__ if method in vars(kind))


class _SilentCallbacks(CallbackManager):
    """A manager without handlers. `CallbackManager([])` would take the global one and keep every event."""

    def __init__(self) -> None:
        self.handlers = []

    def on_event_start(self, *args: Any, **kwargs: Any) -> str:  # noqa: ANN401, ARG002 - as CallbackManager has it
        """Send nothing."""
        return ""

    def on_event_end(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Send nothing."""

    start_trace = end_trace = on_event_end
