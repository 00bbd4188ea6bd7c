"""The handler on real LangGraph graphs and agents, with models whose words are scripted."""

import sys
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph")
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import dynamic_prompt
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from ragstone_langchain import MonitorHandler, contexts

from ..support.noting import Noting  # noqa: TID252
from .monitored import (
    ANSWER,
    FIRST,
    FOUND,
    PROMPT,
    QUESTION,
    THIRD,
    WHOLE,
    Searching,
    joined,
    parts,
    sample_of,
    says,
)
from .test_read import evaluated
from .ways import ainvoke, astream, astream_events, invoke, named, sampled, stream

pytestmark = pytest.mark.usefixtures("offline")
DOCUMENTS = [Document(text) for text in FOUND]
ASKED = {"messages": [("user", QUESTION)]}


class State(TypedDict, total=False):
    question: str
    docs: list[Document]
    answer: str


def rag_graph():
    def retrieve(state):
        return {"docs": Searching().invoke(state["question"])}

    def generate(state):
        asked = {"context": joined(state["docs"]), "question": state["question"]}
        return {"answer": (PROMPT | says(ANSWER)).invoke(asked).content}

    return StateGraph(State).add_sequence([retrieve, generate]).add_edge(START, "retrieve").compile()


def streaming(way, mode):
    """The way, with one of LangGraph's modes of streaming."""

    def in_mode(graph, asked, config):
        return way(graph, asked, config, stream_mode=mode)

    in_mode.__name__ = f"{way.__name__} {mode}"
    return in_mode


WAYS = [
    invoke,
    streaming(stream, "updates"),
    ainvoke,
    streaming(astream, "messages"),
    astream_events,
    streaming(stream, "messages"),
    streaming(astream, "updates"),
    streaming(stream, "values"),
]


@pytest.mark.parametrize("way", WAYS, ids=named)
def test_a_graph_in_every_way(way) -> None:
    assert parts(sample_of(rag_graph(), {"question": QUESTION}, way)) == WHOLE


class Hiding(TypedDict):
    answer: str


@pytest.mark.parametrize("command", [False, True], ids=["a node", "a command"])
def test_documents_that_are_passed_on_and_not_in_the_outputs(command) -> None:
    graph = StateGraph(State, output_schema=Hiding)
    update = {"docs": DOCUMENTS}
    graph.add_node("retrieve", lambda state: Command(update=update, goto="answer") if command else update)
    graph.add_node("answer", lambda state: {"answer": ANSWER})
    graph.add_edge(START, "retrieve")
    if not command:
        graph.add_edge("retrieve", "answer")
    assert parts(sample_of(graph.compile(), {"question": QUESTION})) == WHOLE


def called(name, number="1", **args):
    return AIMessage("", tool_calls=[{"name": name, "args": args or {"query": "Emma"}, "id": number}])


@tool(response_format="content_and_artifact")
def search(query: str):
    """Search, and keep the Documents."""
    return "found", DOCUMENTS


@tool(response_format="content_and_artifact")
def search_and_choose(query: str):
    """Search, and keep the Documents that are left."""
    documents = Searching(texts=(THIRD, *FOUND)).invoke(query)
    return "found", documents[1:]


@tool
def search_by_command(query: str) -> Command:
    """Search, and put what was found into the state."""
    return Command(update={"messages": [ToolMessage("found", artifact=DOCUMENTS, tool_call_id="1")]})


def retriever_tool(response_format):
    return create_retriever_tool(Searching(), "search", "Search.", response_format=response_format)


TOOLS = {
    "retriever tool, content": lambda: retriever_tool("content"),
    "retriever tool, artifact": lambda: retriever_tool("content_and_artifact"),
    "artifact alone": lambda: search,
    "artifact chosen from a retriever's": lambda: search_and_choose,
    "artifact by a command": lambda: search_by_command,
}


@pytest.mark.parametrize(("kind", "way"), sampled(TOOLS, WAYS, 2), ids=named)
def test_an_agent_s_tools(kind, way) -> None:
    used = TOOLS[kind]()
    agent = create_agent(says(called(used.name), ANSWER), [used])
    assert parts(sample_of(agent, ASKED, way)) == WHOLE


@tool
def search_text(query: str) -> str:
    """Search, and keep nothing but text."""
    return FIRST


