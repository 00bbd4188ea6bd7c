"""The handler: put in place and taken away, what fails in them, streams that they listen to."""

import asyncio
import copy
import gc
import inspect
import weakref

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.span import active_span_id
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from ragstone import open_runs as runs
from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator, instrument, uninstrument

from ..support.noting import Noting  # noqa: TID252
from .models import truth
from .monitored import (
    ANSWER,
    TEXTS,
    Speaking,
    engine,
    in_threads,
    kept_by_handlers,
    memory,
    retriever,
)

DONE = ("Who?", TEXTS, ANSWER)
WORDS = ["Jane", " Austen", " wrote", " it."]

# -------------------------------------------------------------------------------- in place and away


def handlers():
    return [id(one) for one in root_dispatcher.span_handlers]


def test_the_same_monitor_twice_is_once(notes):
    before = handlers()
    in_threads(*[lambda: instrument(notes)] * 16)
    assert handlers() == before
    engine().query("Who?")
    assert notes.told == [DONE]


def test_what_is_refused():
    before = handlers()
    with pytest.raises(TypeError, match="where: is str; "):
        instrument(Noting(), where="RetrieverQueryEngine")
    with pytest.raises(TypeError, match="monitor: str has no submit; pass a ragstone.Monitor"):
        instrument("monitor")
    assert handlers() == before


def test_taking_it_away_leaves_others_in_place_and_a_begun_stream_is_told(notes):
    theirs = SimpleSpanHandler()
    root_dispatcher.add_span_handler(theirs)
    response = engine(streaming=True).query("Who?")
    for monitor in (Noting(), notes, notes):
        uninstrument(monitor)
    assert "".join(response.response_gen) == ANSWER
    before = handlers()
    assert id(theirs) in before
    instrument(notes)
    instrument(Noting())
    uninstrument()
    assert handlers() == before
    engine().query("Who?")
    assert notes.told == [DONE]


def test_copies_of_handlers_are_at_work_on_the_same_runs(notes):
    """Apps are copied, at times with all that they hold."""
    handler = root_dispatcher.span_handlers[0]
    assert copy.deepcopy(handler).recorder is handler.recorder


class Outer(CustomQueryEngine):
    inner: object

    def custom_query(self, query_str):
        with instrument_tags({}):
            return str(self.inner.query("Inner?"))


def test_where_chooses_what_is_scored_with_all_beneath_it(notes):
    instrument(notes, where=lambda instance, name: name == "RetrieverQueryEngine.query")
    inner = engine()
    Outer(inner=inner).query("Outer?")
    assert notes.told == []
    inner.query("Who?")
    instrument(notes)  # all, from now on
    Outer(inner=inner).query("Outer?")
    assert [one.user_input for one in notes.samples] == ["Who?", "Outer?"]


class Broken(TextNode):
    """A node whose text cannot be had."""

    def get_content(self, metadata_mode=None):
        raise OSError("gone")


class Returning(CustomQueryEngine):
    returned: object = None

    def custom_query(self, query_str):
        return self.returned


def test_what_fails_in_the_handler_is_counted_and_no_trouble_of_the_app(notes):
    app = Returning(returned=Response(ANSWER, source_nodes=[NodeWithScore(node=Broken(text="x"))]))
    assert str(app.query("Who?")) == str(asyncio.run(app.aquery("Who?"))) == ANSWER
    instrument(notes, where=lambda instance, name: 1 / 0)
    assert str(engine().query("Who?")) == ANSWER
    assert [type(error) for error in notes.errors] == [OSError, OSError, ZeroDivisionError]
    assert (notes.told, notes.skipped) == ([], {"where_failed": 1})
    notes.errors.clear()


def test_runs_that_never_end_are_counted(notes):
    handler, app = root_dispatcher.span_handlers[0], Returning()
    bound = inspect.signature(lambda str_or_query_bundle: None).bind("Who?")
    ids = [f"RetrieverQueryEngine.query-{i:036}" for i in range(runs.MOST_OPEN + 3)]
    for id_ in ids:
        handler.span_enter(id_, bound, app, None, {})
    for id_ in ids:
        handler.span_exit(id_, bound, app, Response(ANSWER))
    assert notes.skipped == {"never_ended": 3}
    assert len(notes.told) == runs.MOST_OPEN


def test_a_span_id_that_was_left_behind_in_the_context(notes):
    """LlamaIndex 0.13 leaves that of a run that is over."""
    token = active_span_id.set("Flow.run-" + "0" * 36)
    engine().query("Who?")
    active_span_id.reset(token)
    assert notes.told == [DONE]


async def read_async():
    """What async streams give, each read another way."""
    streams = [(await aask()).async_response_gen(), (await aask()).response_gen]
    app = ContextChatEngine.from_defaults(retriever(), llm=Speaking(), memory=memory())
    streams.append((await app.astream_chat("Who?")).async_response_gen())
    texts = [str(await (await aask()).get_response())]
    for stream in streams:
        texts.append("".join([word async for word in stream]))
    return texts


