"""Each app of a table, run live by the handler and read from LangSmith's run of it: question, contexts, answer alike."""

import json
from typing import Any, ClassVar, TypedDict

import pytest

pytest.importorskip("langgraph.graph")
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langgraph.graph import START, MessagesState, StateGraph

from ragstone.testing import FakeLLM
from ragstone_langchain import MonitorHandler, RagEvaluator

from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, FIRST, FOUND, QUESTION, SECOND, THIRD, WHOLE, Around, Searching, parts, rag, says
from .samples import NeedsNothing
from .test_handler import graded, passing
from .test_monitor_graphs import ASKED, PASSAGES, TOOLS, called, rag_graph

pytestmark = pytest.mark.usefixtures("offline")
DOCUMENTS = [Document(text) for text in FOUND]


class Tells(NeedsNothing):
    """Says what it was given."""

    name: ClassVar[str] = "tells"

    def _flow(self, sample):
        yield from ()
        return self._score(1.0, json.dumps(parts(sample)))


class Summed(MessagesState):
    summary: str


class Asked(TypedDict, total=False):
    question: str
    documents: list[Any]
    answer: str


def graph(state: Any, node: Any) -> Any:
    return StateGraph(state).add_sequence([("node", node)]).add_edge(START, "node").compile()


def summed(asked: Any) -> Any:
    return {"messages": [AIMessage(ANSWER)], "summary": "About novels."}


@tool(return_direct=True)
def direct(query: str) -> str:
    """Answer."""
    return ANSWER


def agent(used: Any) -> Any:
    return create_agent(says(called(used.name), ANSWER), [used])


def last_two(documents: list[Document]) -> list[Document]:
    return documents[1:]


@tool
def cutting(query: str) -> str:
    """Search."""
    return "\n".join(each.page_content for each in last_two(Searching(texts=(THIRD, *FOUND)).invoke(query)))


def stating(asked: Any) -> dict[str, Any]:
    found = Searching(texts=(THIRD, *FOUND)).invoke(QUESTION)
    prompt = "\n".join(each.page_content for each in last_two(found))
    return {"documents": found, "answer": says(ANSWER).invoke(prompt).content}


def searching(asked: Any) -> dict[str, str]:
    Searching().invoke(QUESTION)
    return {"answer": ANSWER}


def retried() -> Any:
    """A search that ends well in a call that fails, and the call after it."""
    found = iter([(THIRD,), FOUND])

    def search(asked: str) -> str:
        Searching(texts=next(found)).invoke(asked)
        return asked

    errors = iter([OSError("down"), None])

    def answer(asked: str) -> str:
        if (error := next(errors)) is not None:
            raise error
        return ANSWER

    return RunnablePassthrough() | (RunnableLambda(search) | answer).with_retry(wait_exponential_jitter=False)


TWO_SEARCHES = Searching(), Searching(texts=(SECOND, THIRD))


def searching_twice(question: str) -> list[Document]:
    """One search after the other: of two at once, threads decide which is the first."""
    for search in TWO_SEARCHES:
        search.invoke(question)
    return []


# An app, the options of reading, what it is asked, and what is read of it.
APPS: dict[str, tuple[Any, ...]] = {
    "LCEL": (rag, {}, QUESTION, WHOLE),
    "steps pass Documents on": (lambda: rag(search=passing(*FOUND)), {}, QUESTION, WHOLE),
    "an ensemble": (lambda: rag(search=Around(inner=[Searching(texts=(*FOUND, THIRD))], keep=2)), {}, QUESTION, WHOLE),
    "two searches": (lambda: rag(search=RunnableLambda(searching_twice)), {}, QUESTION, (QUESTION, (*FOUND, THIRD), ANSWER)),
    "cut before the prompt": (lambda: rag(search=Searching(texts=(THIRD, *FOUND)) | RunnableLambda(last_two)), {}, QUESTION, WHOLE),
    "cut before the prompt, and the state says all": (
        lambda: graph(Asked, stating), {}, {"question": QUESTION}, (QUESTION, (THIRD, *FOUND), ANSWER),
    ),
    "cut by a tool": (lambda: agent(cutting), {}, ASKED, WHOLE),
    "documents in the outputs": (graded, {}, {"question": QUESTION}, WHOLE),
    "a call that failed after its search": (retried, {}, QUESTION, WHOLE),
    "a graph": (rag_graph, {}, {"question": QUESTION}, WHOLE),
    "a summary beside messages": (lambda: graph(Summed, summed), {}, ASKED, (QUESTION, (), ANSWER)),
    "texts that stood in the inputs, beside a search": (
        lambda: graph(Asked, searching), {}, {"question": QUESTION, "documents": ["a.pdf"]}, WHOLE,
    ),
    "texts that stood in the inputs, without any": (
        lambda: graph(Asked, lambda _: {"answer": ANSWER}), {}, {"question": QUESTION, "documents": [*FOUND]}, WHOLE,
    ),
    "a tool that returns directly": (lambda: agent(direct), {}, ASKED, (QUESTION, (), ANSWER)),
    "a named tool, and a bare answer": (
        lambda: RunnableLambda(lambda _: PASSAGES[3][0].invoke({"query": "x"}) and ANSWER),
        {"retriever_tools": [PASSAGES[3][0].name]}, QUESTION, (QUESTION, (FIRST,), ANSWER),
    ),
    **{f"an agent, {kind}": (lambda make=make: agent(make()), {}, ASKED, WHOLE) for kind, make in TOOLS.items()},
    **{
        f"an agent, named {used.name}": (lambda used=used: agent(used), {"retriever_tools": [used.name]}, ASKED, (QUESTION, found, ANSWER))
        for used, found in PASSAGES
    },
}  # fmt: skip


@pytest.mark.parametrize("name", APPS)
def test_every_shape_is_read_alike_live_and_from_langsmith_s_run(name: str) -> None:
    make, options, asked, expected = APPS[name]
    monitor, evaluator = Noting(), RagEvaluator(Tells(llm=FakeLLM("")), **options)
    traced = RunCollectorCallbackHandler()
    make().invoke(asked, {"callbacks": [MonitorHandler(monitor, **options), traced]})
    assert parts(monitor.only) == expected
    told = evaluator.as_run_evaluator().evaluate_run(traced.traced_runs[-1])
    assert json.loads(told.comment) == json.loads(json.dumps(expected))
