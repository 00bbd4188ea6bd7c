"""The app sees nothing of the judge: tags for instrumentation, nothing for legacy callbacks and OpenTelemetry."""

import asyncio
from typing import Any

import llama_index.core
import pytest
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags
from llama_index_instrumentation.span import active_span_id
from pydantic import Field

from ragstone_llama_index import JUDGE_TAG, LlamaIndexEmbedder, LlamaIndexLLM, MetricEvaluator

from .models import SAMPLE, Chatting, Completing, Placing, PlacingSync, truth


class Events(BaseEventHandler):
    seen: list[Any] = Field(default_factory=list)

    def handle(self, event, **kwargs):
        self.seen.append(event)


class Spans(BaseSpanHandler[Any]):
    entered: list[Any] = Field(default_factory=list)

    def span_enter(self, id_, bound_args, instance=None, parent_id=None, tags=None, **kwargs):
        self.entered.append((id_, parent_id, dict(tags or {})))

    def new_span(self, *args, **kwargs):
        return None

    prepare_to_exit_span = prepare_to_drop_span = new_span


class Legacy(BaseCallbackHandler):
    """Remembers all."""

    def __init__(self):
        super().__init__([], [])
        self.heard = []

    def on_event_start(self, *args, **kwargs):
        self.heard.append(args)

    on_event_end = start_trace = end_trace = on_event_start


@pytest.fixture
def heard_by_app():
    events, spans = Events(), Spans()
    get_dispatcher().add_event_handler(events)
    get_dispatcher().add_span_handler(spans)
    return events.seen, spans.entered


INPUTS = SAMPLE.user_input, SAMPLE.response, SAMPLE.retrieved_contexts


def sync_way(*evaluator):
    assert MetricEvaluator("response_relevancy", *evaluator).evaluate(*INPUTS).score is not None


def async_way(*evaluator):
    assert asyncio.run(MetricEvaluator("response_relevancy", *evaluator).aevaluate(*INPUTS)).score is not None


MODELS = pytest.mark.parametrize(
    ("way", "model", "embed_model"),
    [(sync_way, Chatting, Placing), (async_way, Chatting, Placing), (async_way, Completing, PlacingSync)],
)


@MODELS
def test_every_event_and_span_of_the_judge_carries_its_tag_and_the_apps_and_hangs_from_none_of_them(
    way, model, embed_model, heard_by_app
):
    events, spans = heard_by_app
    token = active_span_id.set("App.query-1")
    with instrument_tags({"tenant": 7}):
        way(model(truth), embed_model())
        MetricEvaluator("context_relevancy", Chatting(lambda request: ConnectionError("refused"))).evaluate(
            "A?", "", [""]
        )
        assert active_instrument_tags.get() == {"tenant": 7}
    assert active_span_id.get() == "App.query-1"
    active_span_id.reset(token)
    assert {type(event).__name__ for event in events} >= {"EmbeddingEndEvent"}
    assert any(type(event).__name__.startswith("LLM") for event in events)
    for tags in [*(event.tags for event in events), *(tags for _, _, tags in spans)]:
        assert tags == {"tenant": 7, JUDGE_TAG: True}
    parents = {parent for _, parent, _ in spans}
    assert None in parents
    assert "App.query-1" not in parents


@MODELS
@pytest.mark.parametrize("where", ["model", "settings", "global"])
def test_legacy_callbacks_hear_nothing(where, way, model, embed_model, monkeypatch):
    handler = Legacy()
    fields = {}
    if where == "model":
        fields["callback_manager"] = CallbackManager([handler])
    elif where == "settings":
        Settings.callback_manager = CallbackManager([handler])
    else:
        monkeypatch.setattr(llama_index.core, "global_handler", handler)
    llm, embedding = model(truth, **fields), embed_model(**fields)
    Settings.llm, Settings.embed_model = llm, embedding
    handler.heard.clear()
    way()  # from Settings
    way(llm, embedding)
    assert handler.heard == []
    llm.callback_manager.on_event_start("llm")  # the app's own still tells it
    assert len(handler.heard) == 1


@MODELS
@pytest.mark.filterwarnings("ignore:The `json` method is deprecated:DeprecationWarning")  # OpenInference calls it
def test_openinference_records_the_judge_on_request_only(way, model, embed_model, openinference, heard_by_app):
    start, spans = openinference
    start()
    way(model(truth), embed_model())
    assert spans() == ()
    embed_model().get_text_embedding("The app's own.")
    before = len(spans())
    assert before > 0
    handler = Legacy()
    judge = LlamaIndexLLM(model(truth, callback_manager=CallbackManager([handler])), trace=True)
    way(judge, LlamaIndexEmbedder(embed_model(), trace=True))
    assert len(spans()) >= before + 2
    assert handler.heard
    assert all(event.tags[JUDGE_TAG] for event in heard_by_app[0] if "LLM" in type(event).__name__)
