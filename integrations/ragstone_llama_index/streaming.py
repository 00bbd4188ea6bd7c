"""Streamed responses: listened to while the app reads them, or read for an evaluator and still the user's to read."""

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import AsyncGeneratorType, GeneratorType
from typing import TypeVar, cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from ragstone.errors import describe

Streamed = StreamingResponse | AsyncStreamingResponse
_T = TypeVar("_T")
_READING = "_ragstone_reading"  # the attribute by which a response remembers how it was read
_READ_BEFORE = "its stream was read before, and the response kept no text; evaluated first, it stays readable"
_LOOKING = threading.RLock()  # held while a stream is looked at and replaced, never while it is read

Ended = Callable[[BaseException | None], object]
"""Is called with what a stream raised, `GeneratorExit` where the app left it, or None at its end. It may not raise."""


def listen(stream: Iterable[_T], take: Callable[[_T], object], ended: Ended) -> Generator[_T, None, None]:
    """Return a stream that passes each piece on as it comes; one that is never read holds nothing but itself."""
    try:
        for piece in stream:
            take(piece)
            yield piece
    except BaseException as error:
        ended(error)
        close = getattr(stream, "close", None)
        if isinstance(error, GeneratorExit) and callable(close):  # the app closes what it takes for the stream itself
            close()
        raise
    ended(None)


async def alisten(stream: AsyncIterable[_T], take: Callable[[_T], object], ended: Ended) -> AsyncGenerator[_T, None]:
    """Return an async stream that passes each piece on as it comes."""
    try:
        async for piece in stream:
            take(piece)
            yield piece
    except BaseException as error:
        ended(error)
        if isinstance(error, GeneratorExit) and isinstance(stream, AsyncGenerator):
            await stream.aclose()
        raise
    ended(None)


@dataclass(frozen=True, slots=True)
class StreamText:
    """A response's text, or None and what is known of why."""

    text: object
    problem: str | None = None


def known_text(response: Streamed) -> StreamText | None:
    """Return what is known of a stream's text without reading it; None: it has yet to be read."""
    with _LOOKING:
        shared: _SharedStream | None = vars(response).get(_READING)
        if shared is not None:
            return shared.result
        stream: object = response.response_gen
        if response.response_txt is None:
            if not _is_begun(stream):
                return None
            vars(response)[_READING] = lost = _SharedStream(response)
            lost.result = StreamText(None, _READ_BEFORE)
            return lost.result
        if isinstance(stream, AsyncGeneratorType) and stream.ag_frame is not None:
            return StreamText(None, "its stream is being read by others, or was left half-read")
        return StreamText(response.response_txt)


def share(response: Streamed) -> StreamText | None:
    """Let the user and evaluators each read every piece of a stream, at once; return what is known of its text."""
    with _LOOKING:
        if (known := known_text(response)) is None and _READING not in vars(response):
            shared = _SyncStream(response) if isinstance(response, StreamingResponse) else _AsyncStream(response)
            vars(response).update({_READING: shared, "response_gen": shared.reader()})
        return known


def read_stream(response: StreamingResponse) -> StreamText:
    """Read a stream to its end, blocking."""
    return share(response) or cast("_SyncStream", vars(response)[_READING]).read()


async def aread_stream(response: AsyncStreamingResponse) -> StreamText:
    """Read an async stream to its end on the running loop. ValueError: another event loop is reading it."""
    return share(response) or await cast("_AsyncStream", vars(response)[_READING]).read()


class _SharedStream:
    """What was read of a response's stream; `result` once it has ended."""

    def __init__(self, response: Streamed) -> None:
        self.response = response
        self.pieces: list[str] = []
        self.error: BaseException | None = None
        self.result: StreamText | None = None

    def end(self, error: BaseException | None) -> None:
        self.error = error
        try:
            text = "".join(self.pieces)
        except TypeError as no_text:
            error = error or no_text
            text = ""
        # Where it has a text, the user is reading it by LlamaIndex' methods, which add piece after piece to it.
        if error is None and self.response.response_txt is None:
            self.response.response_txt = text
        problem = None if error is None else f"its stream broke off ({describe(error, most=200)})"
        self.result = StreamText(text if error is None else None, problem)


class _SyncStream(_SharedStream):
    """Whoever wants a piece that has yet to come reads it, one at a time: no reader depends on another's thread."""

    def __init__(self, response: StreamingResponse) -> None:
        super().__init__(response)
        self._source: Iterator[str] = chain.from_iterable([response.response_gen])
        self._lock = threading.Lock()

    def reader(self) -> Generator[str, None, None]:
        at = 0
        while self._has(at):
            yield self.pieces[at]
            at += 1
        if self.error is not None:
            raise self.error

    def read(self) -> StreamText:
        while self.result is None:
            self._has(len(self.pieces))
        return self.result

    def _has(self, at: int) -> bool:
        """Return whether there is a piece at a place, once that is known."""
        if at < len(self.pieces):  # does not wait for who reads the next
            return True
        with self._lock:
            if at == len(self.pieces) and self.result is None:
                try:
                    self.pieces.append(next(self._source))
                except StopIteration:
                    self.end(None)
                except BaseException as error:
                    self.end(error if isinstance(error, Exception) else RuntimeError("reading was interrupted"))
                    if not isinstance(error, Exception):  # this thread's own matter
                        raise
            return at < len(self.pieces)


class _AsyncStream(_SharedStream):
    """Each piece is read by a task of its own: whoever gives up waiting for it does not take it from others."""

    def __init__(self, response: AsyncStreamingResponse) -> None:
        super().__init__(response)
        self._source = aiter(response.response_gen)
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Future[str] | None = None

    async def reader(self) -> AsyncGenerator[str, None]:
        at = 0
        while await self._has(at):
            yield self.pieces[at]
            at += 1
        if self.error is not None:
            raise self.error

    async def read(self) -> StreamText:
        while self.result is None:
            await self._has(len(self.pieces))
        return self.result

    async def _has(self, at: int) -> bool:
        """Return whether there is a piece at a place, once that is known."""
        while at == len(self.pieces) and self.result is None:
            if self._next is not None and self._next.done():
                self._take(self._next)
            elif self._loop is not asyncio.get_running_loop():  # waiting could last forever
                self.response.response_txt = None  # str(response) puts there what it has read so far
                cast("AsyncStreamingResponse", self.response).response_gen = self.reader()
                raise ValueError("response: another event loop is reading its stream; read it there, or later")
            else:
                self._next = self._next or asyncio.ensure_future(anext(self._source))
                await asyncio.wait([self._next])
        return at < len(self.pieces)

    def _take(self, task: "asyncio.Future[str]") -> None:
        self._next = None
        error = RuntimeError("reading was cancelled") if task.cancelled() else task.exception()
        if error is None:
            self.pieces.append(task.result())
        else:
            self.end(None if isinstance(error, StopAsyncIteration) else error)


def _is_begun(stream: object) -> bool:
    """Return whether anything was read from a stream, as far as it shows: a plain iterator does not tell."""
    if isinstance(stream, GeneratorType):
        return inspect.getgeneratorstate(cast("Generator[object, object, object]", stream)) != inspect.GEN_CREATED
    if not isinstance(stream, AsyncGeneratorType):
        return False
    if sys.version_info >= (3, 12):
        return inspect.getasyncgenstate(stream) != inspect.AGEN_CREATED
    frame = stream.ag_frame  # a new one stands in the line of its `def`; one of a single line does not tell
    return frame is None or frame.f_lineno != frame.f_code.co_firstlineno
