"""What apps return, read as text and contexts, and scored through the evaluators."""

import asyncio

import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import ImageNode, NodeWithScore, TextNode
from pydantic import BaseModel

from ragstone.testing import FakeLLM
from ragstone_llama_index import MetricEvaluator

from .models import truth
from .monitored import aread, read

TEXTS = ("Jane Austen wrote Emma.", "It came out in 1815.")
NODES = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
PIECES = ["Jane ", "", "Austen."]


class Author(BaseModel):
    name: str


async def atokens():
    for piece in PIECES:
        yield piece


def broken():
    yield from PIECES
    raise ConnectionError("gone")


RETURNED = {
    "PydanticResponse": (lambda: PydanticResponse(Author(name="Jane"), NODES), '{"name":"Jane"}'),
    "StreamingResponse": (lambda: StreamingResponse(iter(PIECES), NODES), "Jane Austen."),
    "StreamingResponse, read": (lambda: StreamingResponse(iter(PIECES), NODES, None, "Jane Austen."), "Jane Austen."),
    "AsyncStreamingResponse": (lambda: AsyncStreamingResponse(atokens(), NODES), "Jane Austen."),
    "AgentChatResponse": (lambda: AgentChatResponse("Jane Austen.", source_nodes=NODES), "Jane Austen."),
    "a chat's stream, read": (
        lambda: StreamingAgentChatResponse(response="Jane Austen.", source_nodes=NODES),
        "Jane Austen.",
    ),
}


@pytest.mark.parametrize("name", RETURNED)
def test_text_and_contexts(name):
    make, text = RETURNED[name]
    ways = (
        [asyncio.run(aread(make()))] if name == "AsyncStreamingResponse" else [read(make()), asyncio.run(aread(make()))]
    )
    for answer in ways:
        assert (answer.text, answer.contexts, answer.problem) == (text, TEXTS, None)


def test_what_is_no_response_is_refused_and_a_chat_still_streaming_is_no_answer():
    for way in (evaluate, aevaluate):
        with pytest.raises(TypeError, match="response: is str; "):
            way(MetricEvaluator("context_relevancy", FakeLLM(truth)), "Jane Austen.")
    response = StreamingAgentChatResponse(response="", source_nodes=NODES)
    assert read(response).problem == "is still being streamed; read it to its end first"
    assert read(Response("x", [NodeWithScore(node=ImageNode(image=""))])).contexts == ()


def evaluate(evaluator, response):
    return evaluator.evaluate_response(query="Who wrote Emma?", response=response)


def aevaluate(evaluator, response):
    return asyncio.run(evaluator.aevaluate_response(query="Who wrote Emma?", response=response))


@pytest.mark.parametrize("way", [evaluate, aevaluate])
def test_what_cannot_be_scored_is_an_invalid_result_for_metrics_that_need_it(way):
    llm = FakeLLM(truth)
    alignment, context = MetricEvaluator("alignment_coverage", llm), MetricEvaluator("context_relevancy", llm)
    for response, reason in (
        (Response(None, NODES), "missing_input: response: "),
        (Response({"answer": 1}, NODES), "missing_input: response: is missing"),
        (StreamingResponse(iter([]), NODES), "empty_input: response: "),
        (
            StreamingResponse(broken(), NODES),
            "missing_input: response: its stream broke off (ConnectionError: gone)",
        ),
    ):
        assert way(alignment, response).invalid_reason.startswith(reason)
    assert way(context, Response("Empty", [])).unscored == "empty_input"
    assert llm.requests == []
    assert way(context, StreamingResponse(broken(), NODES[:1])).score == 1.0
    assert way(context, None).unscored == "missing_input"
