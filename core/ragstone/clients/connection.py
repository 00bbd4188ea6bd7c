"""The `openai` package behind two functions: run a flow of calls from a thread, or on an event loop."""

import asyncio
import importlib
import importlib.util
import random
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from ragstone.clients.access import Access, AnswerError
from ragstone.judging.refusals import NO_QUOTA, read_refusal

if TYPE_CHECKING:
    import openai

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_SHORTEST = 0.001

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

    def __init__(
        self, access: Access, *, timeout: float, max_retries: int, max_concurrency: int, max_reply_bytes: int
    ) -> None:
        check_installed()
        self.access = access
        self._timeout = timeout
        self._max_retries = max_retries
        self._max_concurrency = max_concurrency
        self._max_reply_bytes = max_reply_bytes
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
            client, tries = self._open(), _Tries(self._timeout, self._max_retries)
            answer: bytes | Exception | None = None
            try:
                while True:
                    answer = self._answer(client, _advance(flow, answer), tries)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def call(self, ask: "Callable[[openai.OpenAI], T]", *, once: bool = False) -> T:
        """Have the package's client asked, blocking the calling thread; `once`: without retries."""
        with self._slots:
            client = self._open()
            try:
                return ask(_with_retries(client, 0 if once else self._max_retries))
            except load_openai().APIError as error:
                self._explained(error)
                raise

    async def arun(self, flow: "Flow[T]") -> T:
        """Run `flow` on the running event loop."""
        if "openai" not in sys.modules:  # a second or two, for which the loop should not stand still
            await asyncio.to_thread(load_openai)
        here = await self._open_here()
        async with here.slots:
            tries = _Tries(self._timeout, self._max_retries)
            answer: bytes | Exception | None = None
            try:
                while True:
                    answer = await self._aanswer(here.client, _advance(flow, answer), tries)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def _answer(self, client: "openai.OpenAI", call: Call, tries: "_Tries") -> bytes | Exception:
        while True:
            try:
                return tries.ask(client, call).http_response.content  # type: ignore[no-any-return]
            except AnswerError as error:
                return error
            except load_openai().APIError as error:
                wait = tries.wait_after(error)
                if wait is None:
                    return self._explained(error, tries)
            time.sleep(wait)

    async def _aanswer(self, client: "openai.AsyncOpenAI", call: Call, tries: "_Tries") -> bytes | Exception:
        while True:
            try:
                return (await tries.ask(client, call)).http_response.content  # type: ignore[no-any-return]
            except AnswerError as error:
                return error
            except load_openai().APIError as error:
                wait = tries.wait_after(error)
                if wait is None:
                    return self._explained(error, tries)
            await asyncio.sleep(wait)

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
                self._client = client = self._made(load_openai().OpenAI, bounded_client)
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
            client = self._made(load_openai().AsyncOpenAI, bounded_async_client)
            closing = asyncio.Lock()
            here = _OnLoop(client, asyncio.Semaphore(self._max_concurrency), closing, _guard(client, closing))
            self._loops[loop] = here
        await here.guard.__anext__()
        return here

    def _made(self, kind: "type[Client]", http_client: Callable[[Access, int], Any]) -> "Client":
        theirs = not self.access.ambient
        client = kind(
            api_key=self.access.key,
            base_url=self.access.url,
            timeout=self._timeout,
            max_retries=0,  # `_Tries` tries again
            http_client=http_client(self.access, self._max_reply_bytes),
            default_headers={
                "Accept-Encoding": "identity",  # a reply's size is then what is read of it
                # else OPENAI_CUSTOM_HEADERS may bring another key
                **({"Authorization": f"Bearer {self.access.key}"} if theirs else {}),
            },
        )
        if theirs:  # OPENAI_ORG_ID and OPENAI_PROJECT_ID are no other server's business
            client.organization = None
            client.project = None
        return client

    def _explained(self, error: "openai.APIError", tries: "_Tries | None" = None) -> Exception:
        """Return the error, its message without the key and, if the server was not reached, with its name."""
        if isinstance(error.__cause__, AnswerError):  # some releases wrap what `_Body` raises
            return error.__cause__
        if isinstance(error.__cause__, load_openai().APITimeoutError):
            error = cast("openai.APIError", error.__cause__)
        message = self.access.redact(error.message)
        if isinstance(error, load_openai().APITimeoutError):
            count = f" and {tries.made} tries" if tries is not None and tries.made > 1 else ""
            message = f"no answer from {self.access.shown} within {self._timeout:g} s{count}: raise timeout?"
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


