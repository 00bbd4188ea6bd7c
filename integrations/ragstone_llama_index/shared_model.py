"""A silent copy of the app's model, awaited on one event loop only."""

import asyncio
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel

from ragstone.bridge import Bridge
from ragstone.errors import secrets_in
from ragstone.identity import settings_of
from ragstone.plain import as_dict
from ragstone_llama_index.tracing import SilentCallbacks

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_THREADS = 64  # as many calls at once as ragstone.BaseLLM makes


class SharedModel(ABC, Generic[M]):
    """A model object of the app, or the one in LlamaIndex' `Settings`, which is looked up for each call.

    Calls go to a shallow copy, which shares clients, limits and settings with the object: the object itself is never
    changed. A client keeps connections of the event loop that it was awaited on, and fails the app when it is awaited
    on another. So each object has one home loop, whoever shares it: the loop that ran when it was first shared, else
    the first that awaits it. Any other loop gets a thread and the object's sync half.

    `setting` is its name in `Settings`; `changes` are fields that the copy has otherwise.
    """

    one_loop: ClassVar[bool] = True  # `ragstone.evaluate`, which has a loop of its own, calls the sync half

    def __init__(
        self,
        model: M | None,
        setting: Literal["llm", "embed_model"],
        *,
        changes: Mapping[str, object],
        in_threads: bool | None,
        trace: bool,
    ) -> None:
        self._given = model
        self._setting = setting
        self._trace = trace
        self._changes = {**changes, **({} if trace else {"callback_manager": SilentCallbacks()})}
        self._in_threads = in_threads
        self._lock = threading.Lock()
        if model is not None:
            _home_of(model)
        self._copied: tuple[M, M] | None = None
        self._bridge: Bridge | None = None

    @property
    def model(self) -> str:
        """The name that the model gives itself, else its class; what stands for it while `Settings` has none."""
        original = self._original()
        if original is None:
            return f"Settings.{self._setting}"
        name = self._name_of(original)
        return name if name and name != "unknown" else type(original).__name__

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._original())

    @property
    def identity(self) -> dict[str, object]:
        """What makes this judge or embedder, for journals: the model object's settings, without keys."""
        settings = as_dict(settings_of(self._original()))
        return {"class": type(self).__qualname__, "model": self.model, "settings": settings}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @abstractmethod
    def _name_of(self, model: M) -> str | None:
        """Return the name that a model gives itself."""

    @abstractmethod
    def _only_calls_sync(self, model: M) -> bool:
        """Whether the async half only calls the sync half, which would hold up the event loop."""

    def _original(self) -> M | None:
        """Return the app's object, if there is one already; nothing is made for it."""
        from llama_index.core import Settings

        # Not through its property, which gives the object another callback manager and makes a default one.
        setting: M | None = getattr(Settings, f"_{self._setting}", None)
        return setting if self._given is None else self._given

    def _copy(self) -> M:
        """Return the copy to call. It is a ValueError if `Settings` has no object either."""
        original = self._original()
        if original is None:
            original = self._default()
        with self._lock:
            if self._copied is None or self._copied[0] is not original:
                self._copied = original, original.model_copy(update=self._changes)
            return self._copied[1]

    def _is_awaited_here(self, copy: M) -> bool:
        """Whether the copy may be awaited on the running loop."""
        if self._in_threads is not None:
            return not self._in_threads
        original = self._original()
        return original is not None and not self._only_calls_sync(copy) and _is_home(original)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Await a blocking call, made in a thread."""
        with self._lock:
            if self._bridge is None or self._bridge.forked:
                self._bridge = Bridge(_THREADS)
            bridge = self._bridge
        return await bridge.in_thread(call)

    def _default(self) -> M:
        from llama_index.core import Settings

        try:
            default: M = getattr(Settings, self._setting)
            return default
        except (ImportError, ValueError) as error:
            reason = " ".join(str(error).replace("*", " ").split())
            raise ValueError(
                f"{self._setting}: none was given, and Settings.{self._setting} has none: pass one, or set "
                f"llama_index.core.Settings.{self._setting} ({reason})"
            ) from error


# The home loop of each model object by its id, as models can be neither hashed nor marked; an empty list: none yet.
# A loop that is gone stays the home: its connections may be left.
_HOMES: dict[int, tuple["weakref.ref[BaseModel]", "list[weakref.ref[asyncio.AbstractEventLoop]]"]] = {}
_LOCK = threading.RLock()  # a model may go while it is held


def _home_of(model: BaseModel) -> "list[weakref.ref[asyncio.AbstractEventLoop]]":
    key = id(model)
    with _LOCK:
        if key not in _HOMES or _HOMES[key][0]() is not model:
            home: list[weakref.ref[asyncio.AbstractEventLoop]] = []
            with suppress(RuntimeError):  # none runs yet: the first that awaits it is the home
                home.append(weakref.ref(asyncio.get_running_loop()))
            _HOMES[key] = weakref.ref(model, lambda _: _HOMES.pop(key, None)), home
        return _HOMES[key][1]


def _is_home(model: BaseModel) -> bool:
    running = asyncio.get_running_loop()
    with _LOCK:
        home = _home_of(model)
        if not home:
            home.append(weakref.ref(running))
        return home[0]() is running


def defined_by(model: object, method: str) -> type:
    """Return the class that defines a method; the methods themselves are wrapped anew at each access."""
    return next(kind for kind in type(model).__mro__ if method in vars(kind))
