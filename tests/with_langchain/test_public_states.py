"""States of public LangGraph apps: the names and forms under which they keep question, contexts and answer.

None of them searches by a LangChain retriever, so nothing but the state says what was found.
"""

from dataclasses import dataclass, field
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph

from ragstone_langchain import MonitorHandler

from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, FOUND, QUESTION, THIRD, parts

DOCUMENTS = [Document(text, metadata={"source": "a.pdf"}) for text in FOUND]
HITS = [{"content": text, "source": "a.pdf", "score": 0.5} for text in FOUND]
RECORDS = [{"text": text, "metadata": {"page": 1}, "distance": 0.5} for text in FOUND]
JOINED = "\n\n".join(FOUND)
TALK = [HumanMessage(QUESTION), AIMessage(ANSWER)]


@dataclass
class Passage:
    text: str
    id: int = 1
    tags: list[str] = field(default_factory=list)


# Where the question stands, where the contexts and in which form, where the answer, and what stands beside.
STATES: list[tuple[str, str, Any, str, dict[str, Any]]] = [
    ("question", "retrieved_docs", [*FOUND], "final_answer", {"optimized_queries": ["Emma author"]}),
    ("question", "chunks", HITS, "generation", {"eval_scores": {"f": 1.0}, "f": 1, "answer": ANSWER, "model": "gpt"}),
    ("query", "raw_docs", DOCUMENTS, "answer", {"route": "rag", "file_name": "a.pdf", "messages": TALK}),
    ("query", "context", HITS, "answer", {"citations": [{"text": THIRD}]}),
    ("question", "documents", DOCUMENTS, "generation", {"messages": TALK}),
    ("question", "context", DOCUMENTS, "answer", {}),
    ("question", "docs", HITS, "answer", {"tenant_id": "t", "tool_results": [{"rows": 3}]}),
    ("question", "retrieved", [Passage(text) for text in FOUND], "answer", {"rounds": 2, "sufficient": True}),
    ("query", "context", JOINED, "result", {"messages": TALK, "tool": "search"}),
    ("query", "documents", DOCUMENTS, "answer", {}),
    ("query", "context", DOCUMENTS, "response", {}),
    ("query", "context", JOINED, "answer", {"hits": 2, "documents": [*FOUND], "ids": [1, 2], "sources": ["a.pdf"], "prompt": f"Answer from {JOINED}: {QUESTION}"}),
    ("query", "contexts", HITS, "answer", {"route": "rag", "reflection": "It is complete.", "is_acceptable": True}),
    ("question", "documents", RECORDS, "answer", {"query": "Emma author", "relevant": True, "rewrites": 1}),
    ("question", "retrieved_docs", [*HITS, {"content": THIRD}], "answer", {"reranked_docs": HITS, "sources": ["a.pdf"], "needs_rewrite": False}),
]  # fmt: skip
# What cannot be told is said, with the names that were there, and the one that can be meant.
UNTOLD: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...], dict[str, str]]] = [
    (
        {"question": QUESTION},
        {"resultats_livres": JOINED, "reponse_finale": ANSWER, "plan_recherche": "Emma"},
        ("plan_recherche", "question", "reponse_finale", "resultats_livres"),
        {},
    ),
    (
        {"query": QUESTION},
        {"vector_retrieval": JOINED, "final_report": ANSWER, "plan": "look", "synthesis": "s", "critique": "c"},
        ("vector_retrieval", "plan", "synthesis", "critique"),
        {"retrieved_contexts": "vector_retrieval"},
    ),
    ({"question": QUESTION}, {"answer": ANSWER, "found_in_books": DOCUMENTS}, ("found_in_books",), {"retrieved_contexts": "found_in_books"}),
]  # fmt: skip


def run(asked: dict[str, Any], answered: dict[str, Any]) -> Noting:
    monitor = Noting()
    state = TypedDict("State", dict.fromkeys((*asked, *answered), Any), total=False)
    graph = StateGraph(state).add_sequence([("rag", lambda _: answered)]).add_edge(START, "rag").compile()
    graph.invoke(asked, {"callbacks": [MonitorHandler(monitor)]})
    return monitor


@pytest.mark.parametrize(("question", "contexts", "found", "answer", "beside"), STATES, ids=range(len(STATES)))
def test_a_public_state_is_read_as_a_person_would(question, contexts, found, answer, beside) -> None:
    monitor = run({question: QUESTION}, {contexts: found, answer: ANSWER, **beside})
    texts = {JOINED} if found == JOINED and "documents" not in beside else {*FOUND}
    asked, read, said = parts(monitor.only)
    assert (asked, {*read}, said) == (QUESTION, texts, ANSWER)
    assert set(monitor.read_from[0]) == {"user_input", "retrieved_contexts", "response"}


@pytest.mark.parametrize(("asked", "answered", "names", "likely"), UNTOLD, ids=range(len(UNTOLD)))
def test_what_a_public_state_does_not_tell_is_said_with_its_names(asked, answered, names, likely) -> None:
    monitor = run(asked, answered)
    assert (*monitor.names, *monitor.unread) == (names,)
    assert monitor.likely == ([likely] if likely else [])
