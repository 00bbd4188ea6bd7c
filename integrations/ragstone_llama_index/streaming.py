"""Streamed responses: noted while the app reads them, or read for an evaluator and still the user's to read."""

import asyncio
import inspect
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import Any, cast

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from ragstone.bridge import daemon
from ragstone.errors import describe
from ragstone.run import Run, Skipped
from ragstone.sample import Sample
from ragstone_llama_index.read import Draft, Reading, Streamed, question_of, read, said

Answered = tuple[Sample, str | None]
"""A sample of what an app answered, and why it has no answer, where that is known."""
Pieces = Future[list[object]]
"""All pieces of a stream, or what ended it: `GeneratorExit` where the app left it."""
Text = tuple[str | None, str | None]
"""A response's text, or None and why."""
_BEGUN = "its stream was read before, and the response kept no text; evaluated first, it stays readable"
_LOOKING = threading.Lock()  # held while a stream is looked at and replaced, never while it is read
_READ: "weakref.WeakKeyDictionary[object, _Read]" = weakref.WeakKeyDictionary()  # by what stands in for the stream


# --- by the app -----------------------------------------------------------------------------------


def noting(stream: Any, pieces: Pieces, *, awaited: bool) -> object:  # noqa: ANN401
    """Return a stream that passes each piece on as it comes, and notes all of them at its end."""
    passing = (_apassing if awaited else _passing)(stream, pieces)
    weakref.finalize(passing, end, pieces, GeneratorExit()).atexit = False  # one that nobody begins to read
    return passing


def _passing(stream: Iterable[object], pieces: Pieces) -> Generator[object, None, None]:
    came: list[object] = []
    try:
        for piece in stream:
            came.append(piece)
            yield piece
    except BaseException as error:
        end(pieces, error)
        close = getattr(stream, "close", None)
        if isinstance(error, GeneratorExit) and callable(close):  # the app closes what it takes for the stream itself
            close()
        raise
    end(pieces, came)


async def _apassing(stream: AsyncIterable[object], pieces: Pieces) -> AsyncGenerator[object, None]:
    came: list[object] = []
    try:
        async for piece in stream:
            came.append(piece)
            yield piece
    except BaseException as error:
        end(pieces, error)
        if isinstance(error, GeneratorExit) and isinstance(stream, AsyncGenerator):
            await stream.aclose()
        raise
    end(pieces, came)


def end(pieces: Pieces, came: list[object] | BaseException) -> None:
    """Note the end of a stream, once: all that came, or what it raised."""
    if not pieces.done():
        pieces.set_exception(came) if isinstance(came, BaseException) else pieces.set_result(came)


def text_in(pieces: Sequence[object]) -> str | None:
    """Return the text of a stream's pieces; None where one of them is none. A model's is stripped, as a chat's is."""
    words: list[str] = []
    of_model = False
    for each in pieces:
        if isinstance(each, ChatResponse | CompletionResponse):
            words.append(each.delta or "")
            of_model = True
        elif isinstance(each, str):
            words.append(each)
        else:
            return None
    text = "".join(words)
    return text.strip() if of_model else text


# --- for an evaluator -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A stream that is read once, for all who ask.

    Attributes:
        pieces: What has come.
        done: Its end, or what it raised.
        loop: The event loop that reads it, by a task of its own; None: a thread does.
    """

    pieces: list[str]
    done: Future[None]
    loop: asyncio.AbstractEventLoop | None = None

    def text(self) -> Text:
        try:
            self.done.result()
            return "".join(self.pieces), None
        except Exception as error:
            return None, f"its stream broke off ({describe(error, most=200)})"

    def again(self) -> Generator[str, None, None]:
        wait([self.done])
        yield from self.pieces
        self.done.result()

    async def aagain(self) -> AsyncGenerator[str, None]:
        await self.end()
        for piece in self.pieces:
            yield piece
        self.done.result()

    async def end(self) -> None:
        """Wait for its end. ValueError: another event loop reads it, which may be waiting for this one."""
        if not self.done.done():
            if self.loop not in (None, asyncio.get_running_loop()):
                raise ValueError("response: another event loop is reading its stream; await it there")
            await asyncio.gather(asyncio.shield(asyncio.wrap_future(self.done)), return_exceptions=True)


def _shared(response: Streamed) -> _Read | None:
    """Let user and evaluators each read a whole stream; None where its text is known, or lost."""
    with _LOOKING:
        if (found := _read_by(response.response_gen)) is not None or known_text(response) is not None:
            return found
        pieces: list[str] = []
        if isinstance(response, StreamingResponse):
            shared = _Read(pieces, daemon(partial(pieces.extend, response.response_gen)))
            response.response_gen = shared.again()
        else:
            loop = asyncio.get_running_loop()
            reading = _collect(response.response_gen, pieces)
            shared = _Read(pieces, asyncio.run_coroutine_threadsafe(reading, loop), loop)
            response.response_gen = shared.aagain()
        _READ[response.response_gen] = shared
        return shared


async def _collect(stream: AsyncIterable[str], pieces: list[str]) -> None:
    async for piece in stream:
        pieces.append(piece)  # noqa: PERF401 - what has come stays where the rest does not


def _read_by(stream: object) -> _Read | None:
    of_ours = isinstance(stream, GeneratorType | AsyncGeneratorType)
    return _READ.get(cast("Any", stream)) if of_ours else None


def known_text(response: Streamed) -> Text | None:
    """Return what is known of a stream's text without reading it; None: it has yet to be read."""
    stream: object = response.response_gen
    if (shared := _read_by(stream)) is not None:
        return shared.text() if shared.done.done() else None
    if response.response_txt is None:
        return (None, _BEGUN) if _is_begun(stream) else None
    if isinstance(stream, AsyncGeneratorType) and stream.ag_frame is not None:
        return None, "its stream is being read by others, or was left half-read"
    return response.response_txt, None


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
    answer = None if isinstance(draft, Skipped) else draft.answer
    if isinstance(answer, StreamingResponse) and (shared := _shared(answer)) is not None:
        wait([shared.done])
    elif isinstance(answer, AsyncStreamingResponse) and known_text(answer) is None:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise ValueError("response: its stream belongs to the running event loop; await aevaluate_response(...)")
        return asyncio.run(aanswered(run, reading))
    return _answered(run, draft)


async def aanswered(run: Run, reading: Reading) -> Answered:
    """Read what a run answered, without holding up the running loop; otherwise as `answered`."""
    draft = read(run, reading)
    answer = None if isinstance(draft, Skipped) else draft.answer
    if isinstance(answer, Streamed) and (shared := _shared(answer)) is not None:
        await shared.end()
    return _answered(run, draft)


def _answered(run: Run, draft: Draft | Skipped) -> Answered:
    if isinstance(draft, Skipped):
        return Sample(user_input=question_of(run)), "was declined by fields="
    sample, answer = draft.sample, draft.answer
    if isinstance(answer, StreamingAgentChatResponse) and not (answer.is_done or answer.response):
        return sample, "is still being streamed; read it to its end first"
    if not isinstance(answer, Streamed) or (known := known_text(answer)) is None:
        return sample, None
    text, problem = known
    if answer.response_txt is None:  # else the user is reading it, and LlamaIndex adds piece after piece to it
        answer.response_txt = text
    return sample.model_copy(update={"response": None if text is None else said(text)}), problem