@pytest.mark.parametrize("ours_first", [False, True])
def test_beside_openinference_both_hear_all(openinference, ours_first):
    from opentelemetry.trace import get_current_span

    start, spans = openinference
    notes, current = Noting(), []
    submit = notes.submit
    notes.submit = lambda sample: (submit(sample), current.append(get_current_span().get_span_context().span_id))
    for begin in [lambda: instrument(notes), start] if ours_first else [start, lambda: instrument(notes)]:
        begin()
    engine().query("Who?")
    assert "".join(engine(streaming=True).query("Who?").response_gen) == ANSWER
    assert asyncio.run(read_async()) == [ANSWER] * 4
    notes.wait(6)
    with pytest.raises(ConnectionError):
        engine(ConnectionError("down")).query("Who?")
    uninstrument(notes)
    engine().query("Still heard by them?")
    assert notes.told == [DONE] * 6 + [("Who?", TEXTS, None)]
    root_dispatcher.shutdown()  # theirs are exported
    calls = [span.context.span_id for span in spans() if span.name == "RetrieverQueryEngine.query"]
    assert len(calls) == 4
    queries = {current[0], current[1], current[-1]}
    assert len(queries) == 3
    assert queries < set(calls), "a sample's origin is the span of the very call"


# -------------------------------------------------------------------------------- streams


def ask(answer=ANSWER):
    return engine(answer, streaming=True).query("Who?")


async def aask(answer=ANSWER, pause=0.0):
    return await engine(answer, pause=pause, streaming=True).aquery("Who?")


def test_nothing_is_read_before_the_app_reads_and_nothing_told_before_the_end(notes):
    stream = ask().response_gen
    for word in WORDS:
        assert next(stream) == word
        assert notes.told == []
    assert list(stream) == []
    assert list(stream) == []
    assert notes.told == [DONE]


def test_a_stream_left_half_read_or_unread(notes):
    stream = ask().response_gen
    next(stream)
    stream.close()
    assert notes.skipped == {"abandoned": 1}
    other = ask().response_gen
    next(other)
    never = ask()
    assert kept_by_handlers() == 0
    gone = weakref.ref(never.response_gen)
    del other, never
    gc.collect()
    assert gone() is None
    assert notes.skipped == {"abandoned": 3}
    assert notes.told == []
    whole = ask().response_gen
    assert list(whole) == WORDS
    del whole
    gc.collect()
    assert (notes.skipped, notes.told) == ({"abandoned": 3}, [DONE])


def test_two_monitors_and_an_evaluator_hear_the_same_stream(notes):
    other = Noting()
    instrument(other)
    response = ask()
    assert MetricEvaluator("context_relevancy", FakeLLM(truth)).evaluate_response("Who?", response).response == ANSWER
    assert list(response.response_gen) == [ANSWER]
    assert notes.told == other.told == [DONE]
    assert [one.id for one in notes.samples] == [one.id for one in other.samples]


class Closing:
    """A stream that is no generator, as a client's may be."""

    closed = 0

    def __iter__(self):
        return iter(WORDS)

    def close(self):
        self.closed += 1


def test_a_stream_of_another_kind_is_closed_when_the_app_closes_it(notes):
    left = Closing()
    stream = Returning(returned=StreamingResponse(left)).query("Who?").response_gen
    next(stream)
    stream.close()
    assert left.closed == 1
    assert list(Returning(returned=StreamingResponse(Closing())).query("Who?").response_gen) == WORDS
    assert notes.told == [("Who?", (), ANSWER)]


def test_a_stream_that_the_engine_itself_read(notes):
    read, begun = StreamingResponse(iter(WORDS)), StreamingResponse(word for word in WORDS)
    assert str(read) == ANSWER
    assert Returning(returned=read).query("Who?") is read
    next(begun.response_gen)
    assert list(Returning(returned=begun).query("Who?").response_gen) == WORDS[1:]
    assert (notes.told, notes.skipped) == ([("Who?", (), ANSWER)], {"abandoned": 1})
    assert list(Returning(returned=StreamingResponse(iter([1, 2]))).query("Who?").response_gen) == [1, 2]
    assert (notes.skipped["no_answer"], notes.names) == (1, [("int",)])


class Both:
    """A tracer's stream: read in either way."""

    def __init__(self):
        self.words = iter(WORDS)

    def __iter__(self):
        return self.words

    async def __aiter__(self):
        for word in self.words:
            yield word


async def test_an_async_stream_that_may_be_read_in_both_ways(notes):
    response = await Returning(returned=AsyncStreamingResponse(Both())).aquery("Who?")
    assert [word async for word in response.response_gen] == WORDS
    assert notes.told == [("Who?", (), ANSWER)]


async def test_an_async_stream(notes):
    stream = (await aask()).async_response_gen()
    for word in WORDS:
        assert await anext(stream) == word
        assert notes.told == []
    assert [word async for word in stream] == []
    assert (await (await aask()).get_response()).response == ANSWER
    assert notes.told == [DONE] * 2
    left = (await aask()).response_gen
    await anext(left)
    await left.aclose()
    assert notes.skipped == {"abandoned": 1}


async def test_a_stream_that_breaks_or_is_cancelled(notes):
    stream = ask("Jane Austen BREAK").response_gen
    assert [next(stream), next(stream)] == WORDS[:2]
    with pytest.raises(ConnectionError, match="the line broke"):
        next(stream)
    with pytest.raises(ConnectionError):
        await (await aask("Jane BREAK")).get_response()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for((await aask(pause=0.05)).get_response(), 0.07)
    assert notes.told == [("Who?", TEXTS, None)] * 2
    assert [one.metadata["error"] for one in notes.samples] == ["ConnectionError: the line broke"] * 2
    assert notes.skipped == {"cancelled": 1}
