"""The states of public LangGraph apps: what they call question, passages and answer, and what stands beside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest

pytest.importorskip("langgraph.graph")

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from ragstone_langchain import MonitorHandler

from ..support.noting import Noting  # noqa: TID252
from .monitored import FIRST, QUESTION, SECOND, THIRD, Searching, says

pytestmark = pytest.mark.usefixtures("offline")
ANSWER = "The novel Emma was written by Jane Austen, who was born in 1775."
DRAFT = "It may be that the novel Emma was written by Charlotte Brontë."
FOUND = [FIRST, SECOND]
JOINED = f"{FIRST}\n\n{SECOND}"

# question | passages | what a later step chose of them | answer | beside | the field that has no name we know
TABLE = """
question | retrieved_docs documents | | answer | error metadata |
question | context texts | | answer | confidence |
query | context text | | response | |
query | retrieved_docs hits | | response | analysis evaluation iteration |
question | documents texts | | answer | rewritten_query is_sufficient |
question | search_results texts | | answer | |
messages | search_results contents | | answer | refined_query |
user_question | search_results documents | | final_answer | current_query similar_questions error_message |
question | retrieved_chunks texts | | answer | source tool evaluation executed_agent |
question | retrieved_chunks objects | | answer | citations gate_status |
messages query | retrieved_chunks contents | | final_answer | reflection_result refined_query |
query | retrieved_chunks hits | | answer | source_docs escalation_reason |
question | retrieved_chunks hits | | answer | rewritten_query retrieval_mode |
query | retrieved_chunks documents | | answer | search_query sources all_attempts |
question | retrieved_contexts contents | | answer | query_type question_refined citations |
messages | retrieved_context text | | response | tool_results |
query | retrieved_context texts | | final_response | draft_response approval_status trace |
messages | chunks contents | | answer | prompt cost |
question | chunks hits | | final_answer | answer sources reflection_result final_sources |
question | documents contents | | generation | transformed_query citations execution_trace |
messages | documents texts | | response | |
question query | documents documents | | answer | previous_answer correction_feedback trace |
question | documents texts | | answer | sub_questions sub_answers |
question original_question | documents texts | | generation | answers |
messages | retrieved_documents documents | | messages | document_grades query_rewrites |
query | retrieved_documents texts | | llm_response | |
messages | retrieved_docs documents | | messages | web_search_results final_sources |
messages | relevant_docs documents | | messages | last_recorded_question |
messages | context text | | messages | search_query |
original_query | retrieved_docs hits | | answer | rewritten_queries hyde_document |
query | search_results contents | | answer | winning_source sources |
user_query | search_results documents | | final_response | processing_status error_message |
question | evidence documents | | answer | rewritten_queries citations |
question | evidence contents | | answer | guardrail judge output_guard |
query | retrieved_info text | | final_response | category |
question | retrieved_docs documents | final_documents documents | answer | |
question | documents documents | final_docs documents | answer | strategy critique |
question | docs documents | relevant_docs documents | answer | issup use_reason |
query | documents hits | relevant_documents hits | answer | retrieval_strategy |
query | retrieved_docs hits | graded_docs hits | generation | rewritten_query source |
query | retrieved_docs hits | reranked_docs hits | final_answer | |
query | retrieved_chunks contents | reranked_chunks contents | generated_answer | query_intent citations |
question | documents texts | reranked_docs texts | generation | |
question | retrieved_docs documents | filtered_docs documents | answer | year |
query original_query | retrieved_documents documents | filtered_documents documents | generated_answer | node_trace |
question | chunks hits | relevant_chunks hits | answer | citation_tags issues |
query | retrieved_docs texts | final_context texts | answer | retrieval_grade |
query | retrieved_docs hits | graded_docs hits merged_context text | answer | route |
question | retrieved_docs hits | ranked_docs hits formatted_context text | answer | |
original_query | vector_results hits | reranked_results hits final_context text | generated_answer | |
messages query | retrieved_docs contents | reranked_docs contents context text | final_response | |
query | documents documents | | draft_answer | critic_verdict current_search_query |
query | documents texts | | validated_text | is_safe | answer
question | rag_result text | | answer | last_tool | contexts
question | knowledge_pairs pairs | | answer | | contexts
question | vector_results numbers | | answer | | contexts
patient_input | documents texts | | answer | | question
"""


class Row(NamedTuple):
    asked: list[str]
    found: list[str]
    chosen: list[str]
    answered: str
    beside: list[str]
    missing: str

    def __str__(self) -> str:
        return " ".join([*self.asked, self.found[0], *self.chosen[::2], self.answered])


def row(line: str) -> Row:
    asked, found, chosen, answered, beside, missing = (cell.strip() for cell in line.split("|"))
    return Row(asked.split(), found.split(), chosen.split(), answered, beside.split(), missing)


ROWS = [row(line) for line in TABLE.strip().splitlines()]


@dataclass
class Passage:
    """As apps make classes of their own."""

    id: int
    text: str


FORMS: dict[str, Callable[[list[str]], Any]] = {
    "documents": lambda texts: [Document(text) for text in texts],
    "texts": list,
    "text": "\n\n".join,
    "hits": lambda texts: [{"text": text, "source": "emma.pdf", "score": 0.9} for text in texts],
    "contents": lambda texts: [{"title": "Emma", "content": text, "url": "u"} for text in texts],
    "objects": lambda texts: [Passage(i, text) for i, text in enumerate(texts)],
    "pairs": lambda texts: [("wiki", text) for text in texts],
    "numbers": lambda texts: [*range(len(texts))],
}
BESIDE: dict[str, Any] = {
    "answer": DRAFT,
    "draft_response": DRAFT,
    "previous_answer": DRAFT,
    "all_attempts": [DRAFT, ANSWER],
    "answers": ["Jane Austen."],
    "sub_answers": ["Jane Austen."],
    "sources": ["emma.pdf"],
    "source_docs": ["emma.pdf"],
    "final_sources": ["emma.pdf"],
    "citations": [{"source": "emma.pdf", "quote": "a novel"}],
    "similar_questions": [{"question": "Who wrote Persuasion?", "answer": "Jane Austen."}],
    "web_search_results": [],
    "hyde_document": "A passage that a model made up.",
    "guardrail": {"result": "pass"},
    "judge": {"answer": "sufficient"},
    "output_guard": {"output": "ok"},
    "evaluation": {"relevance": 0.9},
    "critic_verdict": {"reason": "supported"},
}


def app(row: Row, search: bool) -> Any:
    """A graph with this state, whose model reads the passages that were chosen."""
    keys = dict.fromkeys([*row.asked, *row.found[:1], *row.chosen[::2], row.answered, *row.beside], Any)
    if "messages" in keys:
        keys["messages"] = Annotated[list[Any], add_messages]
    passages = [FIRST, THIRD, SECOND] if row.chosen else FOUND

    def retrieve(state):
        if search:
            Searching(texts=tuple(passages)).invoke("Emma")
        return {name: BESIDE.get(name, "x") for name in row.beside} | {row.found[0]: FORMS[row.found[1]](passages)}

    def choose(state):
        return {name: FORMS[form](FOUND) for name, form in zip(row.chosen[::2], row.chosen[1::2], strict=True)}

    def answer(state):
        said = says(ANSWER).invoke(f"{JOINED}\n\n{QUESTION}")
        return {"messages": [said]} if row.answered == "messages" else {row.answered: said.text}

    graph = StateGraph(TypedDict("State", keys, total=False))
    return graph.add_sequence([retrieve, choose, answer]).add_edge(START, "retrieve").compile()


def run(row: Row, search: bool) -> Noting:
    monitor = Noting()
    asked = {name: [HumanMessage(QUESTION)] if name == "messages" else QUESTION for name in row.asked}
    app(row, search).invoke(asked, {"callbacks": [MonitorHandler(monitor)]})
    return monitor


COMPLETE = [row for row in ROWS if not row.missing]
CASES = [*((row, False) for row in COMPLETE), *((row, True) for row in COMPLETE if row.chosen)]


@pytest.mark.parametrize(("row", "search"), CASES, ids=str)
def test_a_public_state(row: Row, search: bool) -> None:
    """Read alike whether a function searches or a retriever, from which a later step chose."""
    sample = run(row, search).only
    assert (sample.user_input, sample.response) == (QUESTION, ANSWER)
    assert [*sample.retrieved_contexts] in (FOUND, [JOINED])


@pytest.mark.parametrize("row", [row for row in ROWS if row.missing], ids=str)
def test_a_missing_field_is_reported_with_the_names_that_were_there(row: Row) -> None:
    monitor = run(row, search=False)
    (names,) = monitor.names or monitor.unread
    lacking = {"answer": row.answered, "contexts": row.found[0], "question": row.asked[0]}[row.missing]
    assert lacking in names
    if row.missing == "answer":
        assert monitor.skipped == {"no_answer": 1}
    else:
        field = {"contexts": "retrieved_contexts", "question": "user_input"}[row.missing]
        assert field not in monitor.read_from[0]
        assert not getattr(monitor.only, field)
