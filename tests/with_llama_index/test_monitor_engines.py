"""What query engines of every kind are asked and answer becomes one sample for each question of the user."""

import asyncio
from importlib.metadata import version

import pytest
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation.dispatcher import instrument_tags
from packaging.version import Version

from ragstone_llama_index import LlamaIndexLLM, MetricEvaluator

from .models import Chatting, metrics, truth
from .monitored import ANSWER, TEXTS, Speaking, as_json, engine, in_threads, retriever

CORE = Version(version("llama-index-core"))
DONE = ("Who?", TEXTS, ANSWER)


def query(app, question="Who?"):
    return app.query(question)


def aquery(app, question="Who?"):
    return asyncio.run(app.aquery(question))


WAYS = pytest.mark.parametrize("ask", [query, aquery])


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


class Nothing(BaseNodePostprocessor):
    """Finds none of the nodes good enough."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return []


def test_contexts_are_those_after_the_reranking(heard):
    """What was retrieved and thrown away before the model saw it is no context."""
    for ask in (query, aquery):
        ask(engine(node_postprocessors=[Second()]))
        ask(engine(node_postprocessors=[Nothing()]))
    assert heard.told == [("Who?", (f"reranked: {TEXTS[1]}",), ANSWER), ("Who?", (), "Empty Response")] * 2


def sub_question(broken=False, use_async=False):
    asked = [{"sub_question": "Who wrote Emma?", "tool_name": "a"}, {"sub_question": "Who Dune?", "tool_name": "b"}]
    first = engine(ValueError("down")) if broken else engine("Austen.", texts=TEXTS[:1])
    tools = [
        QueryEngineTool.from_defaults(first, name="a", description="a"),
        QueryEngineTool.from_defaults(engine("Herbert.", texts=TEXTS[1:]), name="b", description="b"),
    ]
    return SubQuestionQueryEngine.from_defaults(
        tools,
        llm=Speaking(),
        question_gen=LLMQuestionGenerator.from_defaults(llm=Speaking(as_json(asked))),
        use_async=use_async,
        verbose=False,
    )


@WAYS
def test_sub_questions_are_one_sample_and_one_that_fails_is_no_failure_of_the_whole(heard, ask):
    response = ask(sub_question())
    assert heard.told == [("Who?", tuple(node.get_content() for node in response.source_nodes), ANSWER)]
    assert len(response.source_nodes) == 4  # two pairs of question and answer, and a source of each
    assert set(TEXTS) < set(heard.samples[0].retrieved_contexts)
    ask(sub_question(broken=True))
    assert heard.samples[1].response == ANSWER
    assert "error" not in heard.samples[1].metadata


def test_hyde_keeps_the_users_question(heard):
    query(TransformQueryEngine(engine(), HyDEQueryTransform(llm=Speaking("An invented passage."))))
    assert heard.told == [DONE]


class Boom(BaseRetriever):
    def _retrieve(self, query_bundle):
        raise self.object_map["error"]


def booming(error):
    return RetrieverQueryEngine(Boom(object_map={"error": error}), get_response_synthesizer(llm=Speaking()))


def test_a_retriever_that_fails(heard):
    for ask in (query, aquery):
        with pytest.raises(ValueError, match="database"):
            ask(booming(ValueError("the database is down " + "x" * 500)))
    assert heard.told == [("Who?", (), None)] * 2
    assert heard.samples[0].metadata["error"].startswith("ValueError: the database is down xxx")
    assert len(heard.samples[0].metadata["error"]) == len("ValueError: ") + 200


def test_a_model_that_fails_keeps_what_was_retrieved(heard):
    for ask in (query, aquery):
        with pytest.raises(ConnectionError):
            ask(engine(ConnectionError("rate limit")))
    assert heard.told == [("Who?", TEXTS, None)] * 2
    assert heard.samples[0].metadata["error"] == "ConnectionError: rate limit"


def test_what_was_called_off_is_no_sample(heard):
    for error in (KeyboardInterrupt(), SystemExit()):
        with pytest.raises(type(error)):
            query(booming(error))
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(engine(pause=60).aquery("Who?"), 0.2))
    assert heard.told == []
    assert heard.skipped == {"cancelled": 3}


def test_what_a_model_calls_off_is_no_sample(notes):
    for error in (GeneratorExit(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            query(engine(error))
    assert (notes.told, notes.skipped) == ([], {"cancelled": 2})


def test_queries_at_the_same_time(heard):
    """Callbacks' traces overwrite each other then; ids of events do not."""

    async def main():
        apps = [engine(f"Answer {i}.", texts=[f"Text {i}."], pause=0.002) for i in range(8)]
        await asyncio.gather(*(app.aquery(f"Question {i}?") for i, app in enumerate(apps)))

    asyncio.run(main())
    expected = sorted((f"Question {i}?", (f"Text {i}.",), f"Answer {i}.") for i in range(8))
    assert sorted(heard.told) == expected
    heard.samples.clear()
    apps = [engine(f"Answer {i}.", texts=[f"Text {i}."]) for i in range(8)]
    in_threads(*(lambda i=i: [apps[i].query(f"Question {i}?") for _ in range(10)] for i in range(8)))
    assert sorted(heard.told) == sorted(expected * 10)
    assert len({one.id for one in heard.samples}) == 80


