"""What query engines of every kind are asked and answer becomes one sample for each question of the user."""

import asyncio

import pytest
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation.dispatcher import instrument_tags

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import LlamaIndexLLM, MetricEvaluator, instrument, uninstrument

from .models import Chatting, metrics, truth
from .monitored import ANSWER, TEXTS, Speaking, as_json, engine, in_threads, kept_by_handlers, retriever

DONE = ("Who?", TEXTS, ANSWER)


def query(app, question="Who?"):
    return app.query(question)


def aquery(app, question="Who?"):
    return asyncio.run(app.aquery(question))


def test_a_query(heard):
    assert str(query(engine())) == str(aquery(engine(), QueryBundle("Who?"))) == ANSWER
    assert heard.told == [DONE] * 2
    assert len({one.id for one in heard.samples}) == 2
    names = [one.metadata["name"] for one in heard.samples]
    assert names in (["RetrieverQueryEngine.query", "RetrieverQueryEngine.aquery"], ["query", "query"])


class Second(BaseNodePostprocessor):
    """Leaves the second of the nodes, rewritten."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=TextNode(text=f"reranked: {nodes[1].text}"), score=1.0)]


def test_contexts_are_those_after_the_reranking(heard):
    for ask in (query, aquery):
        ask(engine(node_postprocessors=[Second()]))
    assert heard.told == [("Who?", (f"reranked: {TEXTS[1]}",), ANSWER)] * 2


def tool(app, name):
    return QueryEngineTool.from_defaults(app, name=name, description=name)


@pytest.mark.parametrize("use_async", [False, True])
def test_sub_questions_are_one_sample_and_one_that_fails_is_no_failure_of_the_whole(heard, use_async):
    asked = [{"sub_question": "Who wrote Emma?", "tool_name": "a"}, {"sub_question": "Who Dune?", "tool_name": "b"}]
    second = tool(engine("Herbert.", texts=TEXTS[1:]), "b")
    for first in (engine("Austen.", texts=TEXTS[:1]), engine(ValueError("down"))):
        app = SubQuestionQueryEngine.from_defaults(
            [tool(first, "a"), second],
            llm=Speaking(),
            question_gen=LLMQuestionGenerator.from_defaults(llm=Speaking(as_json(asked))),
            use_async=use_async,
            verbose=False,
        )
        query(app)
    assert [(one.user_input, one.response, "error" in one.metadata) for one in heard.samples] == [
        ("Who?", ANSWER, False)
    ] * 2
    contexts = heard.samples[0].retrieved_contexts
    assert len(contexts) == 4  # two pairs of question and answer, and a source of each
    assert set(TEXTS) < set(contexts)


def test_a_router_and_hyde(notes):
    tools = [tool(engine("one", texts=TEXTS[:1]), "one"), tool(engine("two", texts=TEXTS[1:]), "two")]
    choice = Speaking(as_json([{"choice": 2, "reason": "so"}]))
    query(RouterQueryEngine(LLMSingleSelector.from_defaults(llm=choice), tools, llm=choice))
    query(TransformQueryEngine(engine(), HyDEQueryTransform(llm=Speaking("An invented passage."))))
    assert notes.told == [("Who?", TEXTS[1:], "two"), DONE]


class Reranking(CustomQueryEngine):
    """Gives its synthesizer one node at a time, and not all that it retrieved; its answer names none."""

    retriever: BaseRetriever
    llm: Speaking

    def custom_query(self, query_str):
        synthesizer = get_response_synthesizer(llm=self.llm)
        nodes = [self.retriever.retrieve(query_str) for _ in range(2)]
        return " ".join(str(synthesizer.synthesize(query_str, nodes[i][i : i + 1])) for i in range(2))


@pytest.mark.parametrize("ask", [query, aquery])
def test_the_contexts_of_an_own_engine_are_what_its_synthesizer_was_given(notes, ask):
    ask(Reranking(retriever=retriever((*TEXTS, "Thrown away.")), llm=Speaking()))
    assert notes.told == [("Who?", TEXTS, f"{ANSWER} {ANSWER}")]


def test_what_fails_is_a_sample_with_its_error_and_what_was_retrieved(heard):
    for ask in (query, aquery):
        with pytest.raises(ConnectionError):
            ask(engine(ConnectionError("rate limit " + "x" * 500)))
    assert heard.told == [("Who?", TEXTS, None)] * 2
    assert heard.samples[0].metadata["error"] == "ConnectionError: rate limit " + "x" * 189


def test_what_was_called_off_is_no_sample(heard):
    for error in (KeyboardInterrupt(), SystemExit()):
        with pytest.raises(type(error)):
            query(engine(error))
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(engine(pause=60).aquery("Who?"), 0.2))
    assert heard.told == []
    assert heard.skipped == {"cancelled": 3}


def test_queries_at_the_same_time(heard):
    """Callbacks' traces overwrite each other then; ids of events do not."""
    apps = [engine(f"Answer {i}.", texts=[f"Text {i}."], pause=0.002) for i in range(8)]

    async def main():
        await asyncio.gather(*(app.aquery(f"Question {i}?") for i, app in enumerate(apps)))

    asyncio.run(main())
    in_threads(*(lambda i=i: [apps[i].query(f"Question {i}?") for _ in range(5)] for i in range(8)))
    assert sorted(heard.told) == sorted(
        (f"Question {i}?", (f"Text {i}.",), f"Answer {i}.") for i in range(8) for _ in range(6)
    )
    assert len({one.id for one in heard.samples}) == 48


