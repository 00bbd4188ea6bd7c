"""The `openai` package behind two functions: run a flow of calls from a thread, or on an event loop."""

import asyncio
import importlib
import importlib.util
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ragstone.clients.access import Access

if TYPE_CHECKING:
    import openai

T = TypeVar("T")
Client = TypeVar("Client", "openai.OpenAI", "openai.AsyncOpenAI")


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP call, with the arguments that the `openai` package's method takes."""

    endpoint: Literal["chat", "embeddings", "models"]
    arguments: dict[str, Any]


Flow = Generator[Call, bytes, T]
"""Yields calls, receives bodies (or has the `openai.APIError` thrown in), returns the result; does no I/O."""


@dataclass(frozen=True, slots=True)
class _OnLoop:
    """What belongs to one event loop and must not outlive it."""

    client: "openai.AsyncOpenAI"
    slots: asyncio.Semaphore
    closing: asyncio.Lock
    guard: AsyncGenerator[None, None]


class Connection:
    """Keeps the clients of the `openai` package: one for all threads, one per event loop.

    Pooled connections belong to the loop that opened them, so no client is ever used on a second loop. All of it is
    made on first use, and made again if used after closing. The options are those of `OpenAICompatible`.
    """

    def __init__(self, access: Access, *, timeout: float, max_retries: int, max_concurrency: int) -> None:
        check_installed()
        self.access = access
        self._timeout = timeout
        self._max_retries = max_retries
        self._max_concurrency = max_concurrency
        self._slots = threading.BoundedSemaphore(max_concurrency)
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None
        self._close: weakref.finalize[[], Any] | None = None
        # Not weak: what belongs to a loop refers to it, so that a weak key would never go away either.
        self._loops: dict[asyncio.AbstractEventLoop, _OnLoop] = {}
        weakref.finalize(self, _dropped, self._loops).atexit = False

    def run(self, flow: "Flow[T]") -> T:
        """Run `flow`, blocking the calling thread."""
        with self._slots:  # held while waiting to retry, so that a server that is overloaded gets less
            client = self._open()
            answer: bytes | Exception | None = None
            try:
                while True:
                    call = _advance(flow, answer)
                    try:
                        answer = _method(client, call)(**call.arguments).http_response.content
                    except load_openai().APIError as error:
                        answer = self._explained(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def call(self, ask: "Callable[[openai.OpenAI], T]", *, once: bool = False) -> T:
        """Have the package's client asked, blocking the calling thread; `once`: without retries."""
        with self._slots:
            client = self._open()
            try:
                return ask(_once(client) if once else client)
            except load_openai().APIError as error:
                self._explained(error)
                raise

    async def arun(self, flow: "Flow[T]") -> T:
        """Run `flow` on the running event loop."""
        if "openai" not in sys.modules:  # a second or two, for which the loop should not stand still
            await asyncio.to_thread(load_openai)
        here = await self._open_here()
        async with here.slots:
            answer: bytes | Exception | None = None
            try:
                while True:
                    call = _advance(flow, answer)
                    try:
                        answer = (await _method(here.client, call)(**call.arguments)).http_response.content
                    except load_openai().APIError as error:
                        answer = self._explained(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connections that calls from threads opened."""
        with self._lock:
            close, self._client, self._close = self._close, None, None
        if close is not None:
            close()

    async def aclose(self) -> None:
        """Close the connections that calls on the running event loop opened."""
        with self._lock:
            here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.guard.aclose()

    def _open(self) -> "openai.OpenAI":
        with self._lock:
            client = self._client
            if client is None:
                self._client = client = self._made(load_openai().OpenAI)
                self._close = weakref.finalize(self, client.close)  # runs at exit, too
            return client

    async def _open_here(self) -> _OnLoop:
        loop = asyncio.get_running_loop()
        with self._lock:
            here = self._loops.get(loop)
            if here is not None and not here.client.is_closed():
                return here
            for old in [old for old in self._loops if old.is_closed()]:
                del self._loops[old]
            client = self._made(load_openai().AsyncOpenAI)
            closing = asyncio.Lock()
            here = _OnLoop(client, asyncio.Semaphore(self._max_concurrency), closing, _guard(client, closing))
            self._loops[loop] = here
        await here.guard.__anext__()
        return here

    def _made(self, kind: "type[Client]") -> "Client":
        theirs = not self.access.ambient
        client = kind(
            api_key=self.access.key,
            base_url=self.access.url,
            timeout=self._timeout,
            max_retries=self._max_retries,
            # else OPENAI_CUSTOM_HEADERS may bring another key
            default_headers={"Authorization": f"Bearer {self.access.key}"} if theirs else None,
        )
        if theirs:  # OPENAI_ORG_ID and OPENAI_PROJECT_ID are no other server's business
            client.organization = None
            client.project = None
        return client

    def _explained(self, error: "openai.APIError") -> "openai.APIError":
        """Return the error, its message without the key and, if the server was not reached, with its name."""
        message = self.access.redact(error.message)
        if isinstance(error, load_openai().APITimeoutError):
            message = f"no answer from {self.access.shown} within {self._timeout:g} s: raise timeout?"
        elif isinstance(error, load_openai().APIConnectionError):
            cause = self.access.redact(str(error.__cause__ or message))
            message = f"no answer from {self.access.shown} ({cause}): is the server running?"
        error.message = message
        error.args = (message, *error.args[1:])
        return error


async def _guard(client: "openai.AsyncOpenAI", closing: asyncio.Lock) -> AsyncGenerator[None, None]:
    """Close `client` when this generator is closed.

    An event loop that is shut down in order, as by `asyncio.run`, closes the generators that began on it
    while it still runs. Nothing else tells that a loop is about to end.
    """
    try:
        yield
    finally:
        async with closing:
            await client.close()


def _dropped(loops: dict[asyncio.AbstractEventLoop, _OnLoop]) -> None:
    """Have the connections closed, each on its loop, of a `Connection` that went away, perhaps in another thread."""
    for loop, here in loops.items():
        with suppress(RuntimeError):  # the loop is closed, and has closed them
            loop.call_soon_threadsafe(_begin_to_close, loop, here)


def _begin_to_close(loop: asyncio.AbstractEventLoop, here: _OnLoop) -> None:
    _Closing(_close_here(here), loop=loop)


class _Closing(asyncio.Task[None]):
    """Is not stopped half-way, some steps before its end: a loop that ends cancels its tasks, and awaits them."""

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - as its base class has it
        return False


async def _close_here(here: _OnLoop) -> None:
    async with here.closing:  # the guard waits for it, if the loop was about to end before this began
        await here.client.close()
    with suppress(RuntimeError):  # the loop is closing it
        await here.guard.aclose()


def _advance(flow: "Flow[T]", answer: bytes | Exception | None) -> Call:
    if isinstance(answer, Exception):
        return flow.throw(answer)
    return next(flow) if answer is None else flow.send(answer)


def _method(client: "openai.OpenAI | openai.AsyncOpenAI", call: Call) -> Callable[..., Any]:
    """Return the method for a call, in the variant that hands out the body unread."""
    if call.endpoint == "chat":
        return client.chat.completions.with_raw_response.create
    if call.endpoint == "embeddings":
        return client.embeddings.with_raw_response.create
    return client.models.with_raw_response.list


def _once(client: "openai.OpenAI") -> "openai.OpenAI":
    """Return the client without retries, for what must not happen twice where only the answer got lost."""
    once = client.with_options(max_retries=0)
    once.organization = client.organization  # which the copy takes from the environment where there is none
    once.project = client.project
    return once


def check_installed() -> None:
    """Check, without importing it, that the `openai` package is there.

    Raises:
        ImportError: It is not.
    """
    if importlib.util.find_spec("openai") is None:
        raise ImportError('the openai package is missing: pip install "ragstone[openai]"', name="openai")


def load_openai() -> Any:  # noqa: ANN401 - the module
    """Return the `openai` module, importing it the first time."""
    return importlib.import_module("openai")
