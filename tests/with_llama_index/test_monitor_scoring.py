"""A whole app with a whole monitor: what it answers is scored beside it, by its own model if need be."""

import asyncio
import gc
import json
import warnings

import pytest

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import LlamaIndexLLM, instrument, uninstrument

from .models import Chatting, request_of, truth
from .monitored import ANSWER, engine, index, kept_by_handlers

QUESTION = "Which of them say word1?"
TEXTS = ("It has word0 here. It has word1 here.", "It has word2 here.")


def monitor_of(llm, outcomes, **options):
    metrics = [ContextRelevancy(llm=llm), ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), strictness=1)]
    return Monitor(metrics, sinks=CallableSink(outcomes.extend), **options)


@pytest.mark.parametrize("judge", [FakeLLM(truth), LlamaIndexLLM(Chatting(truth))], ids=["fake", "LlamaIndex"])
def test_an_app_is_scored_and_its_judges_calls_are_not(judge):
    """Calls of a judge from LlamaIndex are spans of the same process; none of them begets another sample."""
    outcomes = []
    with monitor_of(judge, outcomes) as monitor:
        instrument(monitor)
        for _ in range(3):
            asyncio.run(engine(texts=TEXTS).aquery(QUESTION))
        assert monitor.flush(30).done
        stats = monitor.stats()
        uninstrument(monitor)
    assert (stats.samples, stats.accepted, stats.scored, stats.errors) == (3, 6, 6, {})
    assert len({one.sample_id for one in outcomes}) == 3
    values = {one.outcome.metric: one.outcome.value for one in outcomes}
    assert values["context_relevancy"] == pytest.approx(1 / 3)
    assert kept_by_handlers() == 0


def test_app_and_judge_share_one_openai_object_on_two_loops(openai_server):
    """The real client object breaks when two event loops await it; the monitor never awaits it at all."""
    openai = pytest.importorskip("llama_index.llms.openai", reason="needs llama-index-llms-openai")

    def reply(body):
        system, user = (message["content"] for message in body["messages"][-2:])
        try:
            said = truth(request_of(system, user))
        except KeyError:
            return ANSWER  # asked by the app
        return said if isinstance(said, str) else json.dumps(said)

    server = openai_server(reply)
    model = openai.OpenAI("gpt-4o-mini", api_base=server.url, api_key="sk-test", max_retries=0)
    app = index(TEXTS).as_query_engine(llm=model, similarity_top_k=2)
    outcomes, failed = [], []

    async def user():
        for _ in range(10):
            try:
                assert str(await app.aquery(QUESTION)) == ANSWER
            except Exception as error:
                failed.append(error)

    async def main():
        await asyncio.gather(*(user() for _ in range(4)))

    with monitor_of(LlamaIndexLLM(model), outcomes) as monitor:
        instrument(monitor)
        asyncio.run(main())
        assert monitor.flush(120).done
        stats = monitor.stats()
        uninstrument(monitor)
    assert failed == []
    assert (stats.samples, stats.scored, stats.errors) == (40, 80, {})
    del server
    with warnings.catch_warnings():  # LlamaIndex never closes its clients
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
