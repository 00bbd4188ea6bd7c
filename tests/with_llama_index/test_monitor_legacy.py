"""The handler for LlamaIndex' older callbacks: one sample for each question, as far as callbacks tell."""

import asyncio
import gc

import llama_index.core
import pytest
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine, TransformQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever

from ragstone_llama_index import ContextRelevancyEvaluator, MonitorCallbackHandler, instrument, uninstrument

from .models import Chatting, truth
from .monitored import (
    ANSWER,
    TEXTS,
    Notes,
    Speaking,
    engine,
    in_threads,
    kept_by_handlers,
    memory,
    recorder_of,
    retriever,
)
from .test_monitor_engines import Nothing, Second, sub_question

DONE = ("Who?", TEXTS, ANSWER)
WAYS = pytest.mark.parametrize("ask", ["query", "aquery"])


def put(app, question, way):
    return app.query(question) if way == "query" else asyncio.run(app.aquery(question))


@pytest.fixture
def notes():
    """What the handler in `Settings` told, put there before anything was built."""
    notes = Notes()
    handler = MonitorCallbackHandler(notes)
    Settings.callback_manager = CallbackManager([handler])
    yield notes
    gc.collect()
    assert notes.errors == []
    assert len(recorder_of(handler)) == 0


@WAYS
def test_a_query(notes, ask):
    put(engine(), "Who?", ask)
    put(engine(), "Who?", ask)
    assert notes.told == [DONE] * 2
    assert len({one.id for one in notes.samples}) == 2
    assert notes.samples[0].metadata == {"name": "query", "tags": {}}


@WAYS
def test_contexts_are_those_after_the_reranking(notes, ask):
    put(engine(node_postprocessors=[Second()]), "Who?", ask)
    put(engine(node_postprocessors=[Nothing()]), "Who?", ask)
    assert notes.told == [("Who?", (f"reranked: {TEXTS[1]}",), ANSWER), ("Who?", (), "Empty Response")]


@WAYS
def test_sub_questions_are_one_sample(notes, ask):
    response = put(sub_question(), "Compare.", ask)
    assert notes.told == [("Compare.", tuple(node.get_content() for node in response.source_nodes), ANSWER)]


@WAYS
def test_hyde(notes, ask):
    put(TransformQueryEngine(engine(), HyDEQueryTransform(llm=Speaking("An invented passage."))), "Who?", ask)
    assert notes.told == [DONE]


@pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
def test_chats_have_no_query_event(notes, kind):
    def make():
        return kind.from_defaults(retriever(), llm=Speaking(), memory=memory())

    make().chat("Who?")
    asyncio.run(make().achat("Who?"))
    assert "".join(make().stream_chat("Who?").response_gen) == ANSWER

    async def main():
        response = await make().astream_chat("Who?")
        assert "".join([word async for word in response.async_response_gen()]) == ANSWER

    asyncio.run(main())
    notes.wait(4)
    assert notes.told == [DONE] * 4


def test_what_callbacks_do_not_tell(notes):
    """As the docstring says."""
    SimpleChatEngine.from_defaults(llm=Speaking(), memory=memory()).chat("Who?")

    class Own(CustomQueryEngine):
        def custom_query(self, query_str):
            return Speaking().complete(str(retriever().retrieve(query_str))).text

    Own().query("Who?")
    retriever().retrieve("Who?")
    Speaking().complete("Who?")
    assert notes.told == []


def test_streams(notes):
    stream = engine(streaming=True).query("Who?").response_gen
    assert next(stream) == "Jane"
    assert notes.told == []
    assert "".join(stream) == " Austen wrote it."
    assert notes.told == [DONE]
    left = engine(streaming=True).query("Who?").response_gen
    next(left)
    left.close()
    engine(streaming=True).query("Never read?")
    broken = engine("Jane BREAK", streaming=True).query("Who?").response_gen
    with pytest.raises(ConnectionError):
        list(broken)
    assert notes.skipped == {"abandoned": 1}
    assert notes.told == [DONE, ("Who?", TEXTS, None)]


def test_async_streams(notes):
    async def main():
        response = await engine(streaming=True).aquery("Who?")
        assert "".join([word async for word in response.async_response_gen()]) == ANSWER

    asyncio.run(main())
    assert notes.told == [DONE]


class Boom(BaseRetriever):
    def _retrieve(self, query_bundle):
        raise self.object_map["error"]


@WAYS
def test_a_retriever_that_fails(notes, ask):
    app = RetrieverQueryEngine(Boom(object_map={"error": ValueError("down")}), get_response_synthesizer(llm=Speaking()))
    with pytest.raises(ValueError, match="down"):
        put(app, "Who?", ask)
    assert notes.told == [("Who?", (), None)]
    assert notes.samples[0].metadata["error"] == "ValueError: down"


