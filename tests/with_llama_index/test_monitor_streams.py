"""The app reads every token of its streams, when it wants to; a stream that it read to its end is a sample."""

import asyncio
import gc
import weakref

import pytest
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.query_engine import CustomQueryEngine

from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator, instrument

from .models import truth
from .monitored import ANSWER, TEXTS, Notes, engine, kept_by_handlers

WORDS = ["Jane", " Austen", " wrote", " it."]
DONE = [("Who?", TEXTS, ANSWER)]


def ask(answer=ANSWER):
    return engine(answer, streaming=True).query("Who?")


def test_nothing_is_read_before_the_app_reads_and_nothing_told_before_the_end(heard):
    stream = ask().response_gen
    for word in WORDS:
        assert next(stream) == word
        assert heard.told == []
    assert list(stream) == []
    assert heard.told == DONE
    assert list(stream) == []
    assert heard.told == DONE


def test_a_stream_left_half_read_or_unread(heard):
    stream = ask().response_gen
    next(stream)
    stream.close()
    assert heard.skipped == {"abandoned": 1}
    other = ask().response_gen
    next(other)
    never = ask()
    assert kept_by_handlers() == 0
    gone = weakref.ref(never.response_gen)
    del other, never
    gc.collect()
    assert gone() is None
    assert heard.skipped == {"abandoned": 2}
    assert heard.told == []


def test_a_stream_that_breaks(heard):
    stream = ask("Jane Austen BREAK").response_gen
    assert [next(stream), next(stream)] == WORDS[:2]
    with pytest.raises(ConnectionError, match="the line broke"):
        next(stream)
    (sample,) = heard.samples
    assert (sample.retrieved_contexts, sample.response) == (TEXTS, None)
    assert sample.metadata["error"] == "ConnectionError: the line broke"


def test_two_monitors_and_an_evaluator_hear_the_same_stream(notes):
    other = Notes()
    instrument(other)
    response = ask()
    assert MetricEvaluator("context_relevancy", FakeLLM(truth)).evaluate_response("Who?", response).response == ANSWER
    assert list(response.response_gen) == WORDS
    assert notes.told == other.told == DONE
    assert [one.id for one in notes.samples] == [one.id for one in other.samples]


class Closing:
    """A stream that is no generator, as a client's may be."""

    closed = 0

    def __iter__(self):
        return iter(WORDS)

    def close(self):
        self.closed += 1


class Given(CustomQueryEngine):
    given: object

    def custom_query(self, query_str):
        return self.given


def test_a_stream_of_another_kind_is_closed_when_the_app_closes_it(notes):
    left = Closing()
    stream = Given(given=StreamingResponse(left)).query("Who?").response_gen
    next(stream)
    stream.close()
    assert left.closed == 1
    assert list(Given(given=StreamingResponse(Closing())).query("Who?").response_gen) == WORDS
    assert notes.told == [("Who?", (), ANSWER)]


def test_a_stream_that_the_engine_itself_read(notes):
    read, begun = StreamingResponse(iter(WORDS)), StreamingResponse(word for word in WORDS)
    assert str(read) == ANSWER
    assert Given(given=read).query("Who?") is read
    next(begun.response_gen)
    assert list(Given(given=begun).query("Who?").response_gen) == WORDS[1:]
    assert (notes.told, notes.skipped) == ([("Who?", (), ANSWER)], {"abandoned": 1})
    assert list(Given(given=StreamingResponse(iter([1, 2]))).query("Who?").response_gen) == [1, 2]
    assert [type(error) for _, error in notes.errors] == [TypeError]
    notes.errors.clear()


async def aask(answer=ANSWER):
    return await engine(answer, streaming=True).aquery("Who?")


async def test_an_async_stream(heard):
    stream = (await aask()).async_response_gen()
    for word in WORDS:
        assert await anext(stream) == word
        assert heard.told == []
    assert [word async for word in stream] == []
    assert (await (await aask()).get_response()).response == ANSWER
    assert heard.told == DONE * 2
    left = (await aask()).response_gen
    await anext(left)
    await left.aclose()
    assert heard.skipped == {"abandoned": 1}


async def test_an_async_stream_that_breaks_or_is_cancelled(notes):
    with pytest.raises(ConnectionError):
        async for _ in (await aask("Jane BREAK")).async_response_gen():
            pass
    response = await engine(pause=0.05, streaming=True).aquery("Who?")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(response.get_response(), 0.07)
    assert [one.metadata["error"] for one in notes.samples] == ["ConnectionError: the line broke"]
    assert notes.skipped == {"cancelled": 1}
