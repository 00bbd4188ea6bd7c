"""Each turn of a chat is one sample, streamed or not, whether the app reads the stream or leaves it."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)

from .monitored import ANSWER, TEXTS, Speaking, engine, memory, retriever

# LlamaIndex' thread ends so where a stream breaks, at times when the next test has begun.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
HISTORY = [ChatMessage(role=MessageRole.USER, content="Emma?"), ChatMessage(role=MessageRole.ASSISTANT, content="Yes.")]


def said(prompt):
    return "condensed?" if "standalone question" in prompt.lower() else ANSWER


WITH_CONTEXTS = [ContextChatEngine, CondensePlusContextChatEngine, CondenseQuestionChatEngine]
KINDS = pytest.mark.parametrize("kind", [*WITH_CONTEXTS, SimpleChatEngine])
TWO_KINDS = pytest.mark.parametrize("kind", [ContextChatEngine, CondenseQuestionChatEngine])


def make(kind, llm):
    fields = {"llm": llm, "memory": memory()}
    if kind is SimpleChatEngine:
        return kind.from_defaults(**fields)
    if kind is CondenseQuestionChatEngine:
        return kind.from_defaults(engine(llm.answer, pause=llm.pause), **fields)
    return kind.from_defaults(retriever(), **fields)


def expected(kind, answer=ANSWER):
    return [("Who wrote it?", TEXTS if kind in WITH_CONTEXTS else (), answer)]


@KINDS
async def test_a_turn_of_every_kind(notes, kind):
    asked = ("Who wrote it?", list(HISTORY))
    assert str(make(kind, Speaking(said)).chat(*asked)) == ANSWER
    assert str(await make(kind, Speaking(said)).achat(*asked)) == ANSWER
    assert "".join(make(kind, Speaking(said)).stream_chat(*asked).response_gen) == ANSWER
    response = await make(kind, Speaking(said)).astream_chat(*asked)
    assert "".join([word async for word in response.async_response_gen()]) == ANSWER
    if response.awrite_response_to_history_task is not None:
        await response.awrite_response_to_history_task
    notes.wait(4)
    assert notes.told == expected(kind) * 4
    names = {f"{kind.__name__}.{name}" for name in ("chat", "achat", "stream_chat", "astream_chat")}
    assert {one.metadata["name"] for one in notes.samples} == names


@TWO_KINDS
def test_a_streamed_turn_that_the_app_leaves(notes, kind):
    response = make(kind, Speaking(said)).stream_chat("Who wrote it?", list(HISTORY))
    stream = response.response_gen
    assert next(stream)
    stream.close()
    writing = response.is_writing_to_memory
    del stream, response
    notes.wait(1)
    assert (notes.told, notes.skipped) == ((expected(kind), {}) if writing else ([], {"abandoned": 1}))


@TWO_KINDS
def test_a_streamed_turn_that_breaks(notes, kind):
    def breaking(prompt):
        return "condensed?" if said(prompt) != ANSWER else "Jane BREAK"

    response = make(kind, Speaking(breaking)).stream_chat("Who wrote it?", list(HISTORY))
    with pytest.raises(ConnectionError):
        list(response.response_gen)
    notes.wait(1)
    assert notes.told == expected(kind, None)
    assert notes.samples[0].metadata["error"] == "ConnectionError: the line broke"


@TWO_KINDS
async def test_an_async_streamed_turn_that_is_cancelled(notes, kind):
    response = await make(kind, Speaking(said, pause=0.05)).astream_chat("Who wrote it?", list(HISTORY))
    if response.awrite_response_to_history_task is not None:
        await asyncio.sleep(0.02)
        response.awrite_response_to_history_task.cancel()
        await asyncio.wait([response.awrite_response_to_history_task])
    else:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(response.aprint_response_stream(), 0.07)
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}
