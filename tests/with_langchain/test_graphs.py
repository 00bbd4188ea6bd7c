"""The states of real LangGraph graphs and agents, with models whose words are scripted."""

import asyncio
import copy
import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph")

import langgraph.types
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from pydantic import BaseModel

from ragstone import ResponseRelevancy, SummarizationScore
from ragstone.testing import FakeEmbedder
from ragstone_langchain.evaluator import RagEvaluator

from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, judge, relevancy

with warnings.catch_warnings():
    # langgraph 1.0.0 imports what it deprecates itself
    warnings.filterwarnings("ignore", message="AgentState")
    from langgraph.prebuilt import ToolNode

pytestmark = [
    pytest.mark.usefixtures("offline"),
    # langchain-core 1.0's run collector copies runs by pydantic's old way
    pytest.mark.filterwarnings("ignore:The `copy` method is deprecated"),
]
DOCUMENTS = [Document(FIRST), Document(SECOND)]


def answers():
    return ResponseRelevancy(llm=judge(), embedder=FakeEmbedder())


# --- graphs with a state of their own --------------------------------------------------------------------------------


class DictState(TypedDict, total=False):
    question: str
    documents: list[Document]
    generation: str


@dataclass
class DataState:
    question: str
    documents: list[Document] = field(default_factory=list)
    generation: str | None = None


class ModelState(BaseModel):
    question: str
    documents: list[Any] = []
    generation: Any = None


def rag_graph(state, answer=ANSWER):
    graph = StateGraph(state)
    graph.add_node("retrieve", lambda _: {"documents": DOCUMENTS})
    graph.add_node("generate", lambda _: {"generation": answer})
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    return graph.compile()


@pytest.mark.parametrize("state", [DictState, DataState, ModelState])
@pytest.mark.parametrize("metric", [relevancy, answers])
def test_a_graphs_final_state_is_scored(state, metric):
    final = rag_graph(state).invoke({"question": QUESTION})
    evaluator = RagEvaluator(metric())
    before = copy.deepcopy(final)
    with_inputs = evaluator(inputs={"question": QUESTION}, outputs=final)
    assert with_inputs["score"] == evaluator(outputs=final)["score"] == evaluator.as_runnable().invoke(final)["score"]
    assert with_inputs["score"] is not None
    assert final == before
    if metric is relevancy:
        assert with_inputs["score"] == VALUE


@pytest.mark.parametrize("state", [DictState(question=QUESTION), DataState(QUESTION), ModelState(question=QUESTION)])
def test_a_state_object_may_be_handed_over_too(state):
    evaluator = RagEvaluator(relevancy())
    assert evaluator(inputs=state, outputs={"answer": ANSWER}, context=DOCUMENTS)["score"] == VALUE
    assert evaluator(outputs=ModelState(question=QUESTION, documents=DOCUMENTS))["score"] == VALUE
    assert evaluator(outputs=DataState(QUESTION, DOCUMENTS))["score"] == VALUE


def test_the_packed_result_of_invoke_v2_is_unpacked():
    if not hasattr(langgraph.types, "GraphOutput"):
        pytest.skip("this langgraph has no version='v2'")
    final = rag_graph(DictState).invoke({"question": QUESTION}, version="v2")
    assert type(final).__name__ == "GraphOutput"
    assert RagEvaluator(relevancy())(outputs=final)["score"] == VALUE


def test_a_message_as_the_generation_is_its_text():
    final = rag_graph(DictState, AIMessage(ANSWER)).invoke({"question": QUESTION})
    assert RagEvaluator(SummarizationScore(llm=judge()))(outputs=final)["score"] is not None


def test_a_node_may_score_its_own_graphs_state():
    evaluator = RagEvaluator(relevancy())

    class Scored(DictState, total=False):
        scored: dict

    graph = StateGraph(Scored)
    graph.add_node("retrieve", lambda _: {"documents": DOCUMENTS})
    graph.add_node("score", lambda state: {"scored": evaluator.as_runnable().invoke(state)})
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "score")
    assert graph.compile().invoke({"question": QUESTION})["scored"]["score"] == VALUE


def test_a_graphs_run_is_scored():
    collected = RunCollectorCallbackHandler()
    rag_graph(DictState).invoke({"question": QUESTION}, {"callbacks": [collected]})
    (run,) = collected.traced_runs
    assert RagEvaluator(relevancy()).as_run_evaluator().evaluate_run(run).score == VALUE


def test_an_interrupted_graph_has_no_answer():
    graph = StateGraph(DictState)
    graph.add_node("retrieve", lambda _: {"documents": DOCUMENTS})
    graph.add_node("generate", lambda _: {"generation": interrupt("Go on?")})
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    state = graph.compile(checkpointer=InMemorySaver()).invoke(
        {"question": QUESTION}, {"configurable": {"thread_id": "1"}}
    )
    result = RagEvaluator(answers())(inputs={"question": QUESTION}, outputs=state)
    assert (result["score"], result["metadata"]["unscored"]) == (None, "missing_input")
    assert result["comment"].startswith("missing_input: response: is not in outputs (dict with 'question', 'documents'")


