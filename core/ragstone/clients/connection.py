"""The `openai` package on ragstone's own event loop, for threads and for other event loops alike."""

import asyncio
import importlib
import importlib.util
import os
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from ragstone.background import Calls, begin, in_daemon, result
from ragstone.clients.access import NO_KEY, Access, AnswerError
from ragstone.judging.refusals import NO_QUOTA
from ragstone.options import Count, Seconds, Text, checked
from ragstone.public import public_url

if TYPE_CHECKING:
    from concurrent.futures import Future

    import openai
    from typing_extensions import Self

T = TypeVar("T")
Ask = Callable[..., Awaitable[bytes]]
"""Returns the body of the server's answer, given a path and a body (none: by GET); raises openai.APIError."""
Exchange = Callable[[Ask], Coroutine[Any, Any, T]]


@dataclass(frozen=True, slots=True)
class _Opened:
    pid: int
    client: "openai.AsyncOpenAI"
    http: Any
    slots: asyncio.Semaphore
    calls: Calls
    # The tasks of the calls: one that is cancelled ends later.
    tasks: "set[asyncio.Task[Any] | None]"


class Client:
    """A client of the `openai` package on ragstone's own event loop.

    Pooled connections belong to the loop that opened them; so they serve every thread and every event loop. All of it
    begins with the first call, and again with a call after closing or in a forked process.

    Attributes:
        tries_again: A call that fails is tried again here, unless it is made with `max_retries=0`, as runs make it,
            which try it again themselves.
    """

    tries_again = True

    def __init__(
        self,
        model: str,
        access: Access,
        timeout: float,
        max_retries: int,
        max_concurrency: int,
        max_reply_bytes: int = 10_000_000,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise ImportError('the openai package is missing: pip install "ragstone[openai]"', name="openai")
        self.model: str = checked("model", model, Text)
        self.max_concurrency: int = checked("max_concurrency", max_concurrency, Count)
        self._access = access
        self._timeout: float = checked("timeout", timeout, Seconds)
        self._max_retries: int = checked("max_retries", max_retries, Annotated[int, Field(strict=True, ge=0)])
        self._max_reply_bytes: int = checked("max_reply_bytes", max_reply_bytes, Count)
        self._lock = threading.Lock()
        self._answered = False
        self._opened: _Opened | None = None
        self._close: Callable[[], object] = bool

    @property
    def base_url(self) -> str:
        """The server's address, without keys."""
        return public_url(self._access.url).rstrip("/")

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, which is taken out of every error text."""
        return self._access.secrets

    def close(self) -> None:
        """Close the connections; calls in flight are cancelled, a later one opens new connections."""
        with self._lock:
            self._close()
            self._opened = None

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self._access.shown!r})"

    def _run(self, flow: Exchange[T]) -> T:
        """Run a flow, blocking the calling thread."""
        return result(self._begin(flow))

    async def _arun(self, flow: Exchange[T], max_retries: int | None = None) -> T:
        """Run a flow for the running event loop."""
        # Loading takes a second or two, for which the loop should not stand still.
        if "openai" not in sys.modules:
            await in_daemon(load_openai)
        return await asyncio.wrap_future(self._begin(flow, max_retries))

    def _begin(self, flow: Exchange[T], max_retries: int | None = None) -> "Future[T]":
        with self._lock:
            if self._opened is None or self._opened.pid != os.getpid():
                self._opened = self._open()
                self._close = close = weakref.finalize(self, _close_opened, self._opened)
                # The loop's thread ends with the program.
                close.atexit = False
            retries = self._max_retries if max_retries is None else max_retries
            call = begin(self._limited(flow, self._opened, retries))
            self._opened.calls.add(call)
        return call

    def _open(self) -> _Opened:
        # It is loaded whole before another thread can see a part of it.
        package = load_openai()
        http = _bounded_client(self._access, self._max_reply_bytes)
        theirs = not self._access.ambient
        client: openai.AsyncOpenAI = package.AsyncOpenAI(
            api_key=self._access.key,
            base_url=self._access.url,
            timeout=self._timeout,
            max_retries=self._max_retries,
            http_client=http,
            default_headers={
                # A reply's size is then what is read of it.
                "Accept-Encoding": "identity",
                # Else OPENAI_CUSTOM_HEADERS may bring another key.
                **({"Authorization": f"Bearer {self._access.key}"} if theirs else {}),
            },
        )
        # OPENAI_ORG_ID and OPENAI_PROJECT_ID are no other server's business.
        if theirs:
            client.organization = client.project = None
        return _Opened(os.getpid(), client, http, asyncio.Semaphore(self.max_concurrency), Calls(), set())

    async def _limited(self, flow: Exchange[T], opened: _Opened, max_retries: int) -> T:
        task = asyncio.current_task()
        opened.tasks.add(task)
        try:
            async with opened.slots:
                return await asyncio.wait_for(flow(partial(self._ask, opened.client, max_retries)), self._timeout)
        except (asyncio.TimeoutError, TimeoutError):
            error = load_openai().APITimeoutError(opened.http.build_request("POST", self._access.url))
            raise self._explained(error) from None
        finally:
            opened.tasks.discard(task)

    async def _ask(
        self, client: "openai.AsyncOpenAI", max_retries: int, path: str, body: dict[str, Any] | None = None
    ) -> bytes:
        tries: openai.RequestOptions = {"max_retries": max_retries}
        try:
            if body is None:
                content = await client.get(path, cast_to=bytes, options=tries)
            else:
                content = await client.post(path, cast_to=bytes, body=body, options=tries)
        except load_openai().APIError as error:
            raise self._explained(error) from error.__cause__
        self._answered = True
        return content

    def _explained(self, error: "openai.APIError") -> Exception:
        """Return the error, its message without the key and, if the server was not reached, with its name."""
        if isinstance(error.__cause__, AnswerError):
            return error.__cause__
        message = self._access.redact(error.message)
        if isinstance(error, load_openai().APITimeoutError):
            message = f"no answer from {self._access.shown} within {self._timeout:g} s: raise timeout?"
        elif isinstance(error, load_openai().APIConnectionError):
            cause = self._access.redact(str(error.__cause__ or message))
            way_out = (
                "is it https, and its certificate in SSL_CERT_FILE?" if "SSL" in cause else "is the server running?"
            )
            message = f"no answer from {self._access.shown} ({cause}): {way_out}"
            # A server that has answered before may come back.
            if self._answered:
                vars(error)["retry_after"] = 0
        elif isinstance(error, load_openai().AuthenticationError) and self._access.key == NO_KEY:
            named = f"name it openai:{self.model} and set OPENAI_BASE_URL={self._access.shown} and OPENAI_API_KEY"
            message = f"no key was sent: {named} ({message})"
        error.message = message
        error.args = (message, *error.args[1:])
        return error


def _close_opened(opened: _Opened) -> None:
    # A forked process holds the connections of its parent.
    if opened.pid == os.getpid():
        opened.calls.cancel()
        begin(_closed(opened))


async def _closed(opened: _Opened) -> None:
    if tasks := {task for task in opened.tasks if task is not None}:
        # Else a call that is still to connect would ask a closed client.
        await asyncio.wait(tasks)
    await opened.client.close()


def _bounded_client(server: Access, most: int) -> Any:  # noqa: ANN401 - httpx's
    """Return an HTTP client for the package that reads so many bytes of a reply at most."""

    class Bounded(load_openai().DefaultAsyncHttpxClient):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401
            theirs: Any = super()
            response: Any = await theirs.send(request, **{**options, "stream": True})
            try:
                content = await self._read(response)
            finally:
                await response.aclose()
            headers = response.headers.copy()
            if response.status_code == 429 and any(code.encode() in content for code in NO_QUOTA):
                # Waiting brings no new quota, and the package obeys this header.
                headers["x-should-retry"] = "false"
            return type(response)(
                response.status_code,
                headers=headers,
                content=content,
                request=request,
                extensions=response.extensions,
                history=response.history,
            )

        async def _read(self, response: Any) -> bytes:  # noqa: ANN401
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity":
                raise AnswerError(f"{server.shown} answered with {encoding!r}, though only plain bytes were asked for")
            content = bytearray()
            if int(response.headers.get("content-length") or 0) <= most:
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > most:
                        break
                else:
                    return bytes(content)
            raise AnswerError(
                f"{server.shown} answered with more than {most:,} bytes: check the address, or raise max_reply_bytes"
            )

    return Bounded()


def load_openai() -> Any:  # noqa: ANN401 - the module
    """Return the `openai` module, importing it the first time."""
    return importlib.import_module("openai")
