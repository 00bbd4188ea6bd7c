"""The app reads every token of its streams, when it wants to; a stream that it read to its end is a sample."""

import asyncio
import gc
import weakref

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.query_engine import CustomQueryEngine

from ragstone.testing import FakeLLM
from ragstone_llama_index import ContextRelevancyEvaluator, instrument

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


def test_reading_by_the_responses_own_methods(notes, capsys):
    for read in (str, StreamingResponse.get_response, StreamingResponse.print_response_stream):
        response = ask()
        read(response)
        assert response.response_txt == str(response) == str(response.get_response()) == ANSWER
    assert notes.told == DONE * 3
    assert capsys.readouterr().out == ANSWER


def test_a_stream_left_half_read(heard):
    stream = ask().response_gen
    next(stream)
    stream.close()
    assert heard.skipped == {"abandoned": 1}
    other = ask().response_gen
    next(other)
    del other
    gc.collect()
    assert heard.skipped == {"abandoned": 2}
    assert heard.told == []


def test_a_stream_that_is_never_read_keeps_nothing_and_tells_nothing(notes):
    responses = [ask() for _ in range(20)]
    assert kept_by_handlers() == 0
    gone = [weakref.ref(one.response_gen) for one in responses]
    responses.clear()
    gc.collect()
    assert [one() for one in gone] == [None] * 20
    assert notes.told == []
    assert not notes.skipped


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
    assert ContextRelevancyEvaluator(FakeLLM(truth)).evaluate_response("Who?", response).response == ANSWER
    assert list(response.response_gen) == WORDS
    assert notes.told == other.told == DONE
    assert [one.id for one in notes.samples] == [one.id for one in other.samples]


class Closing:
    """A stream that is no generator, as a client's may be."""

    def __init__(self):
        self.words, self.closed = iter(WORDS), 0

    def __iter__(self):
        return self.words

    def close(self):
        self.closed += 1


class Given(CustomQueryEngine):
    given: object

    def custom_query(self, query_str):
        return self.given

    async def acustom_query(self, query_str):
        return self.given


def test_a_stream_of_another_kind_is_closed_when_the_app_closes_it(notes):
    left, read = Closing(), Closing()
    response = Given(given=StreamingResponse(left)).query("Who?")
    next(response.response_gen)
    response.response_gen.close()
    assert notes.told == []
    assert list(Given(given=StreamingResponse(read)).query("Who?").response_gen) == WORDS
    assert (left.closed, read.closed) == (1, 0)
    assert notes.told == [("Who?", (), ANSWER)]


def test_a_stream_that_the_engine_itself_read(notes):
    read = StreamingResponse(iter(WORDS))
    assert str(read) == ANSWER
    assert Given(given=read).query("Who?") is read
    assert notes.told == [("Who?", (), ANSWER)]
    begun = StreamingResponse(word for word in WORDS)
    next(begun.response_gen)
    assert list(Given(given=begun).query("Who?").response_gen) == WORDS[1:]
    assert notes.skipped == {"abandoned": 1}
    Given(given=StreamingResponse(None, response_txt=None)).query("Nothing to read?")
    assert len(notes.told) == 1


def test_a_stream_of_what_is_no_text_is_the_apps_own_trouble(notes):
    assert list(Given(given=StreamingResponse(iter([1, 2]))).query("Who?").response_gen) == [1, 2]
    assert [(place, type(error)) for place, error in notes.errors] == [("llama_index", TypeError)]
    notes.errors.clear()


# ------------------------------------------------------------------------------------------------ async


async def aask(answer=ANSWER):
    return await engine(answer, streaming=True).aquery("Who?")


async def test_an_async_stream(heard):
    response = await aask()
    stream = response.async_response_gen()
    for word in WORDS:
        assert await anext(stream) == word
        assert heard.told == []
    assert [word async for word in stream] == []
    assert response.response_txt == ANSWER
    assert heard.told == DONE


async def test_reading_an_async_stream_by_its_own_methods(notes):
    for read in (AsyncStreamingResponse.get_response, AsyncStreamingResponse.print_response_stream):
        response = await aask()
        await read(response)
        assert str(await response.get_response()) == ANSWER
    assert notes.told == DONE * 2


async def test_an_async_stream_left_half_read(notes):
    stream = (await aask()).response_gen
    await anext(stream)
    await stream.aclose()
    assert notes.skipped == {"abandoned": 1}
    stream = (await aask()).response_gen
    await anext(stream)
    del stream
    gc.collect()
    await asyncio.sleep(0.01)
    await aask()  # never read
    assert notes.skipped == {"abandoned": 2}
    assert notes.told == []


async def test_an_async_stream_that_breaks_or_is_cancelled(notes):
    with pytest.raises(ConnectionError):
        async for _ in (await aask("Jane BREAK")).async_response_gen():
            pass
    response = await engine(pause=0.05, streaming=True).aquery("Who?")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(response.get_response(), 0.07)
    assert [one.metadata["error"] for one in notes.samples] == ["ConnectionError: the line broke"]
    assert notes.skipped == {"cancelled": 1}
