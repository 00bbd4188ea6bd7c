"""Streamed responses: listened to while the app reads them, or read for an evaluator and still the user's to read."""

import asyncio
import inspect
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from dataclasses import dataclass
from types import AsyncGeneratorType, GeneratorType
from typing import TypeVar, cast

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from ragstone.errors import describe
from ragstone.run import Run
from ragstone.sample import Sample
from ragstone_llama_index.read import Draft, Reading, Streamed, question_of, read, said

Answered = tuple[Sample, str | None]
"""A sample of what an app answered, and why it has no answer, where that is known."""
_T = TypeVar("_T")
_SHARED: "dict[int, _SharedStream]" = {}  # by the id of their response, which is no key
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
        shared = _SHARED.get(id(response))
        if shared is not None:
            return shared.result
        stream: object = response.response_gen
        if response.response_txt is None:
            if not _is_begun(stream):
                return None
            return _SharedStream(response).lost()
        if isinstance(stream, AsyncGeneratorType) and stream.ag_frame is not None:
            return StreamText(None, "its stream is being read by others, or was left half-read")
        return StreamText(response.response_txt)


def share(response: Streamed) -> StreamText | None:
    """Let user and evaluators each read a whole stream, which is read once; return what is known of its text."""
    with _LOOKING:
        if (known := known_text(response)) is None and id(response) not in _SHARED:
            if isinstance(response, StreamingResponse):
                response.response_gen = _SyncStream(response).reader()
            else:
                response.response_gen = _AsyncStream(response).reader()
        return known


def read_stream(response: StreamingResponse) -> StreamText:
    """Read a stream to its end, blocking."""
    return share(response) or cast("_SyncStream", _SHARED[id(response)]).read()


async def aread_stream(response: AsyncStreamingResponse) -> StreamText:
    """Read an async stream to its end on the running loop. ValueError: another event loop is reading it."""
    return share(response) or await cast("_AsyncStream", _SHARED[id(response)]).read()


class _SharedStream:
    """What was read of a response's stream; `result` once it has ended."""

    def __init__(self, response: Streamed) -> None:
        self.response = weakref.ref(response)
        _SHARED[id(response)] = self
        weakref.finalize(response, _SHARED.pop, id(response), None).atexit = False
        self.pieces: list[str] = []
        self.error: BaseException | None = None
        self.result: StreamText | None = None

    def lost(self) -> StreamText:
        """Give up a stream that others have begun to read."""
        self.result = StreamText(None, _READ_BEFORE)
        return self.result

    def end(self, error: BaseException | None) -> StreamText:
        """Keep the text once the stream has ended."""
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
        response = self.response()
        if response is not None and response.response_txt is None:
            response.response_txt = text
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
                response = cast("AsyncStreamingResponse", self.response())
                response.response_txt = None  # str(response) puts there what it has read so far
                response.response_gen = self.reader()
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


def answered(run: Run, reading: Reading) -> Answered:
    """Read what a run answered. A stream is read to its end, once, and can still be read after that.

    ValueError: It is an async stream that is yet to be read by the running event loop.
    """
    draft = read(run, reading)
    if draft is None or not isinstance(draft.answer, Streamed):
        return _answered(run, draft)
    if isinstance(draft.answer, StreamingResponse):
        return _answered(run, draft, read_stream(draft.answer))
    return _answered(run, draft, known_text(draft.answer) or _run(draft.answer))


async def aanswered(run: Run, reading: Reading) -> Answered:
    """Read what a run answered, without holding up the running loop; otherwise as `answered`."""
    draft = read(run, reading)
    if draft is None or not isinstance(draft.answer, Streamed):
        return _answered(run, draft)
    if isinstance(draft.answer, StreamingResponse):  # shared before the thread begins: the user may read meanwhile
        known = share(draft.answer)
        return _answered(run, draft, known or await asyncio.to_thread(read_stream, draft.answer))
    return _answered(run, draft, await aread_stream(draft.answer))


def _run(response: AsyncStreamingResponse) -> StreamText:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aread_stream(response))
    raise ValueError("response: its stream belongs to the running event loop; await aevaluate_response(...)")


def _answered(run: Run, draft: Draft | None, streamed: StreamText | None = None) -> Answered:
    if draft is None:
        return Sample(user_input=question_of(run)), "was declined by fields="
    answer = draft.answer
    if isinstance(answer, StreamingAgentChatResponse) and not (answer.is_done or answer.response):
        return draft.sample, "is still being streamed; read it to its end first"
    if streamed is None:
        told = getattr(answer, "response", None)
        is_no_text = told is not None and draft.sample.response is None
        return draft.sample, f"is {type(told).__name__}, not text" if is_no_text else None
    text = said(streamed.text) if isinstance(streamed.text, str) else None
    return draft.sample.model_copy(update={"response": text}), streamed.problem
