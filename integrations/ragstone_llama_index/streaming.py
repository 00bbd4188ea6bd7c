"""Streamed responses: listened to while the app reads them, or read for an evaluator and still the user's to read."""

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from dataclasses import dataclass
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
    """Let user and evaluators each read a whole stream, which is read once; return what is known of its text."""
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

    def end(self, error: BaseException | None) -> StreamText:
        self.error = error
        text = ""
        try:
            text = "".join(self.pieces)
        except TypeError as no_text:
            error = error or no_text
        if error is not None:
            self.result = StreamText(None, f"its stream broke off ({describe(error, most=200)})")
            return self.result
        # Where it has a text, the user is reading it by LlamaIndex' methods, which add piece after piece to it.
        if self.response.response_txt is None:
            self.response.response_txt = text
        self.result = StreamText(text)
        return self.result


class _SyncStream(_SharedStream):
    """Is read by the first who asks; all others wait for its end."""

    def __init__(self, response: StreamingResponse) -> None:
        super().__init__(response)
        self._source: Iterable[str] = response.response_gen
        self._lock = threading.Lock()

    def reader(self) -> Generator[str, None, None]:
        self.read()
        yield from self.pieces
        if self.error is not None:
            raise self.error

    def read(self) -> StreamText:
        with self._lock:
            if self.result is not None:
                return self.result
            try:
                self.pieces.extend(self._source)
            except Exception as error:
                return self.end(error)
            except BaseException:  # this thread's own matter
                self.end(RuntimeError("reading was interrupted"))
                raise
            return self.end(None)


class _AsyncStream(_SharedStream):
    """Is read by a task of its own, so that who gives up waiting takes it from nobody."""

    def __init__(self, response: AsyncStreamingResponse) -> None:
        super().__init__(response)
        self._source = response.response_gen
        self._task = asyncio.ensure_future(self._read_all())

    async def reader(self) -> AsyncGenerator[str, None]:
        await self.read()
        for piece in self.pieces:
            yield piece
        if self.error is not None:
            raise self.error

    async def read(self) -> StreamText:
        if not self._task.done():
            if self._task.get_loop() is not asyncio.get_running_loop():  # waiting could last forever
                self.response.response_txt = None  # str(response) puts there what it has read so far
                cast("AsyncStreamingResponse", self.response).response_gen = self.reader()
                raise ValueError("response: another event loop is reading its stream; read it there, or later")
            await asyncio.wait([self._task])
        if self.result is not None:
            return self.result
        cancelled = RuntimeError("reading was cancelled")
        return self.end(cancelled if self._task.cancelled() else self._task.exception())

    async def _read_all(self) -> None:
        async for piece in self._source:
            self.pieces.append(piece)


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
