"""Engines within engines and retrievers, rerankers and syntheses by hand, streams that workflows return."""

import asyncio
import json
from contextvars import copy_context

import pytest
from llama_index.core import (
    ComposableGraph,
    Document,
    DocumentSummaryIndex,
    MockEmbedding,
    Settings,
    SQLDatabase,
    SummaryIndex,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    NLSQLTableQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    SQLJoinQueryEngine,
)
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from sqlalchemy import create_engine, text
from sqlalchemy.pool import StaticPool

from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator, instrument, uninstrument

from .models import truth
from .monitored import ANSWER, TEXTS, Calling, LLMMetadata, Speaking, engine, kept_by_handlers, memory, retriever
from .test_monitor_runs import run, tool

DONE = ("Who?", TEXTS, ANSWER)
MADE_UP = "Mark Twain wrote Emma."


class Found(BaseRetriever):
    """Finds one node."""

    def __init__(self, node):
        self.node = node
        super().__init__()

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=self.node, score=0.9)]


def recursive():
    found = Found(IndexNode(text="about Emma", index_id="emma"))
    inner = RecursiveRetriever("root", {"root": found}, query_engine_dict={"emma": engine(MADE_UP)})
    return RetrieverQueryEngine.from_args(inner, llm=Speaking())


def by_object():
    return RetrieverQueryEngine.from_args(Found(IndexNode(text="", index_id="x", obj=engine(MADE_UP))), llm=Speaking())


def graph():
    Settings.llm = Speaking(lambda prompt: ANSWER if MADE_UP in prompt else MADE_UP)
    inner = [SummaryIndex.from_documents([Document(text=text)]) for text in TEXTS]
    return ComposableGraph.from_indices(SummaryIndex, inner, index_summaries=["a", "b"]).as_query_engine()


@pytest.mark.parametrize("make", [recursive, by_object, graph])
def test_what_an_inner_engine_answered_is_no_source_and_its_own_sources_are(notes, make):
    app = make()
    assert str(app.query("Who?")) == ANSWER
    assert notes.told == [DONE]


def test_a_join_of_rows_and_passages_has_both(notes):
    database = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    with database.begin() as connection:
        connection.execute(text("CREATE TABLE novels (title TEXT, year INT)"))
        connection.execute(text("INSERT INTO novels VALUES ('Emma', 1815)"))
    model = Speaking(lambda prompt: "SELECT title, year FROM novels" if "SQLQuery" in prompt else "It is of 1815.")
    Settings.llm, Settings.embed_model = model, None
    rows = NLSQLTableQueryEngine(SQLDatabase(database), tables=["novels"], llm=model)
    choice = LLMSingleSelector.from_defaults(llm=Speaking(json.dumps([{"choice": 1, "reason": "so"}])))
    app = SQLJoinQueryEngine(tool(rows, "sql"), tool(engine(), "books"), selector=choice, llm=Speaking(), verbose=False)
    assert str(app.query("Who?")) == ANSWER
    row, *passages = notes.samples[0].retrieved_contexts
    assert "1815" in row
    assert tuple(passages) == TEXTS