class _Tries:
    """The tries of one call, all of them within its time."""

    def __init__(self, seconds: float, retries: int) -> None:
        self._until = time.monotonic() + seconds
        self._retries = retries
        self.made = 0

    def ask(self, client: "openai.OpenAI | openai.AsyncOpenAI", call: Call) -> Any:  # noqa: ANN401
        """Begin a try, in the variant that hands out the body unread."""
        self.made += 1
        arguments: dict[str, Any] = {**call.arguments, "timeout": max(_SHORTEST, self._until - time.monotonic())}
        methods: dict[str, Any] = {
            "chat": client.chat.completions.with_raw_response.create,
            "embeddings": client.embeddings.with_raw_response.create,
            "models": client.models.with_raw_response.list,
        }
        return methods[call.endpoint](**arguments)

    def wait_after(self, error: "openai.APIError") -> float | None:
        """Return the seconds to wait before the next try; None where there is none."""
        if self.made > self._retries or not _may_pass(error):
            return None
        wait = read_refusal(error).wait
        if not wait:
            wait = min(_FIRST_WAIT * 2 ** (self.made - 1), _LONGEST_WAIT) * random.uniform(0.75, 1)  # noqa: S311
        return wait if time.monotonic() + wait < self._until else None


def _may_pass(error: "openai.APIError") -> bool:
    """Whether an error may be gone at the next try."""
    if isinstance(error, load_openai().APIConnectionError):
        return not isinstance(error.__cause__, AnswerError)
    status: int = getattr(error, "status_code", 0)
    return str(error.code) not in NO_QUOTA and (status in (408, 409, 429) or status >= 500)


def _with_retries(client: "openai.OpenAI", retries: int) -> "openai.OpenAI":
    copy = client.with_options(max_retries=retries)
    copy.organization = client.organization  # which the copy takes from the environment where there is none
    copy.project = client.project
    return copy


class _Body:
    """A reply's body as it comes in: never more than so many bytes, nor for longer than the call's time."""

    def __init__(self, server: Access, request: Any, response: Any, most: int) -> None:  # noqa: ANN401 - httpx's
        self._server, self._request, self._response, self._most = server, request, response, most
        self._until = time.monotonic() + float(request.extensions["timeout"]["read"])
        self._chunks: list[bytes] = []
        self._size = 0
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise AnswerError(f"{server.shown} answered with {encoding!r}, though only plain bytes were asked for")
        if int(response.headers.get("content-length") or 0) > most:
            self._refuse()

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._most:
            self._refuse()
        if time.monotonic() > self._until:
            raise load_openai().APITimeoutError(request=self._request)
        self._chunks.append(chunk)

    def whole(self) -> Any:  # noqa: ANN401
        """Return the response, read."""
        response = self._response
        return type(response)(
            response.status_code,
            headers=response.headers,
            content=b"".join(self._chunks),
            request=self._request,
            extensions=response.extensions,
            history=response.history,
        )

    def _refuse(self) -> None:
        raise AnswerError(
            f"{self._server.shown} answered with more than {self._most:,} bytes:"
            " check the address, or raise max_reply_bytes"
        )


def bounded_client(server: Access, most: int) -> Any:  # noqa: ANN401
    """Return an HTTP client for the package that reads so many bytes of a reply at most, in the call's time."""
    from openai import DefaultHttpxClient

    class Bounded(DefaultHttpxClient):
        def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401
            options["stream"] = True
            response = super().send(request, **options)
            try:
                body = _Body(server, request, response, most)
                for chunk in response.iter_raw():
                    body.add(chunk)
                return body.whole()
            finally:
                response.close()

    return Bounded()


def bounded_async_client(server: Access, most: int) -> Any:  # noqa: ANN401
    """Return an HTTP client for the package's async half; otherwise as `bounded_client`."""
    from openai import DefaultAsyncHttpxClient

    class Bounded(DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401
            options["stream"] = True
            response = await super().send(request, **options)
            try:
                body = _Body(server, request, response, most)
                async for chunk in response.aiter_raw():
                    body.add(chunk)
                return body.whole()
            finally:
                await response.aclose()

    return Bounded()


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
