"""What query engines of every kind are asked and answer becomes one sample for each question of the user."""

import asyncio
from importlib.metadata import version

import pytest
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
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
from pydantic import BaseModel

from ragstone_llama_index import MetricEvaluator, instrument

from .models import Chatting, metrics, truth
from .monitored import ANSWER, TEXTS, Notes, Speaking, as_json, engine, index, kept_by_handlers, retriever

CORE = Version(version("llama-index-core"))
WAYS = pytest.mark.parametrize("ask", ["query", "aquery"])


def put(app, question, way):
    return app.query(question) if way == "query" else asyncio.run(app.aquery(question))


@pytest.fixture
def notes():
    notes = Notes()
    instrument(notes)
    yield notes
    assert notes.errors == []
    assert kept_by_handlers() == 0


@WAYS
@pytest.mark.parametrize("question", ["Who wrote Emma?", QueryBundle("Who wrote Emma?")])
def test_a_query(notes, ask, question):
    response = put(engine(), question, ask)
    assert notes.told == [("Who wrote Emma?", TEXTS, ANSWER)] == [("Who wrote Emma?", TEXTS, str(response))]
    assert notes.samples[0].metadata == {"name": f"RetrieverQueryEngine.{ask}", "tags": {}}


@WAYS
def test_the_sample_has_the_id_of_the_calls_span_and_the_apps_tags(notes, ask):
    app = engine()
    hostile = {"user": "ann", "turn": 3, "client": object(), "llamaindex.run_id": "x"}
    with instrument_tags(hostile):
        put(app, "One?", ask)
    put(app, "Two?", ask)
    one, two = notes.samples
    assert one.metadata["tags"] == {"user": "ann", "turn": 3}
    assert two.metadata["tags"] == {}
    assert len(one.id) == len(two.id) == 36
    assert one.id != two.id


class Second(BaseNodePostprocessor):
    """Leaves the second of the nodes, rewritten."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=TextNode(text=f"reranked: {nodes[1].text}"), score=1.0)]


@WAYS
def test_contexts_are_those_after_the_reranking(notes, ask):
    put(engine(node_postprocessors=[Second()]), "Who?", ask)
    assert notes.told == [("Who?", (f"reranked: {TEXTS[1]}",), ANSWER)]


@WAYS
def test_what_the_app_changes_afterwards_does_not_show(notes, ask):
    response = put(engine(), "Who?", ask)
    for node in response.source_nodes:
        node.node.set_content("changed")
    response.source_nodes.clear()
    response.response = "changed"
    assert notes.told == [("Who?", TEXTS, ANSWER)]


class Nothing(BaseNodePostprocessor):
    """Finds none of the nodes good enough."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return []


@WAYS
def test_an_empty_retrieval(notes, ask):
    """What was retrieved and thrown away before the model saw it is no context."""
    put(engine(node_postprocessors=[Nothing()]), "Who?", ask)
    assert notes.told == [("Who?", (), "Empty Response")]


class Author(BaseModel):
    name: str


@WAYS
def test_a_structured_answer_is_its_json(notes, ask):
    put(engine('{"name": "Jane Austen"}', output_cls=Author), "Who?", ask)
    assert notes.told == [("Who?", TEXTS, '{"name":"Jane Austen"}')]


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
@pytest.mark.parametrize("use_async", [False, True])
def test_sub_questions_are_one_sample(notes, ask, use_async):
    response = put(sub_question(use_async=use_async), "Compare.", ask)
    assert notes.told == [("Compare.", tuple(node.get_content() for node in response.source_nodes), ANSWER)]
    assert len(response.source_nodes) == 4  # two pairs of question and answer, and a source of each
    assert set(TEXTS) < set(notes.samples[0].retrieved_contexts)


def test_sub_questions_within_a_running_loop(notes):
    app = sub_question(use_async=True)

    async def handler():
        return app.query("Compare.")

    asyncio.run(handler())
    asked = [one.user_input for one in notes.samples]
    # Before 0.14.9, LlamaIndex runs them in a thread that does not know of the query: runs of their own.
    assert asked[-1] == "Compare."
    assert len(asked) == (1 if Version("0.14.9") <= CORE else 3)


@WAYS
def test_a_sub_question_that_fails_is_no_failure_of_the_whole(notes, ask):
    put(sub_question(broken=True), "Compare.", ask)
    (sample,) = notes.samples
    assert (sample.user_input, sample.response) == ("Compare.", ANSWER)
    assert "error" not in sample.metadata


@WAYS
def test_a_router(notes, ask):
    tools = [
        QueryEngineTool.from_defaults(engine("one", texts=TEXTS[:1]), description="one"),
        QueryEngineTool.from_defaults(engine("two", texts=TEXTS[1:]), description="two"),
    ]
    choice = Speaking(as_json([{"choice": 2, "reason": "so"}]))
    app = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=choice), tools, llm=choice)
    put(app, "Which?", ask)
    assert notes.told == [("Which?", TEXTS[1:], "two")]


@WAYS
def test_hyde_keeps_the_users_question(notes, ask):
    app = TransformQueryEngine(engine(), HyDEQueryTransform(llm=Speaking("An invented passage.")))
    put(app, "Who?", ask)
    assert notes.told == [("Who?", TEXTS, ANSWER)]


@WAYS
def test_citations_are_the_contexts(notes, ask):
    app = CitationQueryEngine.from_args(index(), llm=Speaking("Austen [1]."), similarity_top_k=2)
    put(app, "Who?", ask)
    (sample,) = notes.samples
    assert sample.retrieved_contexts == (f"Source 1:\n{TEXTS[0]}\n", f"Source 2:\n{TEXTS[1]}\n")


