"""Streamed responses: noted while the app reads them, or read for an evaluator."""

import asyncio
import inspect
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import Any, cast

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from ragstone.bridge import daemon
from ragstone.errors import describe
from ragstone.run import Run, Skipped
from ragstone.sample import Sample
from ragstone_llama_index.read import Draft, Reading, Streamed, question_of, read, text_of

Answered = tuple[Sample, str | None]
"""A sample of what an app answered, and why it has no answer, where that is known."""
Pieces = Future[list[object]]
"""All pieces of a stream, or what ended it: `GeneratorExit` where the app left it."""
_BEGUN = "its stream was read before, and the response kept no text; evaluated first, it stays readable"
_LOOKING = threading.Lock()  # held while a reading is begun, never while it goes on
_READINGS: dict[int, Future[object]] = {}  # of evaluators, by the id of the response, which is no key


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


def answered(run: Run, reading: Reading) -> Answered:
    """Read what a run answered; a stream to its end, once, whose text the response keeps.

    ValueError: It is an async stream that is yet to be read.
    """
    draft = read(run, reading)
    begun = _begin(draft)
    if begun is not None:
        wait([begun])
    return _answered(run, draft, begun)


async def aanswered(run: Run, reading: Reading) -> Answered:
    """Read what a run answered, without holding up the running loop; otherwise as `answered`."""
    draft = read(run, reading)
    begun = _begin(draft, asyncio.get_running_loop())
    if begun is not None:
        await asyncio.wait([asyncio.wrap_future(begun)])
    return _answered(run, draft, begun)


def _begin(draft: Draft | Skipped, loop: asyncio.AbstractEventLoop | None = None) -> Future[object] | None:
    """Begin to read a stream, or find who does so for another evaluator; None where there is nothing to read."""
    answer = None if isinstance(draft, Skipped) else draft.answer
    if not isinstance(answer, Streamed):
        return None
    with _LOOKING:
        if id(answer) not in _READINGS:
            if not is_unread(answer):
                return None
            if isinstance(answer, StreamingResponse):
                _READINGS[id(answer)] = daemon(partial(_read_out, answer))
            elif loop is None:
                raise ValueError("response: its stream belongs to an event loop; await aevaluate_response(...)")
            else:
                _READINGS[id(answer)] = asyncio.run_coroutine_threadsafe(answer.get_response(), loop)
            weakref.finalize(answer, _READINGS.pop, id(answer)).atexit = False
        return _READINGS[id(answer)]


def _answered(run: Run, draft: Draft | Skipped, begun: Future[object] | None) -> Answered:
    if isinstance(draft, Skipped):
        return Sample(user_input=question_of(run)), "was declined by fields="
    sample, answer = draft.sample, draft.answer
    if isinstance(answer, StreamingAgentChatResponse) and not (answer.is_done or answer.response):
        return sample, "is still being streamed; read it to its end first"
    if not isinstance(answer, Streamed):
        return sample, None
    problem = why_lost(answer) if begun is None else None
    try:
        if begun is not None:
            begun.result()
    except Exception as error:
        problem = f"its stream broke off ({describe(error, most=200)})"
    return sample.model_copy(update={"response": None if problem else text_of(answer)}), problem


def _read_out(response: StreamingResponse) -> None:
    response.get_response()
    response.response_gen = (text for text in [response.response_txt or ""])  # the user's to read


def is_unread(response: Streamed) -> bool:
    """Whether nothing was read from a stream yet, as far as it shows."""
    return response.response_txt is None and why_lost(response) is None


def why_lost(response: Streamed) -> str | None:
    """Return why a stream's text cannot be had any more."""
    stream: object = response.response_gen
    if response.response_txt is None:
        return _BEGUN if _is_begun(stream) else None
    if isinstance(stream, AsyncGeneratorType) and stream.ag_frame is not None:
        return "its stream is being read by others, or was left half-read"
    return None


def _is_begun(stream: object) -> bool:
    """Whether anything was read from a generator; another iterator does not tell."""
    if isinstance(stream, GeneratorType):
        return inspect.getgeneratorstate(cast("Generator[object, object, object]", stream)) != inspect.GEN_CREATED
    if not isinstance(stream, AsyncGeneratorType):
        return False
    if sys.version_info >= (3, 12):
        return inspect.getasyncgenstate(stream) != inspect.AGEN_CREATED
    frame = stream.ag_frame  # a new one stands in the line of its `def`; one of a single line does not tell
    return frame is None or frame.f_lineno != frame.f_code.co_firstlineno
