"""A recorded run read as a sample: no handler, no app."""

import asyncio
from dataclasses import dataclass

import pytest
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StopEvent
from pydantic import BaseModel

from ragstone.run import Run, Skipped
from ragstone_llama_index import Reading, sample_of

from .monitored import ANSWER, TEXTS


class Model(BaseModel):
    answer: str | None = None
    told: str = "so"


@dataclass
class Data:
    reply: object


class Done(StopEvent):
    final_answer: str | None = None
    pages: int = 3


def nodes(*texts):
    return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in texts]


def flow(output=ANSWER, inputs=None, *inside, error=None, kind="workflow"):
    return Run("1", kind, "Flow.run", inputs or {"query": "Who?"}, output, error, inside=list(inside))


def retrieval(*texts):
    return Run("2", "retrieval", output=tuple(nodes(*texts)))


ANSWERS = {
    "a text": ANSWER,
    "a usual name": {"answer": ANSWER, "told": "No."},
    "a model": Model(answer=ANSWER),
    "a dataclass": Data(ANSWER),
    "in the only inner mapping": {"data": {"answer": ANSWER}, "pages": {"n": 3}},
    "a model under a usual name": {"result": Model(answer=ANSWER)},
    "a stop event of its own": Done(final_answer=ANSWER),
    "a message": ChatMessage(ANSWER, role="assistant"),
    "a completion under a usual name": {"output": CompletionResponse(text=ANSWER)},
    "the last message with text": {"messages": [{"role": "assistant", "content": ANSWER}, ChatMessage("", role="assistant")]},
    "messages alone": [ChatMessage(ANSWER, role="assistant"), ChatMessage("Thanks.", role="user")],
    "a response under a usual name": {"response": Response(ANSWER, nodes(*TEXTS))},
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer(name):
    assert sample_of(flow(ANSWERS[name])).response == ANSWER


NO_ANSWERS = {
    "another name": ({"pages": 3, "told": ANSWER, "n": 1}, ("pages", "n", "told")),
    "a usual name with None": ({"answer": None, "told": ANSWER}, ("answer", "told")),
    "a usual name with a number": ({"answer": 7}, ("answer",)),
    "two inner mappings": ({"a": {"answer": "One."}, "b": {"answer": "Two."}}, ("a", "b")),
    "a model's other text": (Model(), ("answer", "told")),
    "a stop event's other fields": (Done(), ("final_answer", "pages")),
    "a tuple": ((ANSWER, nodes(*TEXTS)), ("tuple",)),
    "nothing": (None, ("NoneType",)),
    "a response without a text": (Response(None), ("response", "source_nodes", "metadata")),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_no_answer_is_a_reason_with_the_names_that_were_there(name):
    output, names = NO_ANSWERS[name]
    assert sample_of(flow(output)) == Skipped("no_answer", names)


def test_what_failed_has_no_answer_and_what_was_called_off_is_none():
    failed = sample_of(flow(ANSWER, None, retrieval(*TEXTS), error=ValueError("broken")))
    assert (failed.response, failed.retrieved_contexts, failed.metadata) == (
        None,
        TEXTS,
        {"error": "ValueError: broken"},
    )
    assert sample_of(flow(error=asyncio.CancelledError())) == Skipped("cancelled")


@pytest.mark.parametrize(
    ("inputs", "question"),
    [
        ({"query_str": "Who?"}, "Who?"),
        ({"question": None, "input": "https://example.org/a what is it?"}, "https://example.org/a what is it?"),
        ({"topic": "ASP.NET"}, "ASP.NET"),
        ({"data": {"question": "Who?"}, "k": 3}, "Who?"),
        ({"a": {"question": "Who?"}, "b": {"question": "When?"}}, None),
        ({"ticket": "Who?"}, None),
        ({"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "So."}]}, "Who?"),
    ],
)
def test_a_question(inputs, question):
    read = sample_of(flow(inputs=inputs))
    assert read == Skipped("no_question") if question is None else read.user_input == question


def test_contexts_named_then_stated_then_retrieved():
    retrieved = retrieval("Retrieved.")
    assert sample_of(flow({"answer": "x"}, None, retrieved)).retrieved_contexts == ("Retrieved.",)
    for stated in ({"contexts": ["Stated."]}, {"sources": nodes("Stated.")}, {"source_nodes": nodes("Stated.")}):
        assert sample_of(flow({"answer": "x", **stated}, None, retrieved)).retrieved_contexts == ("Stated.",)
    for other in ({"sources": ["a citation"]}, {"examples": nodes("Other.")}):
        assert sample_of(flow({"answer": "x", **other}, None, retrieved)).retrieved_contexts == ("Retrieved.",)
    named = Run("3", "named", output=["Named."])
    stated = {"answer": "x", "contexts": ["Stated."]}
    assert sample_of(flow(stated, None, retrieved, named)).retrieved_contexts == ("Named.",)


def test_what_a_reranker_chose_stands_for_what_it_was_given_and_for_nothing_else():
    first, second, later = retrieval("Always."), retrieval(*TEXTS), retrieval("Later.")
    rerank = Run("4", "rerank", inputs=second.output, output=second.output[1:])
    read = sample_of(flow({"answer": "x"}, None, first, second, rerank, later))
    assert read.retrieved_contexts == ("Always.", TEXTS[1], "Later.")


def test_an_inner_answer_is_no_source_but_what_it_rests_on_is():
    inner = Run("5", "query", inputs={"q": "Who?"}, output=Response("Made up.", nodes(*TEXTS)))
    for text in ("Made up.", "Query: Who?\nResponse: Made up."):
        outer = Run("6", "retrieval", output=tuple(nodes(text, "Real.")), inside=[inner])
        read = sample_of(flow({"answer": "x"}, None, outer))
        assert read.retrieved_contexts == (*TEXTS, "Real.")


def test_an_answer_that_no_tree_explains_is_known_by_its_form_unless_it_has_a_source():
    composed = TextNode(text="Query: Who?\nResponse: Made up.")
    read = TextNode(text=composed.text, metadata={"file": "faq.txt"})
    for node, contexts in ((composed, ()), (read, (composed.text,))):
        response = Response(ANSWER, [NodeWithScore(node=node, score=0.5)])
        assert sample_of(flow(response, kind="query")).retrieved_contexts == contexts


def test_empty_response_is_an_empty_answer_whatever_the_sources():
    read = sample_of(flow(Response("Empty Response", nodes(*TEXTS)), kind="query"))
    assert (read.response, read.retrieved_contexts) == ("", TEXTS)


def test_fields_by_dotted_names():
    reading = Reading(fields={"response": "data.final_text", "user_input": "ticket", "reference": "none.such"})
    run = flow({"data": {"final_text": ANSWER}, "answer": "No."}, {"ticket": "Who?", "query": "No."})
    read = sample_of(run, reading)
    assert (read.user_input, read.response, read.reference) == ("Who?", ANSWER, None)
