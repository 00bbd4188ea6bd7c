"""What an app answered: the text and the contexts of whatever a query engine, chat engine or workflow returned."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.workflow import StopEvent

from ragstone.sample import Sample
from ragstone_llama_index.streaming import StreamText, aread_stream, known_text, read_stream, share

_Synthesized = Response | PydanticResponse | StreamingResponse | AsyncStreamingResponse
_Chat = AgentChatResponse | StreamingAgentChatResponse
AnyResponse = _Synthesized | _Chat | AgentOutput
"""What query engines, chat engines and agents return."""

Mode = MetadataMode | Literal["all", "embed", "llm", "none"]
"""Which metadata of a node stand before its text in a context."""

_ANSWERS = ("response", "answer", "result", "output")  # of a dict or an event that a workflow ends with


@dataclass(frozen=True, slots=True)
class Answer:
    """What an app answered, the texts of its source nodes, and why there is no answer, where that is known."""

    text: str | None
    contexts: tuple[str, ...]
    problem: str | None = None

    def sample(self, question: str | None) -> Sample:
        """Return question and answer as a sample."""
        return Sample(user_input=question, retrieved_contexts=self.contexts, response=self.text)


def read_response(response: object, mode: MetadataMode) -> Answer:
    """Return what an app answered. A stream is read to its end, once, and can still be read after that.

    Raises:
        TypeError: It is no response.
        ValueError: It is an async stream that is yet to be read by the running event loop.
    """
    response = _checked(response)
    if isinstance(response, StreamingResponse):
        text = read_stream(response)
    elif isinstance(response, AsyncStreamingResponse):
        known = known_text(response)
        text = _run(response) if known is None else known
    else:
        text = _plain_text(response)
    return _answer(text, response, mode)


async def aread_response(response: object, mode: MetadataMode) -> Answer:
    """Return what an app answered, without holding up the running loop; otherwise as `read_response`."""
    response = _checked(response)
    if isinstance(response, StreamingResponse):  # shared before the thread begins: the user may read meanwhile
        known = share(response)
        text = await asyncio.to_thread(read_stream, response) if known is None else known
    elif isinstance(response, AsyncStreamingResponse):
        text = await aread_stream(response)
    else:
        text = _plain_text(response)
    return _answer(text, response, mode)


def _checked(response: object) -> AnyResponse:
    if isinstance(response, AnyResponse):
        return response
    raise TypeError(
        f"response: is {type(response).__name__}; pass what a query engine, chat engine or agent returned, "
        "or its text to evaluate(query=..., response=..., contexts=...)"
    )


def _run(response: AsyncStreamingResponse) -> StreamText:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aread_stream(response))
    raise ValueError("response: its stream belongs to the running event loop: await aevaluate_response(...)")


def _answer(known: StreamText, response: AnyResponse, mode: MetadataMode) -> Answer:
    contexts = texts_of(_source_nodes(response), mode)
    if known.text is None or isinstance(known.text, str):
        return Answer(known.text, contexts, known.problem)
    return Answer(None, contexts, f"is {type(known.text).__name__}, not text")


def _plain_text(response: Response | PydanticResponse | _Chat | AgentOutput) -> StreamText:
    """Return the text of a response that is no stream to be read; a chat's fills itself."""
    if isinstance(response, PydanticResponse):
        return StreamText(None if response.response is None else response.response.model_dump_json())
    if isinstance(response, AgentOutput):
        return StreamText(response.response.content)
    if isinstance(response, StreamingAgentChatResponse) and not (response.is_done or response.response):
        return StreamText(None, "is still being streamed; read it to its end first")
    return StreamText(response.response)


def answer_in(result: object) -> object:
    """Return what an app answered within what it returned.

    A workflow's result may be wrapped in its stop event, and stand there or in a dict by one of a few usual names.
    """
    if isinstance(result, _Synthesized):  # as a rule
        return result
    if isinstance(result, StopEvent):
        inner: object = result.result
        result = _named(result) if inner is None else inner
    return _named(cast("Mapping[str, object]", result)) if isinstance(result, Mapping) else result


def _named(result: StopEvent | Mapping[str, object]) -> object:
    for name in _ANSWERS:
        value: object = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
        if value is not None:
            return value
    return result


def text_of(answer: object) -> str | None:
    """Return an answer's text; None: there is none, or it is something else, such as a stream."""
    text = answer
    if isinstance(answer, Response | PydanticResponse | _Chat | AgentOutput):
        text = _plain_text(answer).text
    elif isinstance(answer, ChatMessage):
        text = answer.content
    elif isinstance(answer, ChatResponse):
        text = answer.message.content
    elif isinstance(answer, CompletionResponse):
        text = answer.text
    return text if isinstance(text, str) else None


def contexts_of(answer: object, retrieved: Callable[[], Iterable[str]], mode: MetadataMode) -> tuple[str, ...]:
    """Return the contexts of an answer: its source nodes, or, where it has none, what was retrieved on the way to it.

    An agent's answer has the nodes of its tools. What was retrieved says more there: tools may return only a text.
    """
    if isinstance(answer, AgentOutput):
        return tuple(dict.fromkeys(retrieved())) or texts_of(_source_nodes(answer), mode)
    own = texts_of(_source_nodes(answer), mode) if isinstance(answer, AnyResponse) else ()
    return own or tuple(dict.fromkeys(retrieved()))


def texts_of(nodes: Iterable[NodeWithScore], mode: MetadataMode) -> tuple[str, ...]:
    """Return the texts of nodes, with the metadata of a mode before each."""
    return tuple(node.get_content(metadata_mode=mode) for node in nodes)


def nodes_in(result: object) -> Sequence[NodeWithScore]:
    """Return the nodes that a retriever returned, or those that a response synthesizer was given."""
    nodes: object = result.source_nodes if isinstance(result, _Synthesized) else result
    if not isinstance(nodes, list):
        return ()
    return [node for node in cast("list[object]", nodes) if isinstance(node, NodeWithScore)]


def _source_nodes(response: AnyResponse) -> Sequence[NodeWithScore]:
    if not isinstance(response, AgentOutput):
        return response.source_nodes
    # Declared as the choice of a tool; what an agent puts there is the call with its result.
    calls: Sequence[object] = response.tool_calls
    outputs: list[object] = [call.tool_output.raw_output for call in calls if isinstance(call, ToolCallResult)]
    return [node for output in outputs for node in _nodes_of_tool(output)]


def _nodes_of_tool(output: object) -> Sequence[NodeWithScore]:
    return output.source_nodes if isinstance(output, _Synthesized | _Chat) else nodes_in(output)


def check_mode(mode: object) -> MetadataMode:
    """Return a metadata mode.

    Raises:
        ValueError: There is no such mode.
    """
    try:
        return MetadataMode(mode)
    except ValueError:
        modes = ", ".join(repr(known.value) for known in MetadataMode)
        raise ValueError(f"metadata_mode: {mode!r} is not one of {modes} or of MetadataMode") from None
