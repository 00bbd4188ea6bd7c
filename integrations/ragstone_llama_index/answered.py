"""What an app answered: the text and the contexts in whatever a query engine, chat engine or workflow returned."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.workflow import StopEvent

from ragstone_llama_index.responses import AnyResponse, PlainResponse, contexts_of, said_by

_SYNTHESIZED = (Response, PydanticResponse, StreamingResponse, AsyncStreamingResponse)
_ANSWERS = ("response", "answer", "result", "output")  # of a dict or an event that a workflow ends with


def answer_in(result: object) -> object:
    """Return what an app answered within what it returned.

    A workflow's result may be wrapped in its stop event, and stand there or in a dict by one of a few usual names.

    Example:
        >>> answer_in(StopEvent(result={"answer": "Jane Austen.", "pages": 3}))
        'Jane Austen.'
    """
    if isinstance(result, _SYNTHESIZED):  # as a rule
        return result
    if isinstance(result, StopEvent):
        inner = cast("object", result.result)
        result = _named(result) if inner is None else inner
    return _named(cast("Mapping[str, object]", result)) if isinstance(result, Mapping) else result


def text_of(answer: object) -> str | None:
    """Return an answer's text; None: there is none, or it is something else, such as a stream."""
    if isinstance(answer, PlainResponse):
        text: object = said_by(answer).text
    elif isinstance(answer, ChatMessage):
        text = answer.content
    elif isinstance(answer, ChatResponse):
        text = answer.message.content
    elif isinstance(answer, CompletionResponse):
        text = answer.text
    else:
        text = answer
    return text if isinstance(text, str) else None


def own_contexts(answer: object, found: Callable[[], Iterable[str]], mode: MetadataMode) -> tuple[str, ...]:
    """Return the contexts of an answer: its source nodes, or, where it has none, what was found on the way to it.

    An agent's answer has the nodes of its tools. What was found says more there: tools may tell only a text.
    """
    if isinstance(answer, AgentOutput):
        return tuple(dict.fromkeys(found())) or contexts_of(answer, mode)
    nodes = contexts_of(answer, mode) if isinstance(answer, AnyResponse) else ()
    return nodes or tuple(dict.fromkeys(found()))


def nodes_in(result: object) -> Sequence[NodeWithScore]:
    """Return the nodes that a retriever returned, or those that a response synthesizer was given."""
    listed = cast("object", result.source_nodes) if isinstance(result, _SYNTHESIZED) else result
    if not isinstance(listed, list):
        return ()
    return [one for one in cast("list[object]", listed) if isinstance(one, NodeWithScore)]


def _named(result: StopEvent | Mapping[str, object]) -> object:
    for name in _ANSWERS:
        value = result.get(name) if isinstance(result, Mapping) else cast("object", getattr(result, name, None))
        if value is not None:
            return value
    return result
