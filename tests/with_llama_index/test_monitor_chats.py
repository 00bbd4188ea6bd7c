"""Each turn of a chat is one sample, streamed or not, whether the app reads the stream or leaves it."""

import asyncio
import time

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)

from ragstone_llama_index import instrument

from .monitored import ANSWER, TEXTS, Notes, Speaking, engine, kept_by_handlers, memory, retriever

HISTORY = [ChatMessage(role=MessageRole.USER, content="Emma?"), ChatMessage(role=MessageRole.ASSISTANT, content="Yes.")]


def said(prompt):
    return "condensed?" if "standalone question" in prompt.lower() else ANSWER


def make(kind, llm):
    given = {"llm": llm, "memory": memory()}
    if kind is SimpleChatEngine:
        return kind.from_defaults(**given)
    if kind is CondenseQuestionChatEngine:
        return kind.from_defaults(engine(llm.answer, pause=llm.pause), **given)
    return kind.from_defaults(retriever(), **given)


WITH_CONTEXTS = [ContextChatEngine, CondensePlusContextChatEngine, CondenseQuestionChatEngine]
KINDS = pytest.mark.parametrize("kind", [*WITH_CONTEXTS, SimpleChatEngine])


def expected(kind, answer=ANSWER):
    return [("Who wrote it?", TEXTS if kind in WITH_CONTEXTS else (), answer)]


@pytest.fixture
def notes():
    notes = Notes()
    instrument(notes)
    yield notes
    assert notes.errors == []
    assert kept_by_handlers() == 0


@KINDS
def test_a_turn(notes, kind):
    assert str(make(kind, Speaking(said)).chat("Who wrote it?", list(HISTORY))) == ANSWER
    assert notes.told == expected(kind)
    assert notes.samples[0].metadata["name"] == f"{kind.__name__}.chat"


@KINDS
def test_an_async_turn(notes, kind):
    assert str(asyncio.run(make(kind, Speaking(said)).achat("Who wrote it?", list(HISTORY)))) == ANSWER
    assert notes.told == expected(kind)


@KINDS
def test_a_streamed_turn(notes, kind):
    response = make(kind, Speaking(said)).stream_chat("Who wrote it?", list(HISTORY))
    assert "".join(response.response_gen) == ANSWER
    notes.wait(1)
    assert notes.told == expected(kind)
    assert notes.samples[0].metadata["name"] == f"{kind.__name__}.stream_chat"


@KINDS
def test_an_async_streamed_turn(notes, kind):
    async def main():
        response = await make(kind, Speaking(said)).astream_chat("Who wrote it?", list(HISTORY))
        assert "".join([word async for word in response.async_response_gen()]) == ANSWER
        if response.awrite_response_to_history_task is not None:
            await response.awrite_response_to_history_task

    asyncio.run(main())
    assert notes.told == expected(kind)


@KINDS
def test_a_streamed_turn_that_the_app_does_not_read(notes, kind):
    """Where LlamaIndex streams it into its memory there is an answer all the same; else nothing happens at all."""
    response = make(kind, Speaking(said)).stream_chat("Who wrote it?", list(HISTORY))
    if response.is_writing_to_memory:
        notes.wait(1)
        assert notes.told == expected(kind)
    else:
        del response
        assert notes.told == []
        assert not notes.skipped


@KINDS
def test_a_streamed_turn_that_the_app_leaves(notes, kind):
    response = make(kind, Speaking(said)).stream_chat("Who wrote it?", list(HISTORY))
    stream = response.response_gen
    assert next(stream)
    stream.close()
    writing = response.is_writing_to_memory
    del stream, response
    notes.wait(1)
    assert (notes.told, notes.skipped) == ((expected(kind), {}) if writing else ([], {"abandoned": 1}))


@KINDS
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # LlamaIndex's thread ends so
def test_a_streamed_turn_that_breaks(notes, kind):
    def breaking(prompt):
        return "condensed?" if said(prompt) != ANSWER else "Jane BREAK"

    response = make(kind, Speaking(breaking)).stream_chat("Who wrote it?", list(HISTORY))
    with pytest.raises(ConnectionError):
        list(response.response_gen)
    notes.wait(1)
    assert notes.told == expected(kind, None)
    assert notes.samples[0].metadata["error"] == "ConnectionError: the line broke"


@KINDS
def test_an_async_streamed_turn_that_is_cancelled(notes, kind):
    async def main():
        response = await make(kind, Speaking(said, pause=0.05)).astream_chat("Who wrote it?", list(HISTORY))
        if response.awrite_response_to_history_task is not None:
            await asyncio.sleep(0.02)
            response.awrite_response_to_history_task.cancel()
        else:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(response.aprint_response_stream(), 0.07)

    asyncio.run(main())
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


def test_a_model_that_fails_before_it_streams(notes):
    with pytest.raises(ConnectionError):
        make(ContextChatEngine, Speaking(ConnectionError("down"))).chat("Who wrote it?")
    assert notes.told == expected(ContextChatEngine, None)


def test_the_writing_may_end_before_the_call_does(notes, monkeypatch):
    """The thread that writes is quick, and the app's thread is held up before it can wait for it."""
    from ragstone_llama_index.recorder import Recorder

    wait = Recorder._await

    def late(self, response, asked, contexts):
        deadline = time.monotonic() + 10
        while not response.is_done and time.monotonic() < deadline:
            time.sleep(0.001)
        thread = getattr(response, "write_response_to_history_thread", None)
        if thread is not None:
            thread.join(10)
        wait(self, response, asked, contexts)

    monkeypatch.setattr(Recorder, "_await", late)
    for _ in range(5):
        make(SimpleChatEngine, Speaking(said)).stream_chat("Who wrote it?")
    assert notes.told == 5 * expected(SimpleChatEngine)


def test_chats_at_the_same_time_each_have_their_own_answer(notes):
    async def turn(i):
        chat = make(ContextChatEngine, Speaking(f"Answer {i}.", pause=0.002))
        response = await chat.astream_chat(f"Question {i}?")
        answer = "".join([word async for word in response.async_response_gen()])
        assert answer == f"Answer {i}."

    async def main():
        await asyncio.gather(*map(turn, range(8)))

    asyncio.run(main())
    assert sorted(notes.told) == [(f"Question {i}?", TEXTS, f"Answer {i}.") for i in range(8)]
