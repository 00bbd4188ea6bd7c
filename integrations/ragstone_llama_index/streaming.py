"""Streamed responses: listened to while the app reads them, or read for an evaluator and still the user's to read."""

import asyncio
import dis
import inspect
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from types import AsyncGeneratorType, GeneratorType
from typing import Any, TypeVar, cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from ragstone.errors import describe

_T = TypeVar("_T")
_READING = "_ragstone_reading"  # the attribute by which a response remembers how it was read
_READ_BEFORE = "its stream was read before, and the response kept no text; evaluated first, it stays readable"
_LOOKING = threading.RLock()  # held while a stream is looked at and replaced, never while it is read


@dataclass(slots=True)
class StreamListener:
    """Listener for one stream. None of its functions may raise."""

    ended: Callable[[list[Any]], None]  # is called with all pieces when the stream has been read to its end
    broke: Callable[[BaseException], None]  # with what the stream raised, `GeneratorExit` where the app left it
    keep: Callable[[object], object] = lambda piece: piece
    pieces: list[Any] = field(default_factory=list[Any])


def listen(stream: Iterable[_T], listener: StreamListener) -> Generator[_T, None, None]:
    """Return a stream that passes each piece on as it comes; one that is never read holds nothing but itself."""
    try:
        for piece in stream:
            listener.pieces.append(listener.keep(piece))
            yield piece
    except GeneratorExit as left:
        listener.broke(left)
        close = getattr(stream, "close", None)
        if callable(close):  # the app closes what it takes for the stream itself
            close()
        raise
    except BaseException as error:
        listener.broke(error)
        raise
    listener.ended(listener.pieces)


async def alisten(stream: AsyncIterable[_T], listener: StreamListener) -> AsyncGenerator[_T, None]:
    """Return an async stream that passes each piece on as it comes."""
    try:
        async for piece in stream:
            listener.pieces.append(listener.keep(piece))
            yield piece
    except GeneratorExit as left:
        listener.broke(left)
        close = getattr(stream, "aclose", None)
        if callable(close) and inspect.isawaitable(closing := close()):
            await closing
        raise
    except BaseException as error:
        listener.broke(error)
        raise
    listener.ended(listener.pieces)


@dataclass(frozen=True, slots=True)
class StreamText:
    """A response's text, or None and what is known of why."""

    text: object
    problem: str | None = None


def known_text(response: StreamingResponse | AsyncStreamingResponse) -> StreamText | None:
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


def share(response: StreamingResponse) -> StreamText | None:
    """Let the user and evaluators each read every piece of a stream, at once; return what is known of its text."""
    with _LOOKING:
        if (known := known_text(response)) is None and _READING not in vars(response):
            vars(response)[_READING] = shared = _SyncStream(response)
            response.response_gen = shared.reader()
        return known


def read_stream(response: StreamingResponse) -> StreamText:
    """Read a stream to its end, blocking."""
    return share(response) or cast("_SyncStream", vars(response)[_READING]).read()


async def aread_stream(response: AsyncStreamingResponse) -> StreamText:
    """Read an async stream to its end on the running loop; it is read on even if the first who asked gives up.

    Raises:
        ValueError: Another event loop is reading it.
    """
    with _LOOKING:
        if (known := known_text(response)) is not None:
            return known
        if _READING not in vars(response):
            vars(response)[_READING] = started = _AsyncStream(response)
            response.response_gen = started.reader()
    shared: _AsyncStream = vars(response)[_READING]
    if shared.is_elsewhere():
        raise ValueError("response: its stream is being read on another event loop")
    return await shared.read()


class _SharedStream:
    """What was read of a response's stream; `result` once it has ended."""

    def __init__(self, response: StreamingResponse | AsyncStreamingResponse) -> None:
        self.response = response
        self.pieces: list[str] = []
        self.error: BaseException | None = None
        self.result: StreamText | None = None

    def end(self, error: BaseException | None) -> None:
        self.error = error
        try:
            text = "".join(self.pieces)
        except TypeError as no_text:
            self.result = _broken(error or no_text)
            return
        # Where it has a text, the user is reading it by LlamaIndex' methods, which add piece after piece to it.
        if error is None and self.response.response_txt is None:
            self.response.response_txt = text
        self.result = StreamText(text) if error is None else _broken(error)


class _SyncStream(_SharedStream):
    """Whoever wants a piece that has yet to come reads it, one at a time: nobody depends on another's thread."""

    def __init__(self, response: StreamingResponse) -> None:
        super().__init__(response)
        self._source: Iterator[str] = chain.from_iterable([response.response_gen])
        self._lock = threading.Lock()

    def reader(self) -> Generator[str, None, None]:
        at = 0
        while at < len(self.pieces) or self._read_on(at):
            yield self.pieces[at]
            at += 1
        if self.error is not None:
            raise self.error

    def read(self) -> StreamText:
        while self.result is None:
            self._read_on(len(self.pieces))
        return self.result

    def _read_on(self, at: int) -> bool:
        """Return whether there is a piece at a place."""
        with self._lock:
            if at == len(self.pieces) and self.result is None:
                try:
                    self.pieces.append(next(self._source))
                except StopIteration:
                    self.end(None)
                except Exception as error:
                    self.end(error)
                except BaseException:  # this thread's own matter
                    self.end(RuntimeError("reading it was interrupted"))
                    raise
            return at < len(self.pieces)


class _AsyncStream(_SharedStream):
    """A task of its own reads the source: whoever gives up waiting for a piece does not take it from others."""

    def __init__(self, response: AsyncStreamingResponse) -> None:
        super().__init__(response)
        self._more = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._read_all(response.response_gen))
        self._task.add_done_callback(self._ended)  # is called even if the task is cancelled before it runs

    def is_elsewhere(self) -> bool:
        return self._loop is not asyncio.get_running_loop()

    async def reader(self) -> AsyncGenerator[str, None]:
        at = 0
        while at < len(self.pieces) or self.result is None:
            if at < len(self.pieces):
                yield self.pieces[at]
                at += 1
            elif self.is_elsewhere():  # waiting could last forever; str(response) holds up the loop that reads
                self.response.response_txt = None
                cast("AsyncStreamingResponse", self.response).response_gen = self.reader()
                raise RuntimeError("the response's stream is being read on another event loop; read it there, or later")
            else:
                await self._more.wait()
        if self.error is not None:
            raise self.error

    async def read(self) -> StreamText:
        await asyncio.wait([self._task])
        return cast("StreamText", self.result)

    async def _read_all(self, source: AsyncIterable[str]) -> None:
        async for piece in source:
            self.pieces.append(piece)
            self._wake()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self.end(RuntimeError("reading it was cancelled") if task.cancelled() else task.exception())
        self._wake()

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()


def _is_begun(stream: object) -> bool:
    """Return whether anything was read from a stream, as far as it shows: a plain iterator does not tell."""
    if isinstance(stream, GeneratorType):
        return inspect.getgeneratorstate(cast("Generator[object, object, object]", stream)) != inspect.GEN_CREATED
    if not isinstance(stream, AsyncGeneratorType):
        return False
    if sys.version_info >= (3, 12):
        return inspect.getasyncgenstate(stream) != inspect.AGEN_CREATED
    frame = stream.ag_frame
    # A new one has yet to run on 3.10, and on 3.11 it has run until the instruction that returned it, no further.
    at = -1 if frame is None else frame.f_lasti
    return frame is None or (at >= 0 and frame.f_code.co_code[at] != dis.opmap.get("RETURN_GENERATOR"))


def _broken(error: BaseException) -> StreamText:
    return StreamText(None, f"its stream broke off ({describe(error, most=200)})")