# --- agents ----------------------------------------------------------------------------------------------------------


class Scripted(GenericFakeChatModel):
    """Says what it is told to, tools or no tools."""

    def bind_tools(self, tools, **kwargs):
        return self


def call(number=1, name="search"):
    return AIMessage("", tool_calls=[{"name": name, "args": {"query": "word1"}, "id": str(number)}])


@tool(response_format="content_and_artifact")
def search(query: str):
    """Search, and keep the Documents."""
    return "found", DOCUMENTS


@tool
def search_text(query: str) -> str:
    """Search, and keep nothing but text."""
    return FIRST


def tool_graph(said, *tools, checkpointer=None):
    """An agent of LangGraph alone: a model's node and a real ToolNode."""
    words = iter(said)

    def after(state):
        return "tools" if state["messages"][-1].tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [next(words)]})
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=checkpointer)


def created_agent(said, *tools, checkpointer=None):
    """The agent of langchain."""
    agents = pytest.importorskip("langchain.agents")
    return agents.create_agent(Scripted(messages=iter(said)), list(tools), checkpointer=checkpointer)


@pytest.mark.parametrize("make", [tool_graph, created_agent])
@pytest.mark.parametrize(
    "asked", [[("user", QUESTION)], [HumanMessage(QUESTION)], [{"role": "user", "content": QUESTION}]]
)
def test_an_agents_run_is_scored_by_its_tools_documents(make, asked):
    final = make([call(), AIMessage(ANSWER)], search).invoke({"messages": asked})
    evaluator = RagEvaluator(relevancy())
    before = copy.deepcopy(final)
    for result in (
        evaluator(inputs={"messages": asked}, outputs=final),
        evaluator(outputs=final),
        evaluator(outputs=final["messages"]),
        asyncio.run(evaluator.acall(outputs=final)),
        evaluator.as_runnable().invoke(final),
    ):
        assert (result["score"], result["comment"][:46]) == (VALUE, "1 of 4 sentences in 1 of 2 contexts are needed")
    assert final == before
    assert RagEvaluator(answers())(outputs=final)["score"] is not None


@pytest.mark.parametrize("make", [tool_graph, created_agent])
def test_an_agents_tool_without_documents_is_named(make):
    final = make([call(name="search_text"), AIMessage(ANSWER)], search_text).invoke({"messages": [("user", QUESTION)]})
    assert RagEvaluator(relevancy(), retriever_tools=["search_text"])(outputs=final)["score"] == 0.5
    unnamed = RagEvaluator(relevancy())(outputs=final)
    assert (unnamed["score"], unnamed["metadata"]["unscored"]) == (None, "missing_input")
    assert "is named in retriever_tools" in unnamed["comment"]


@pytest.mark.parametrize("make", [tool_graph, created_agent])
def test_of_an_agent_with_a_memory_only_the_last_turn_counts(make):
    said = [call(1, "search_text"), AIMessage("It has word9 here."), call(2), AIMessage(ANSWER)]
    agent = make(said, search, search_text, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Which say word9?")]}, config)
    final = agent.invoke({"messages": [("user", QUESTION)]}, config)
    assert len(final["messages"]) == 8
    result = RagEvaluator(relevancy(), retriever_tools=["search_text"])(outputs=final)
    assert (result["score"], result["comment"][:35]) == (VALUE, "1 of 4 sentences in 1 of 2 contexts")


def test_an_agent_that_stops_for_a_tool_has_no_answer():
    agents = pytest.importorskip("langchain.agents")
    agent = agents.create_agent(
        Scripted(messages=iter([call(), AIMessage(ANSWER)])),
        [search],
        interrupt_before=["tools"],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke({"messages": [("user", QUESTION)]}, {"configurable": {"thread_id": "1"}})
    result = RagEvaluator(answers())(outputs=state)
    assert (result["score"], result["metadata"]["unscored"]) == (None, "missing_input")
    assert result["comment"].startswith("missing_input: response: is not in outputs (dict with 'messages'")


@pytest.mark.parametrize("make", [tool_graph, created_agent])
def test_an_agents_run_is_scored_in_langsmiths_form(make):
    collected = RunCollectorCallbackHandler()
    agent = make([call(), AIMessage(ANSWER)], search)
    agent.invoke({"messages": [("user", QUESTION)]}, {"callbacks": [collected]})
    (run,) = collected.traced_runs
    assert RagEvaluator(relevancy()).as_run_evaluator().evaluate_run(run).score == VALUE


def test_a_state_with_messages_and_more_is_read_by_names_first():
    class Both(TypedDict):
        messages: Annotated[list, add_messages]
        question: str
        docs: list

    graph = StateGraph(Both)
    graph.add_node("answer", lambda _: {"messages": [AIMessage(ANSWER)], "docs": [Document(FIRST)]})
    graph.add_edge(START, "answer")
    final = graph.compile().invoke({"messages": [("user", "Hi. Which say word2?")], "question": QUESTION})
    assert RagEvaluator(relevancy())(outputs=final)["score"] == 0.5