@tool
def web_search(query: str) -> dict[str, Any]:
    """Search the web."""
    return {"query": query, "results": [{"title": "t", "url": "u", "content": text} for text in FOUND]}


@tool
def blocks(query: str) -> list[dict[str, Any]]:
    """Search, as MCP does."""
    return [{"type": "text", "text": text} for text in FOUND]


@tool
def search_results(query: str) -> list[dict[str, Any]]:
    """Search, as Anthropic has it."""
    return [{"type": "search_result", "title": "t", "content": [{"type": "text", "text": text}]} for text in FOUND]


@tool(response_format="content_and_artifact")
def search_in_vain(query: str) -> tuple[str, list[Any]]:
    """Search, and find nothing."""
    return "Nothing.", []


PASSAGES = [
    (web_search, FOUND),
    (blocks, FOUND),
    (search_results, FOUND),
    (search_text, (FIRST,)),
    (search_in_vain, ()),
]


@pytest.mark.parametrize(("used", "found"), PASSAGES, ids=lambda value: getattr(value, "name", ""))
def test_the_passages_of_a_named_tool_are_contexts_each_live_and_offline(used, found) -> None:
    by_name, unnamed = Noting(), Noting()
    named = {"retriever_tools": [used.name]}
    agent = create_agent(says(called(used.name), ANSWER), [used])
    final = agent.invoke(ASKED, {"callbacks": [MonitorHandler(by_name, **named), MonitorHandler(unnamed)]})
    assert parts(by_name.only) == (QUESTION, found, ANSWER)
    assert parts(unnamed.only) == (QUESTION, (), ANSWER)
    assert parts(evaluated(ASKED, final, **named)) == (QUESTION, found, ANSWER)


def test_of_a_named_tool_with_a_retriever_in_it_the_documents_count_and_not_its_text() -> None:
    monitor = Noting()
    agent = create_agent(says(called("search"), ANSWER), [retriever_tool("content")])
    agent.invoke(ASKED, {"callbacks": [MonitorHandler(monitor, retriever_tools=["search"])]})
    assert parts(monitor.only) == WHOLE


def agent(*said, tools=(), **options):
    return create_agent(says(*said), list(tools), checkpointer=InMemorySaver(), **options)


def interrupted_graph():
    graph = StateGraph(State)
    graph.add_node("retrieve", lambda state: {"docs": Searching().invoke(state["question"])})
    graph.add_node("ask", lambda state: {"answer": interrupt("Is that so?")})
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "ask")
    return graph.compile(checkpointer=InMemorySaver())


@tool
def ask(what: str) -> str:
    """Ask the human."""
    return interrupt(what)


LOOKS = called("search").model_copy(update={"content": "Let me look."})
OTHER = create_retriever_tool(Searching(texts=(THIRD,)), "other", "Search elsewhere.")
FIRST_TURN, NOVEL = {"messages": [("user", "Is Persuasion a novel?")]}, ("Is Persuasion a novel?", (THIRD,), "Yes.")
TURNS = {  # of one thread: the app, what it is asked, the samples; what comes before a resumed one is skipped
    "interrupted": (interrupted_graph, [{"question": QUESTION}, Command(resume=ANSWER)], [WHOLE]),
    "found before and after an interrupt": (
        lambda: agent(
            *(called("search"), called("ask", "2", what="Go on?"), called("other", "3"), ANSWER),
            tools=[search, ask, OTHER],
        ),
        [ASKED, Command(resume="Yes.")],
        [(QUESTION, (THIRD, *FOUND), ANSWER)],
    ),
    "stopped before its tools": (
        lambda: agent(LOOKS, ANSWER, tools=[search], interrupt_before=["tools"]),
        [ASKED, None],
        [WHOLE],
    ),
    "a memory": (
        lambda: agent(called("other"), "Yes.", called("search", "2"), ANSWER, tools=[OTHER, search]),
        [FIRST_TURN, ASKED],
        [NOVEL, WHOLE],
    ),
}


