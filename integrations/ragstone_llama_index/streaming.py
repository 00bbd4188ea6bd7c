"""Streamed responses: noted while the app reads them, or read for an evaluation."""

import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from ragstone.adapters.narrowing import narrowed, with_answer
from ragstone.adapters.runs import Draft, Run, Skipped
from ragstone.background import in_daemon
from ragstone.errors import describe
from ragstone.sample import FirstRow, Sample, name_list
from ragstone.sources.base import NAMING
from ragstone_llama_index.forms import Answers, Streamed, text_or_none
from ragstone_llama_index.inside import first_argument
from ragstone_llama_index.read import Reading, is_begun, names_unanswered, read_run

Pieces = Future[list[object]]
"""All pieces of a stream, or what ended it: `GeneratorExit` where the app left it."""


# --- by the app -----------------------------------------------------------------------------------


def noting(stream: Any, pieces: Pieces, *, awaited: bool) -> object:  # noqa: ANN401
    """Return a stream that passes each piece on as it comes, and notes all of them at its end."""
    passing = (_apassing if awaited else _passing)(stream, pieces)
    # A stream that nobody begins to read ends when it is collected.
    weakref.finalize(passing, _end_stream, pieces, GeneratorExit()).atexit = False
    return passing


def _passing(stream: Iterable[object], pieces: Pieces) -> Generator[object, None, None]:
    came: list[object] = []
    try:
        for piece in stream:
            came.append(piece)
            yield piece
    except BaseException as error:
        _end_stream(pieces, error)
        close = getattr(stream, "close", None)
        # The app closes what it takes for the stream itself.
        if isinstance(error, GeneratorExit) and callable(close):
            close()
        raise
    _end_stream(pieces, came)


async def _apassing(stream: AsyncIterable[object], pieces: Pieces) -> AsyncGenerator[object, None]:
    came: list[object] = []
    try:
        async for piece in stream:
            came.append(piece)
            yield piece
    except BaseException as error:
        _end_stream(pieces, error)
        if isinstance(error, GeneratorExit) and isinstance(stream, AsyncGenerator):
            await stream.aclose()
        raise
    _end_stream(pieces, came)


def _end_stream(pieces: Pieces, came: list[object] | BaseException) -> None:
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


# --- for an evaluation ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """What an app answered.

    Attributes:
        sample: The sample.
        problem: Why it has no answer.
        first: Where its fields stand, if it has no contexts.
    """

    sample: Sample
    problem: str | None = None
    first: FirstRow | None = None


def answered(run: Run, reading: Reading) -> Answered:
    """Read what a run answered. A stream is left as it is: its answer is the text that its response has kept."""
    return _answered(run, read_run(run, reading))


async def read_to_end(run: Run, reading: Reading) -> Answered:
    """Read what a run answered; a stream, which nobody else reads, to its end."""
    draft = read_run(run, reading)
    if isinstance(draft, Skipped) or not isinstance(draft.answer, Streamed) or is_begun(draft.answer):
        return _answered(run, draft)
    stream, text, problem = draft.answer, None, None
    try:
        if isinstance(stream, AsyncStreamingResponse):
            text = text_or_none(await stream.get_response())
        else:
            # A lambda of this module, because `caller_among` looks for it.
            text = text_or_none(await in_daemon(lambda: stream.get_response()))
    except Exception as error:
        problem = f"its stream broke off ({describe(error, most=200)})"
    draft = narrowed(draft if text is None else with_answer(draft, text))
    return Answered(draft.sample, problem, _first(draft))


def _answered(run: Run, draft: Draft | Skipped) -> Answered:
    if isinstance(draft, Skipped):
        return Answered(Sample(user_input=first_argument(run)), "was declined by fields=")
    problem = _why_unanswered(run, draft)
    return Answered((draft if problem else narrowed(draft)).sample, problem, _first(draft))


def _why_unanswered(run: Run, draft: Draft) -> str | None:
    answer = draft.answer
    if isinstance(answer, StreamingAgentChatResponse) and not (answer.is_done or answer.response):
        return "is still being streamed; read it to its end first"
    if draft.sample.response is not None:
        return None
    if isinstance(answer, Streamed):
        if is_begun(answer):
            return "its stream was read before, and the response kept no whole text"
        return "is a stream that is yet to be read; call response.get_response() first"
    if run.output is None or isinstance(run.output, Answers):
        return None
    names = names_unanswered(run)
    way = NAMING.format(field="response", key=draft.likely.get("response", "NAME"))
    return f"stands under no usual name (there were: {name_list(names)}); say where: {way}"


def _first(draft: Draft) -> FirstRow | None:
    """The names that were there, where no contexts were."""
    if draft.sample.retrieved_contexts or not draft.names:
        return None
    meant = draft.likely.get("retrieved_contexts")
    return FirstRow({}, dict.fromkeys(draft.names), {} if meant is None else {"retrieved_contexts": meant}, NAMING)
