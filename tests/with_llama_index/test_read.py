"""A recorded run read as a sample: no handler, no app."""

from dataclasses import dataclass

import pytest
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StopEvent
from pydantic import BaseModel

from ragstone.adapters.runs import Run, Skipped
from ragstone_llama_index import Reading, sample_of
from ragstone_llama_index.read import draft_of

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
    "another name": ({"pages": 3, "told": ANSWER, "n": 1}, ("pages", "told", "n"), "told"),
    "a usual name with None": ({"answer": None, "told": ANSWER}, ("answer", "told"), "told"),
    "a usual name with a number": ({"answer": 7}, ("answer",), ""),
    "two inner mappings": ({"a": {"answer": "One."}, "b": {"answer": "Two."}}, ("a", "b"), ""),
    "two usual names with other texts": ({"response": "One.", "answer": "Two."}, ("response", "answer"), ""),
    "two names that may be it": (StopEvent(result={"result": "success", "output": ANSWER}), ("result.result", "result.output"), ""),
    "a model's other text": (Model(told=ANSWER), ("answer", "told"), "told"),
    "a stop event's other fields": (Done(), ("final_answer", "pages"), ""),
    "what was said before": ({"told": ANSWER, "chat_history": [ChatMessage("Before.", role="assistant")]}, ("told", "chat_history"), "told"),
    "a stream": ((word for word in ANSWER), ("generator",), ""),
    "a tuple": ((ANSWER, nodes(*TEXTS)), ("0", "1"), "0"),
    "nothing": (None, ("NoneType",), ""),
    "a response without a text": (Response(None), ("Response",), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_no_answer_is_a_reason_with_the_names_that_were_there(name):
    output, names, likely = NO_ANSWERS[name]
    assert sample_of(flow(output)) == Skipped("no_answer", names, likely)
    if likely:
        assert sample_of(flow(output), Reading.of("none", (), {"response": likely})).response == ANSWER


@pytest.mark.parametrize(
    ("inputs", "question"),
    [
        *(({name: "Who?"}, "Who?") for name in ("user_msg", "query", "message", "prompt", "query_str", "request")),
        ({"question": None, "input": "https://example.org/a what is it?"}, "https://example.org/a what is it?"),
        ({"query": "ASP.NET"}, "ASP.NET"),
        ({"data": {"question": "Who?"}, "k": 3}, "Who?"),
        ({"query": "author of Emma", "original_question": "Who?"}, "Who?"),
        ({"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "So."}]}, "Who?"),
    ],
)
def test_a_question(inputs, question):
    assert sample_of(flow(inputs=inputs)).user_input == question


@pytest.mark.parametrize(
    ("inputs", "likely"),
    [
        ({"a": {"question": "Who?"}, "b": {"question": "When?"}}, ""),
        ({"ticket": "Who wrote it?"}, "ticket"),
        ({"question": "Who wrote it?", "query": "author of Emma"}, ""),
        ({"input": "/data/x.pdf"}, ""),
    ],
)
def test_no_question_is_a_reason_with_the_names_that_were_there(inputs, likely):
    assert sample_of(flow(inputs=inputs)) == Skipped("no_question", tuple(inputs), likely)


def test_a_question_that_only_the_output_has():
    assert sample_of(flow({"answer": ANSWER, "question": "Who?"}, {"n": 3})).user_input == "Who?"
    assert isinstance(sample_of(flow({"answer": ANSWER, "message": "ok"}, {"n": 3})), Skipped)


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


READ_FROM = {
    "an engine": (flow(Response(ANSWER, nodes("A.")), None, kind="query"), ("the input itself", "source_nodes", "the output itself")),
    "a workflow": (flow({"reply": ANSWER}, None, retrieval("A.", "B.")), ("inputs.query", "searches (2)", "reply")),
    "nothing found": (flow({"data": {"reply": ANSWER}}, None, retrieval()), ("inputs.query", "searches (0)", "data.reply")),
    "a response in it": (flow({"answer": Response(ANSWER, nodes("A."))}), ("inputs.query", "answer.source_nodes", "answer")),
    "a text alone, and none retrieved": (flow({"answer": ANSWER, "context": "A."}), ("inputs.query", "context", "answer")),
    "handed in and back": (flow({"answer": ANSWER, "documents": ["A text."]}, {"query": "Who?", "documents": ["A text."]}, retrieval("A.")), ("inputs.query", "searches (1)", "answer")),
    "named by the app": (flow(ANSWER, None, Run("3", "named", output=["A."])), ("inputs.query", "contexts(...)", "the output itself")),
    "messages": (flow([ChatMessage("Who?"), ChatMessage(ANSWER, role="assistant")], {"n": 1}), ("messages", None, "messages")),
}  # fmt: skip


@pytest.mark.parametrize("name", READ_FROM)
def test_where_fields_came_from(name):
    run, read_from = READ_FROM[name]
    draft = draft_of(run)
    assert tuple(draft.read_from.get(field) for field in ("user_input", "retrieved_contexts", "response")) == read_from


def test_what_may_be_meant_by_contexts_that_are_missing():
    draft = draft_of(flow({"answer": ANSWER, "findings": ["A passage."], "n": 1}))
    assert (draft.names, draft.likely["retrieved_contexts"]) == (("findings", "n"), "findings")


def test_an_answer_that_no_tree_explains_is_known_by_its_form_unless_it_has_a_source():
    composed = TextNode(text="Query: Who?\nResponse: Made up.")
    read = TextNode(text=composed.text, metadata={"file": "faq.txt"})
    for node, contexts in ((composed, ()), (read, (composed.text,))):
        response = Response(ANSWER, [NodeWithScore(node=node, score=0.5)])
        assert sample_of(flow(response, kind="query")).retrieved_contexts == contexts
