"""The handler for LlamaIndex' older callbacks, where it differs from `instrument`; the rest stands with the engines."""

import asyncio

import pytest
from llama_index.core import Settings
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.query_engine import CustomQueryEngine

from ragstone_llama_index import MetricEvaluator, MonitorCallbackHandler, instrument, uninstrument

from .models import Chatting, truth
from .monitored import ANSWER, TEXTS, Notes, Speaking, engine, kept_by_handlers, memory, recorder_of, retriever

DONE = ("Who?", TEXTS, ANSWER)


@pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
def test_chats_have_no_query_event(called_back, kind):
    def make():
        return kind.from_defaults(retriever(), llm=Speaking(), memory=memory())

    asyncio.run(make().achat("Who?"))
    assert "".join(make().stream_chat("Who?").response_gen) == ANSWER
    called_back.wait(2)
    assert called_back.told == [DONE] * 2


def test_what_makes_no_sample(called_back):
    """As the docstring says; nor does an app that was built before."""
    SimpleChatEngine.from_defaults(llm=Speaking(), memory=memory()).chat("Who?")

    class Own(CustomQueryEngine):
        def custom_query(self, query_str):
            return Speaking().complete(str(retriever().retrieve(query_str))).text

    Own().query("Who?")
    retriever().retrieve("Who?")
    Speaking().complete("Who?")
    Settings.llm = Chatting(truth)
    assert MetricEvaluator("context_relevancy").evaluate(
        query="Which of them say word1?", contexts=["It has word0 here."]
    )
    assert called_back.told == []


def test_beside_instrument_one_answer_is_one_sample(called_back):
    instrument(called_back)
    other = Notes()
    instrument(other)
    Settings.callback_manager.add_handler(Settings.callback_manager.handlers[0])  # and in two places
    engine().query("Who?")
    assert called_back.told == other.told == [DONE]
    uninstrument(called_back)
    engine().query("Who?")
    assert called_back.told == other.told == [DONE] * 2
    assert kept_by_handlers() == 0


@pytest.mark.parametrize("payload", [None, {EventPayload.QUERY_STR: 7}], ids=["None", "odd"])
def test_events_of_any_kind_and_none_of_them_raises(payload):
    notes = Notes()
    handler = MonitorCallbackHandler(notes)
    for kind in CBEventType:
        handler.on_event_end(kind, payload, event_id="never begun")
        for parent in ("", "root", "outer"):
            handler.on_event_start(CBEventType.QUERY, payload, event_id="outer", parent_id="root")
            assert handler.on_event_start(kind, payload, event_id="inner", parent_id=parent) == "inner"
            handler.on_event_end(kind, {EventPayload.RESPONSE: object(), EventPayload.NODES: 7}, event_id="inner")
            handler.on_event_end(CBEventType.QUERY, {EventPayload.RESPONSE: object()}, event_id="outer")
    assert notes.errors == []
    assert len(recorder_of(handler).runs) == 0
