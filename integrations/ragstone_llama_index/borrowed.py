"""The app's model object in the judge's hands: found, copied so that it is silent, awaited from one loop only."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Generic, Literal, TypeVar, cast

from pydantic import BaseModel

from ragstone.bridge import Bridge

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_THREADS = 64  # as many calls at once as ragstone.BaseLLM makes


class Borrowed(Generic[M]):
    """A model object that was given, or else the one in LlamaIndex' `Settings`, looked up anew for each call.

    Calls are made on a shallow copy, which shares clients, limits and settings with the object: the object itself
    is never changed. A client keeps connections of the event loop that it was awaited on, and fails the app when
    it is awaited on another. So each object has one home, whoever borrows it: the loop that ran when it was first
    borrowed, else the first that awaits it. Any other loop gets a thread and the object's sync half.

    Args:
        given: The object; None: that of `Settings`.
        setting: Its name there.
        changes: Fields that the copy has otherwise.
        blocks: Whether the object's async half only calls its sync half, and would hold up the loop.
        in_threads: True: always the sync half in threads; False: always the async half on the running loop.
    """

    def __init__(
        self,
        given: M | None,
        setting: Literal["llm", "embed_model"],
        *,
        changes: Callable[[], Mapping[str, object]],
        blocks: Callable[[M], bool],
        in_threads: bool | None,
    ) -> None:
        self._given = given
        self._setting = setting
        self._changes = changes
        self._blocks = blocks
        self._in_threads = in_threads
        self._lock = threading.Lock()
        if given is not None:
            _home_of(given)
        self._copied: tuple[M, M] | None = None
        self._bridge: Bridge | None = None

    def look(self) -> M | None:
        """Return the object if there is one already; nothing is made for it."""
        return self._set() if self._given is None else self._given

    def take(self) -> M:
        """Return the copy to call.

        Raises:
            ValueError: None was given, and `Settings` has none.
        """
        original = self.look()
        if original is None:
            original = self._default()
        with self._lock:
            if self._copied is None or self._copied[0] is not original:
                copy = original.model_copy(update=dict(self._changes()))
                self._copied = (original, copy)
            return self._copied[1]

    def is_awaited_here(self, model: M) -> bool:
        """Whether `model`, which `take` returned, may be awaited on the running loop."""
        if self._in_threads is not None:
            return not self._in_threads
        original = self.look()
        return original is not None and not self._blocks(model) and _home_of(original).is_here()

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Await a blocking call, made in a thread."""
        with self._lock:
            if self._bridge is None or self._bridge.forked:
                self._bridge = Bridge(_THREADS)
            bridge = self._bridge
        return await bridge.in_thread(call)

    def _set(self) -> M | None:
        from llama_index.core import Settings

        # Not through its property, which gives the object another callback manager and makes a default one.
        return cast("M | None", getattr(Settings, f"_{self._setting}", None))

    def _default(self) -> M:
        from llama_index.core import Settings

        try:
            return cast("M", getattr(Settings, self._setting))
        except (ImportError, ValueError) as error:
            said = " ".join(str(error).replace("*", " ").split())
            raise ValueError(
                f"{self._setting}: none was given, and Settings.{self._setting} has none: pass one, or set "
                f"llama_index.core.Settings.{self._setting} ({said})"
            ) from error


class _Home:
    """The one event loop from which a model object is awaited."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: weakref.ref[asyncio.AbstractEventLoop] | None = None
        with suppress(RuntimeError):  # none runs yet: the first to ask is it
            self._loop = weakref.ref(asyncio.get_running_loop())

    def is_here(self) -> bool:
        running = asyncio.get_running_loop()
        with self._lock:
            if self._loop is None:
                self._loop = weakref.ref(running)
            return self._loop() is running  # a loop that is gone stays the home: its connections may be left


# By the object's id: models can be neither hashed nor marked. What is known of one goes when it goes.
_HOMES: dict[int, tuple["weakref.ref[BaseModel]", _Home]] = {}
_LOCK = threading.RLock()  # a model may go while it is held


def _home_of(model: BaseModel) -> _Home:
    """Return the home of a model object, the same for every adapter that borrows it."""
    key = id(model)
    with _LOCK:
        if key not in _HOMES or _HOMES[key][0]() is not model:
            _HOMES[key] = weakref.ref(model, lambda _: _HOMES.pop(key, None)), _Home()
        return _HOMES[key][1]


def defined_by(model: object, method: str) -> type:
    """Return the class that defines a method of an object.

    The methods themselves cannot be compared: LlamaIndex wraps them anew at each access.

    Example:
        >>> defined_by(True, "bit_length").__name__
        'int'
    """
    return next(kind for kind in type(model).__mro__ if method in vars(kind))