def test_a_monitor_that_fails_is_no_trouble_of_the_app(heard):
    def submit(sample):
        raise MemoryError("full")

    heard.submit = submit
    assert str(query(engine())) == ANSWER
    assert "".join(query(engine(streaming=True)).response_gen) == ANSWER
    assert [type(error) for _, error in heard.errors] == [MemoryError] * 2
    heard.errors.clear()


# --- what callbacks do not tell ----------------------------------------------------------------------------------


def test_the_sample_has_the_id_of_the_calls_span_and_the_apps_tags(notes):
    with instrument_tags({"user": "ann", "turn": 3, "client": object(), "llamaindex.run_id": "x"}):
        query(engine())
    query(engine())
    assert [one.metadata["tags"] for one in notes.samples] == [{"user": "ann", "turn": 3}, {}]
    assert [len(one.id) for one in notes.samples] == [36, 36]


def test_what_the_app_changes_afterwards_does_not_show(notes):
    response = query(engine())
    for node in response.source_nodes:
        node.node.set_content("changed")
    response.source_nodes.clear()
    response.response = "changed"
    assert notes.told == [DONE]


def test_sub_questions_at_the_same_time(notes):
    query(sub_question(use_async=True))
    aquery(sub_question(use_async=True))
    assert [len(one.retrieved_contexts) for one in notes.samples] == [4, 4]


async def test_sub_questions_within_a_running_loop(notes):
    sub_question(use_async=True).query("Compare.")
    asked = [one.user_input for one in notes.samples]
    # Before 0.14.9, LlamaIndex runs them in a thread that does not know of the query: runs of their own.
    assert asked[-1] == "Compare."
    assert len(asked) == (1 if Version("0.14.9") <= CORE else 3)


def test_a_router(notes):
    tools = [
        QueryEngineTool.from_defaults(engine("one", texts=TEXTS[:1]), description="one"),
        QueryEngineTool.from_defaults(engine("two", texts=TEXTS[1:]), description="two"),
    ]
    choice = Speaking(as_json([{"choice": 2, "reason": "so"}]))
    app = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=choice), tools, llm=choice)
    query(app)
    aquery(app)
    assert notes.told == [("Who?", TEXTS[1:], "two")] * 2


class Reranking(CustomQueryEngine):
    """Gives its synthesizer one node at a time, and not all that it retrieved; its answer names none."""

    retriever: BaseRetriever
    llm: Speaking

    def custom_query(self, query_str):
        synthesizer = get_response_synthesizer(llm=self.llm)
        parts = []
        for part in (0, 1):
            nodes = self.retriever.retrieve(query_str)
            parts.append(str(synthesizer.synthesize(query_str, nodes[part : part + 1])))
        return " ".join(parts)


@WAYS
def test_the_contexts_of_an_own_engine_are_what_its_synthesizer_was_given(notes, ask):
    ask(Reranking(retriever=retriever((*TEXTS, "Thrown away.")), llm=Speaking()))
    assert notes.told == [("Who?", TEXTS, f"{ANSWER} {ANSWER}")]


class Recursive(BaseRetriever):
    """Returns a node that stands for a query engine."""

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=self.object_map["inner"], score=0.5)]


@WAYS
def test_a_node_that_stands_for_an_engine(notes, ask):
    node = IndexNode(text="inner", index_id="inner", obj=engine("What the inner one says."))
    outer = Recursive(object_map={"inner": node})
    ask(RetrieverQueryEngine(outer, get_response_synthesizer(llm=Speaking())))
    (sample,) = notes.samples
    assert (sample.user_input, sample.response, len(sample.retrieved_contexts)) == ("Who?", ANSWER, 1)
    assert "What the inner one says." in sample.retrieved_contexts[0]


def test_retrievers_and_models_alone_make_no_sample(notes):
    retriever().retrieve("Who?")
    Speaking().complete("Who?")
    list(Speaking().stream_complete("Who?"))
    get_response_synthesizer(llm=Speaking()).synthesize("Who?", retriever().retrieve("Who?"))
    asyncio.run(retriever().aretrieve("Who?"))
    assert (notes.told, notes.skipped) == ([], {})


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
