"""A framework's model object that the app may call too: one event loop awaits it, and threads call its sync method."""

import weakref
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from ragstone.background import SHORT_LOOPS, Async, Sync, begin, in_daemon, result, running_loop
from ragstone.held_keys import secrets_in

M = TypeVar("M")
T = TypeVar("T")

JUDGE_TAG = "ragstone:judge"
"""Marks all that a judge does in a framework's traces, so that handlers can distinguish it from the app's."""

# By the model's id, because a model may lack a hash.
_HOMES: dict[int, weakref.ref[AbstractEventLoop]] = {}
_URLS = ("base_url", "api_base", "openai_api_base", "azure_endpoint", "endpoint_url", "endpoint")


class SharedModel(Generic[M]):
    """A framework's model object, which the app may call too.

    A client's connections belong to the event loop that opened them; on a second one they break, for the app as well.
    So one loop awaits an object, whoever shares it: the one that ran when it was first shared, else the first that
    awaits it. All others call its sync method in a thread. Where an object lacks one of the two, the other is called.
    """

    def __init__(self, given: M, identity: str | None, *, trace: bool) -> None:
        self._given = given
        self.identity = identity
        self._trace = trace
        is_home(given)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._original())

    @property
    def base_url(self) -> str | None:
        """The address of the model's server, if the object has one."""
        return self._text(_URLS)

    def _original(self) -> M:
        """The app's object."""
        return self._given

    def _layers(self) -> Sequence[object]:
        """The object and what it wraps, from the outside in."""
        return (self._original(),)

    def _text(self, names: Sequence[str]) -> str | None:
        """The first text that the object has under one of the names."""
        texts = (attribute(layer, name) for layer in self._layers() for name in names)
        return next((text for text in texts if isinstance(text, str) and text), None)

    def _lacks_method(self, error: Exception) -> bool:
        """Whether an error says that the object lacks the method which was called."""
        return isinstance(error, NotImplementedError)

    def _call(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        try:
            return sync()
        except Exception as error:
            if not self._lacks_method(error):
                raise
        return result(begin(asynchronous()))

    async def _acall(self, sync: Sync[T], asynchronous: Async[T]) -> T:
        if is_home(self._original()):
            try:
                return await asynchronous()
            except Exception as error:
                # Another object with the same client may have left it connections.
                if not self._lacks_method(error) and str(error) != "Event loop is closed":
                    raise
        return await in_daemon(partial(self._call, sync, asynchronous))


def attribute(thing: object, name: str) -> object:
    """An attribute of an object; None where reading it fails."""
    try:
        return getattr(thing, name, None)
    except Exception:
        # A model that is yet to be configured may lack a key or a package.
        return None


def is_home(model: object) -> bool:
    """Whether the running loop is the one that awaits a model object, or becomes it."""
    running = running_loop()
    if running is None or running in SHORT_LOOPS:
        return False
    if id(model) not in _HOMES:
        try:
            weakref.finalize(model, _HOMES.pop, id(model), None)
        except TypeError:
            # An object of a class with __slots__ cannot be followed, so no loop awaits it.
            return False
    return _HOMES.setdefault(id(model), weakref.ref(running))() is running