@WAYS
def test_a_model_that_fails(notes, ask):
    with pytest.raises(ConnectionError):
        put(engine(ConnectionError("rate limit")), "Who?", ask)
    assert notes.told == [("Who?", TEXTS, None)]
    assert notes.samples[0].metadata["error"] == "ConnectionError: rate limit"


@WAYS
def test_a_sub_question_that_fails_is_no_failure_of_the_whole(notes, ask):
    put(sub_question(broken=True), "Compare.", ask)
    (sample,) = notes.samples
    assert sample.response == ANSWER
    assert "error" not in sample.metadata


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_what_was_called_off_is_no_sample(notes, error):
    app = RetrieverQueryEngine(Boom(object_map={"error": error}), get_response_synthesizer(llm=Speaking()))
    with pytest.raises(type(error)):
        app.query("Who?")
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


def test_a_query_that_is_cancelled(notes):
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(engine(pause=60).aquery("Who?"), 0.2)

    asyncio.run(main())
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


def test_queries_at_the_same_time(notes):
    """Callbacks' traces overwrite each other then; ids of events do not."""

    async def main():
        apps = [engine(f"Answer {i}.", texts=[f"Text {i}."], pause=0.002) for i in range(8)]
        await asyncio.gather(*(app.aquery(f"Question {i}?") for i, app in enumerate(apps)))

    asyncio.run(main())
    expected = sorted((f"Question {i}?", (f"Text {i}.",), f"Answer {i}.") for i in range(8))
    assert sorted(notes.told) == expected
    notes.samples.clear()
    apps = [engine(f"Answer {i}.", texts=[f"Text {i}."]) for i in range(8)]
    in_threads(*(lambda i=i: apps[i].query(f"Question {i}?") for i in range(8)))
    assert sorted(notes.told) == expected


def test_what_a_judge_does_is_no_sample(notes):
    judge = Chatting(truth)
    Settings.llm = judge
    assert ContextRelevancyEvaluator().evaluate(query="Which of them say word1?", contexts=["It has word0 here."])
    assert notes.told == []


def test_it_may_be_given_in_several_places(notes):
    """The same events twice are one sample."""
    (handler,) = Settings.callback_manager.handlers
    Settings.callback_manager.add_handler(handler)
    Settings.callback_manager.add_handler(LlamaDebugHandler(print_trace_on_end=False))
    engine().query("Who?")
    assert notes.told == [DONE]


def test_it_may_be_the_global_handler(monkeypatch):
    notes = Notes()
    monkeypatch.setattr(llama_index.core, "global_handler", MonitorCallbackHandler(notes))
    Settings.callback_manager = None  # the next one made takes it
    engine().query("Who?")
    assert notes.told == [DONE]


def test_an_app_that_was_built_before_does_not_call_it():
    """As the docstring says; `instrument` hears it."""
    notes = Notes()
    app = engine()
    Settings.callback_manager = CallbackManager([MonitorCallbackHandler(notes)])
    app.query("Who?")
    assert notes.told == []


def test_beside_instrument_one_answer_is_one_sample(notes):
    instrument(notes)
    other = Notes()
    instrument(other)
    engine().query("Who?")
    assert notes.told == other.told == [DONE]
    uninstrument(notes)
    engine().query("Who?")
    assert notes.told == other.told == [DONE] * 2
    assert kept_by_handlers() == 0


@pytest.mark.parametrize("payload", [None, {}, {EventPayload.QUERY_STR: 7}, {EventPayload.QUERY_STR: "Who?"}])
@pytest.mark.parametrize("kind", list(CBEventType))
def test_events_of_any_kind_and_none_of_them_raises(kind, payload):
    notes = Notes()
    handler = MonitorCallbackHandler(notes)
    handler.on_event_end(kind, payload, event_id="never begun")
    for parent in ("", "root", "outer"):
        handler.on_event_start(CBEventType.QUERY, payload, event_id="outer", parent_id="root")
        assert handler.on_event_start(kind, payload, event_id="inner", parent_id=parent) == "inner"
        handler.on_event_end(kind, {EventPayload.RESPONSE: object(), EventPayload.NODES: 7}, event_id="inner")
        handler.on_event_end(CBEventType.QUERY, {EventPayload.RESPONSE: object()}, event_id="outer")
    handler.start_trace("query")
    handler.end_trace("query", {})
    assert notes.errors == []
    assert len(recorder_of(handler)) == 0


def test_a_monitor_that_fails_is_no_trouble_of_the_app(notes):
    def submit(sample):
        raise MemoryError("full")

    notes.submit = submit
    assert str(engine().query("Who?")) == ANSWER
    assert [type(error) for _, error in notes.errors] == [MemoryError]
    notes.errors.clear()