def test_a_monitor_that_fails_is_no_trouble_of_the_app(heard):
    def submit(sample):
        raise MemoryError("full")

    heard.submit = submit
    assert str(query(engine())) == ANSWER
    assert "".join(query(engine(streaming=True)).response_gen) == ANSWER
    assert [type(error) for _, error in heard.errors] == [MemoryError] * 2
    heard.errors.clear()


def test_the_sample_has_its_own_id_and_the_apps_tags_and_does_not_change_afterwards(notes):
    with instrument_tags({"user": "ann", "turn": 3, "client": object(), "llamaindex.run_id": "x"}):
        query(engine())
    response = query(engine())
    response.source_nodes[0].node.set_content("changed")
    response.source_nodes.clear()
    response.response = "changed"
    assert notes.told == [DONE] * 2
    assert [one.metadata["tags"] for one in notes.samples] == [{"user": "ann", "turn": 3}, {}]
    assert [len(one.id) for one in notes.samples] == [36, 36]


@pytest.mark.parametrize("trace", [False, True])
def test_what_a_judge_does_is_no_sample(notes, trace):
    """Even where the judge's model is asked in the midst of a query, and itself looks like an app."""

    class Asking(Chatting):
        """A judge that asks an engine."""

        def _answered(self, *args):
            query(engine(), "Of the judge")
            return super()._answered(*args)

    judge = LlamaIndexLLM(Asking(truth), trace=trace)
    metric = next(one for one in metrics(judge) if one.name == "context_relevancy")

    class Guarded(CustomQueryEngine):
        def custom_query(self, query_str):
            return str(MetricEvaluator(metric).evaluate(query=query_str, contexts=["It is."]).usage.llm_calls > 0)

    query(Guarded())
    assert notes.told == [("Who?", (), "True")]
    assert sum(notes.skipped.values()) == 0


QUESTION = "Which of them say word1?"
FACTS = ("It has word0 here. It has word1 here.", "It has word2 here.")


@pytest.mark.parametrize("judge", [FakeLLM(truth), LlamaIndexLLM(Chatting(truth))], ids=["fake", "LlamaIndex"])
def test_an_app_is_scored_and_its_judges_calls_are_not(judge):
    """Calls of a judge from LlamaIndex are spans of the same process; none of them begets another sample."""
    outcomes = []
    metrics = [ContextRelevancy(llm=judge), ResponseRelevancy(llm=judge, embedder=FakeEmbedder(), strictness=1)]
    with Monitor(metrics, sinks=CallableSink(outcomes.extend)) as monitor:
        instrument(monitor)
        for _ in range(3):
            asyncio.run(engine(texts=FACTS).aquery(QUESTION))
        assert monitor.flush(30).done
        stats = monitor.stats()
        uninstrument(monitor)
    assert (stats.samples, stats.accepted, stats.scored, stats.errors) == (3, 6, 6, {})
    assert len({one.sample_id for one in outcomes}) == 3
    values = {one.outcome.metric: one.outcome.value for one in outcomes}
    assert values["context_relevancy"] == pytest.approx(1 / 3)
    assert kept_by_handlers() == 0