class Own(CustomQueryEngine):
    """As the documentation shows: retrieve, ask, return the text."""

    retriever: BaseRetriever
    llm: Speaking

    def custom_query(self, query_str):
        nodes = self.retriever.retrieve(query_str)
        return self.llm.complete(f"{query_str} {nodes}").text


@WAYS
def test_an_engine_of_the_users_own_that_returns_text(notes, ask):
    put(Own(retriever=retriever(), llm=Speaking()), "Who?", ask)
    assert notes.told == [("Who?", TEXTS, ANSWER)]


class Many(Own):
    """Retrieves twice, and asks an engine of its own."""

    inner: RetrieverQueryEngine

    def custom_query(self, query_str):
        self.retriever.retrieve(query_str)
        self.retriever.retrieve(f"{query_str} Again!")
        return str(self.inner.query("Something else"))


@WAYS
def test_contexts_from_within_each_once_and_after_the_inner_reranking(notes, ask):
    app = Many(retriever=retriever(TEXTS[:1]), llm=Speaking(), inner=engine(node_postprocessors=[Second()]))
    put(app, "Who?", ask)
    assert notes.told == [("Who?", (TEXTS[0], f"reranked: {TEXTS[1]}"), ANSWER)]


class Reranking(Own):
    """Throws away what it retrieves first, for each of two parts, and returns a text."""

    def custom_query(self, query_str):
        synthesizer = get_response_synthesizer(llm=self.llm)
        parts = []
        for part in (0, 1):
            nodes = self.retriever.retrieve(query_str)
            parts.append(str(synthesizer.synthesize(query_str, nodes[part : part + 1])))
        return " ".join(parts)


@WAYS
def test_the_contexts_of_an_own_engine_are_what_its_synthesizer_was_given(notes, ask):
    put(Reranking(retriever=retriever((*TEXTS, "Thrown away.")), llm=Speaking()), "Who?", ask)
    assert notes.told == [("Who?", TEXTS, f"{ANSWER} {ANSWER}")]


class Recursive(BaseRetriever):
    """Returns a node that stands for a query engine."""

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=self.object_map["inner"], score=0.5)]


@WAYS
def test_a_node_that_stands_for_an_engine(notes, ask):
    node = IndexNode(text="inner", index_id="inner", obj=engine("What the inner one says."))
    outer = Recursive(object_map={"inner": node})
    app = RetrieverQueryEngine(outer, get_response_synthesizer(llm=Speaking()))
    put(app, "Who?", ask)
    (sample,) = notes.samples
    assert (sample.user_input, sample.response) == ("Who?", ANSWER)
    assert len(sample.retrieved_contexts) == 1
    assert "What the inner one says." in sample.retrieved_contexts[0]


def test_retrievers_and_models_alone_make_no_sample(notes):
    retriever().retrieve("Who?")
    Speaking().complete("Who?")
    list(Speaking().stream_complete("Who?"))
    get_response_synthesizer(llm=Speaking()).synthesize("Who?", retriever().retrieve("Who?"))
    asyncio.run(retriever().aretrieve("Who?"))
    assert notes.told == []
    assert not notes.skipped


class Boom(BaseRetriever):
    def _retrieve(self, query_bundle):
        raise ValueError("the database is down " + "x" * 500)


@WAYS
def test_a_retriever_that_fails(notes, ask):
    app = RetrieverQueryEngine(Boom(), get_response_synthesizer(llm=Speaking()))
    with pytest.raises(ValueError, match="database"):
        put(app, "Who?", ask)
    (sample,) = notes.samples
    assert (sample.user_input, sample.retrieved_contexts, sample.response) == ("Who?", (), None)
    assert sample.metadata["error"].startswith("ValueError: the database is down xxx")
    assert len(sample.metadata["error"]) == len("ValueError: ") + 200


@WAYS
def test_a_model_that_fails_keeps_what_was_retrieved(notes, ask):
    with pytest.raises(ConnectionError):
        put(engine(ConnectionError("rate limit")), "Who?", ask)
    assert notes.told == [("Who?", TEXTS, None)]
    assert notes.samples[0].metadata["error"] == "ConnectionError: rate limit"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit(), asyncio.CancelledError()])
def test_what_was_called_off_is_no_sample(notes, error):
    with pytest.raises(type(error)):
        engine(error).query("Who?")
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


def test_a_query_that_is_cancelled(notes):
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(engine(pause=60).aquery("Who?"), 0.2)

    asyncio.run(main())
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


@WAYS
@pytest.mark.parametrize("trace", [False, True])
def test_what_a_judge_does_is_no_sample(notes, ask, trace):
    """Even where the judge's model is asked in the midst of a query, and itself looks like an app."""

    class Asking(Chatting):
        """A judge that asks an engine."""

        def _answered(self, *args):
            engine().query("Of the judge")
            return super()._answered(*args)

    from ragstone_llama_index import LlamaIndexLLM

    judge = LlamaIndexLLM(Asking(truth), trace=trace)
    metric = next(one for one in metrics(judge) if one.name == "context_relevancy")

    class Guarded(CustomQueryEngine):
        def custom_query(self, query_str):
            result = MetricEvaluator(metric).evaluate(query=query_str, contexts=["It has word0 here."], response="x")
            return str(result.score is None)

    put(Guarded(), "It has word2 here. Which of them say word1?", ask)
    assert [one.user_input for one in notes.samples] == ["It has word2 here. Which of them say word1?"]
    assert notes.samples[0].retrieved_contexts == ()
    assert sum(notes.skipped.values()) == 0