class Second(BaseNodePostprocessor):
    """Leaves the second node, and says so as rerankers do."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        dispatcher = get_dispatcher(__name__)
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=1, model_name="second"))
        dispatcher.event(ReRankEndEvent(nodes=nodes[1:2]))
        return nodes[1:2]


class ByHand(CustomQueryEngine):
    def custom_query(self, query_str):
        retriever(["Not reranked."]).retrieve(query_str)
        nodes = Second().postprocess_nodes(retriever().retrieve(query_str), query_str=query_str)
        return str(Speaking().complete(nodes[0].text))


def test_what_a_reranker_by_hand_chose_counts(notes):
    ByHand().query("Who?")
    assert [set(one.retrieved_contexts) for one in notes.samples] == [{TEXTS[1], "Not reranked."}]


@pytest.mark.parametrize("mode", ["compact", "tree_summarize", "simple_summarize"])
def test_a_synthesis_of_texts_is_a_sample(notes, mode):
    app = get_response_synthesizer(response_mode=mode, llm=Speaking())
    app.get_response("Who?", list(TEXTS))
    asyncio.run(app.aget_response("Who?", list(TEXTS)))
    assert (notes.told, notes.skipped) == ([DONE] * 2, {})


def test_an_index_that_asks_while_it_is_built_is_no_traffic(notes):
    embed_model = MockEmbedding(embed_dim=2)
    DocumentSummaryIndex.from_documents([Document(text=TEXTS[0])], llm=Speaking(), embed_model=embed_model)
    assert (notes.told, notes.skipped) == ([], {"indexing": 1})


def test_an_engine_that_a_model_chose_as_its_tool_is_a_sample_and_the_model_is_not_counted(notes):
    model = Calling(("books", {"input": "Who?"}))
    model.predict_and_call([tool(engine(), "books")], user_msg="Ask the books: who?")
    assert (notes.told, notes.skipped) == ([DONE], {})


class Pictured(Speaking):
    @property
    def metadata(self):
        return LLMMetadata(model_name="pictured", is_chat_model=True)


def test_the_history_of_a_chat_whose_model_sees_a_prompt_around_the_question(notes):
    newer = pytest.importorskip("llama_index.core.chat_engine.multi_modal_context")
    app = newer.MultiModalContextChatEngine(
        retriever=retriever(), multi_modal_llm=Pictured(), memory=memory(), system_prompt="Be brief."
    )
    for question in ("Who?", "And when?"):
        app.chat(question)
    assert [[turn.content for turn in one.history] for one in notes.samples] == [[], ["Who?", ANSWER]]


# -------------------------------------------------------------------------------- streams that workflows return


class Done(StopEvent):
    answer: object = None


class Streaming(Workflow):
    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=await ev.gives())


class OwnStop(Workflow):
    @step
    async def answer(self, ev: StartEvent) -> Done:
        return Done(answer=await ev.gives())


async def words():
    for word in ANSWER.split():
        yield f"{word} "


async def generator():
    return words()


async def numbers():
    return (i async for i in _numbers())


async def _numbers():
    for i in range(3):
        yield i


async def completion():
    return await Speaking().astream_complete("x")


async def in_a_mapping():
    return {"response": words(), "pages": 3}


async def read(stream):
    return "".join([getattr(piece, "delta", piece) async for piece in stream]).strip()


@pytest.mark.parametrize(
    ("flow", "gives", "stream_of"),
    [
        (Streaming, generator, lambda result: result),
        (Streaming, completion, lambda result: result),
        (Streaming, in_a_mapping, lambda result: result["response"]),
        (OwnStop, generator, lambda result: result.answer),
    ],
)
async def test_a_stream_that_a_workflow_returns_is_read_as_the_app_reads_it(notes, flow, gives, stream_of):
    pytest.importorskip("workflows.runtime", reason="older workflows hand a stream out before it can be listened to")
    result = await flow().run(query="Who?", gives=gives)
    assert notes.told == []
    assert await read(stream_of(result)) == ANSWER
    assert [one.response.strip() for one in notes.samples] == [ANSWER]


async def test_a_stream_of_no_text_is_no_answer_and_an_unread_one_is_abandoned(notes):
    pytest.importorskip("workflows.runtime", reason="older workflows hand a stream out before it can be listened to")
    assert [piece async for piece in await Streaming().run(query="Who?", gives=numbers)] == [0, 1, 2]
    stream = await Streaming().run(query="Who?", gives=generator)
    await anext(stream)
    await stream.aclose()
    assert (notes.told, notes.skipped) == ([], {"no_answer": 1, "abandoned": 1})


# -------------------------------------------------------------------------------- the monitor goes


def test_a_query_under_way_is_scored_after_uninstrument(notes):
    class Leaving(CustomQueryEngine):
        def custom_query(self, query_str):
            uninstrument(notes)
            engine().query("Within?")
            return Response(ANSWER)

    Leaving().query("Who?")
    assert notes.told == [DONE]
    engine().query("Not any more?")
    assert notes.told == [DONE]
    assert kept_by_handlers() == 0
    instrument(notes)
    engine().query("Who?")
    assert notes.told == [DONE] * 2


def test_a_query_inside_of_a_run_that_has_ended_is_a_run_of_its_own(notes):
    class Leaving(CustomQueryEngine):
        def custom_query(self, query_str):
            left.append(copy_context())
            return ANSWER

    left = []
    Leaving().query("Who?")
    left[0].run(engine().query, "Later?")
    assert notes.told == [("Who?", (), ANSWER), ("Later?", TEXTS, ANSWER)]
    assert notes.samples[1].metadata["name"] == "RetrieverQueryEngine.query"


def test_a_streamed_chat_is_scored_after_uninstrument(notes):
    app = ContextChatEngine.from_defaults(retriever(), llm=Speaking(pause=0.01), memory=memory())
    response = app.stream_chat("Who?")
    uninstrument(notes)
    assert "".join(response.response_gen) == ANSWER
    notes.wait(1)
    assert notes.told == [DONE]


# -------------------------------------------------------------------------------- an evaluator that decides


def test_a_retry_takes_half_as_passing_and_asks_once():
    judge = FakeLLM(truth)
    evaluator = MetricEvaluator("context_relevancy", judge)
    texts = ("It has word0 here. It has word1 here.",)
    app = RetryQueryEngine(engine(texts=texts), evaluator)
    app.query("Which of them say word1?")
    assert len(judge.requests) == 1
    assert evaluator.evaluate(query="Which say word1?", contexts=texts).passing is None


def test_what_a_workflow_answers_is_not_taken_for_the_app_below_it(notes):
    class Flow(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            engine().query("Within?")
            return StopEvent(result={"told": ANSWER})

    run(Flow(), query="Who?")
    assert (notes.told, notes.skipped, notes.names) == ([], {"no_answer": 1}, [("told",)])