@pytest.mark.parametrize(("turns", "way"), sampled(TURNS, [invoke, WAYS[1], WAYS[3], ainvoke], 3), ids=named)
def test_of_the_turns_of_a_thread_each_complete_one_is_a_sample_of_its_own(turns, way) -> None:
    if way in (WAYS[3], ainvoke) and sys.version_info < (3, 11):
        pytest.skip("LangGraph's interrupt() needs Python 3.11 in async code")
    make, inputs, expected = TURNS[turns]
    monitor, app = Noting(), make()
    for asked in inputs:
        way(app, asked, {"callbacks": [MonitorHandler(monitor)], "configurable": {"thread_id": "7"}})
    samples = [(sample.user_input, set(sample.retrieved_contexts), sample.response) for sample in monitor.samples]
    assert samples == [(question, set(contexts), answer) for question, contexts, answer in expected]
    assert (monitor.skipped.total(), monitor.errors) == (len(inputs) - len(expected), [])
    assert set(monitor.skipped) <= {"interrupted"}
    assert monitor.samples[0].metadata["thread_id"] == "7"
    if turns == "a memory":
        assert [turn.content for turn in monitor.samples[1].history] == [NOVEL[0], "Yes."]


class Answer(BaseModel):
    answer: str
    confidence: float = 0.5


@dynamic_prompt
def from_the_store(request):
    """Retrieves in a function, of which no event tells."""
    return joined(contexts(DOCUMENTS))


STRATEGIES = {
    "by a tool": (ToolStrategy, called("Answer", answer=ANSWER)),
    "by the provider": (ProviderStrategy, AIMessage(f'{{"answer": "{ANSWER}"}}')),
}


@pytest.mark.parametrize(("strategy", "way"), sampled(STRATEGIES, [invoke, ainvoke, *WAYS[-2:]], 4), ids=named)
def test_an_agent_s_structured_answer_and_what_its_middleware_found(strategy, way) -> None:
    if named(way)[0] == "a" and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 keeps the context from what is awaited")
    make, said = STRATEGIES[strategy]
    agent = create_agent(says(said), [], response_format=make(Answer), middleware=[from_the_store])
    assert parts(sample_of(agent, ASKED, way)) == WHOLE
    assert parts(evaluated(None, agent.invoke(ASKED))) == (QUESTION, (), ANSWER)


def test_a_resumed_run_has_the_question_and_the_contexts_of_the_one_that_stopped() -> None:
    failing = iter([ConnectionError("the client has gone"), None])

    @entrypoint(checkpointer=InMemorySaver())
    def app(asked: dict[str, str]) -> str:
        if asked["question"] != "Who else?":
            Searching().invoke(asked["question"])
            interrupt("May I?")
            if (error := next(failing)) is not None:
                raise error
        return ANSWER

    monitor = Noting()

    def config() -> dict[str, Any]:
        """Each request makes its own handler."""
        return {"callbacks": [MonitorHandler(monitor)], "configurable": {"thread_id": "7"}}

    app.invoke({"question": QUESTION}, config())
    with pytest.raises(ConnectionError):
        app.invoke(Command(resume=True), config())
    app.invoke(Command(resume=True), config())
    failing = iter([None])
    app.invoke({"question": QUESTION}, config())
    app.invoke({"question": "Who else?"}, config())  # and nobody resumes that one
    failed, resumed, other = map(parts, monitor.samples)
    assert (failed, resumed, other) == ((QUESTION, FOUND, None), WHOLE, ("Who else?", (), ANSWER))
    assert monitor.skipped == {"interrupted": 2}


def test_a_breakpoint_gives_no_second_sample() -> None:
    graph = StateGraph(State)
    graph.add_sequence(
        [
            ("retrieve", lambda state: {"docs": Searching().invoke(state["question"])}),
            ("generate", lambda _: {"answer": ANSWER}),
        ]
    )
    app = graph.add_edge(START, "retrieve").compile(checkpointer=InMemorySaver(), interrupt_before=["generate"])
    monitor = Noting()
    config = {"callbacks": [MonitorHandler(monitor)], "configurable": {"thread_id": "7"}}
    app.invoke({"question": QUESTION}, config)
    app.invoke(None, config)
    assert [parts(sample) for sample in monitor.samples] == [WHOLE]
    assert monitor.skipped == {"no_answer": 1}


def test_a_stream_that_is_left_at_its_interrupt_is_interrupted() -> None:
    monitor = Noting()
    config = {"callbacks": [MonitorHandler(monitor)], "configurable": {"thread_id": "7"}}
    reading = interrupted_graph().stream({"question": QUESTION}, config)
    assert "retrieve" in next(reading)
    assert "__interrupt__" in next(reading)
    reading.close()
    assert monitor.skipped == {"interrupted": 1}
