"""A whole app with a whole monitor: what it answers is scored beside it, by its own model if need be."""

import asyncio

import pytest

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import LlamaIndexLLM, instrument, uninstrument

from .models import Chatting, truth
from .monitored import engine, kept_by_handlers

QUESTION = "Which of them say word1?"
TEXTS = ("It has word0 here. It has word1 here.", "It has word2 here.")


@pytest.mark.parametrize("judge", [FakeLLM(truth), LlamaIndexLLM(Chatting(truth))], ids=["fake", "LlamaIndex"])
def test_an_app_is_scored_and_its_judges_calls_are_not(judge):
    """Calls of a judge from LlamaIndex are spans of the same process; none of them begets another sample."""
    outcomes = []
    metrics = [ContextRelevancy(llm=judge), ResponseRelevancy(llm=judge, embedder=FakeEmbedder(), strictness=1)]
    with Monitor(metrics, sinks=CallableSink(outcomes.extend)) as monitor:
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
