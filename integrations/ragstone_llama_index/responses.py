"""What an app answered, in any of LlamaIndex' classes of responses, as text and contexts."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode, NodeWithScore

from ragstone_llama_index.streams import Said, aread_stream, known, read_stream, share

AnyResponse = (
    Response
    | PydanticResponse
    | StreamingResponse
    | AsyncStreamingResponse
    | AgentChatResponse
    | StreamingAgentChatResponse
    | AgentOutput
)
"""What query engines, chat engines and agents return."""

Mode = MetadataMode | Literal["all", "embed", "llm", "none"]
"""Which metadata of a node stand before its text in a context."""

_WITH_NODES = (
    Response,
    PydanticResponse,
    StreamingResponse,
    AsyncStreamingResponse,
    AgentChatResponse,
    StreamingAgentChatResponse,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an app answered.

    Attributes:
        text: The answer; None when there is none.
        contexts: The texts of the source nodes.
        problem: Why there is no text, where that is known.
    """

    text: str | None
    contexts: tuple[str, ...]
    problem: str | None = None


def read_response(response: AnyResponse, mode: MetadataMode) -> Answer:
    """Return what an app answered. A stream is read to its end, once, and can still be read after that.

    Args:
        response: What it returned.
        mode: Which metadata the contexts show: `MetadataMode.NONE` is the text alone, `LLM` what the app's LLM saw.

    Raises:
        TypeError: It is no response.
        ValueError: It is an async stream that is yet to be read by the running event loop.

    Example:
        >>> read_response(Response("Jane Austen."), MetadataMode.NONE)
        Answer(text='Jane Austen.', contexts=(), problem=None)
    """
    _check(response)
    said: Said
    if isinstance(response, StreamingResponse):
        said = read_stream(response)
    elif isinstance(response, AsyncStreamingResponse):
        said = known(response) or _run(response)
    else:
        said = said_by(response)
    return Answer(said.text, contexts_of(response, mode), said.problem)


async def aread_response(response: AnyResponse, mode: MetadataMode) -> Answer:
    """Return what an app answered, without holding up the running loop; otherwise as `read_response`."""
    _check(response)
    said: Said
    if isinstance(response, StreamingResponse):
        said = await _from_thread(response)
    elif isinstance(response, AsyncStreamingResponse):
        said = await aread_stream(response)
    else:
        said = said_by(response)
    return Answer(said.text, contexts_of(response, mode), said.problem)


def _check(response: object) -> None:
    if not isinstance(response, AnyResponse):
        raise TypeError(
            f"response: is {type(response).__name__}; pass what a query engine, chat engine or agent returned, "
            "or its text to evaluate(query=..., response=..., contexts=...)"
        )


async def _from_thread(response: StreamingResponse) -> Said:
    said = share(response)  # before the thread begins: the user may read meanwhile
    return await asyncio.to_thread(read_stream, response) if said is None else said


def _run(response: AsyncStreamingResponse) -> Said:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aread_stream(response))
    raise ValueError("response: its stream belongs to the running event loop: await aevaluate_response(...)")


PlainResponse = Response | PydanticResponse | AgentChatResponse | StreamingAgentChatResponse | AgentOutput
"""Those that are no stream to be read; `StreamingAgentChatResponse` fills itself."""


def said_by(response: PlainResponse) -> Said:
    """Return what a response that is no stream says."""
    if isinstance(response, PydanticResponse):
        return Said(None if response.response is None else response.response.model_dump_json())
    if isinstance(response, AgentOutput):
        return Said(response.response.content)
    if isinstance(response, StreamingAgentChatResponse) and not (response.is_done or response.response):
        return Said(None, "is still being streamed; read it to its end first")
    return Said(response.response)


def contexts_of(response: AnyResponse, mode: MetadataMode) -> tuple[str, ...]:
    """Return the texts of a response's source nodes; for an agent, those of its tools."""
    return texts_of(_nodes(response), mode)


def texts_of(nodes: Iterable[NodeWithScore], mode: MetadataMode) -> tuple[str, ...]:
    """Return the texts of nodes, with the metadata of a mode before each."""
    return tuple(node.get_content(metadata_mode=mode) for node in nodes)


def check_mode(mode: object) -> MetadataMode:
    """Return a metadata mode.

    Raises:
        ValueError: There is no such mode; the message lists those that there are.

    Example:
        >>> check_mode("none")
        <MetadataMode.NONE: 'none'>
    """
    try:
        return MetadataMode(mode)
    except ValueError:
        modes = ", ".join(repr(known.value) for known in MetadataMode)
        raise ValueError(f"metadata_mode: {mode!r} is not one of {modes} or of MetadataMode") from None


def _nodes(response: AnyResponse) -> Sequence[NodeWithScore]:
    if not isinstance(response, AgentOutput):
        return response.source_nodes
    # Declared as the choice of a tool; what an agent puts there is the call with its result.
    calls = cast("Sequence[object]", response.tool_calls)
    return [node for call in calls if isinstance(call, ToolCallResult) for node in _tool_nodes(call)]


def _tool_nodes(call: ToolCallResult) -> Sequence[NodeWithScore]:
    returned = cast("object", call.tool_output.raw_output)
    if isinstance(returned, _WITH_NODES):
        return returned.source_nodes
    if isinstance(returned, list):  # a retriever's
        return [node for node in cast("list[object]", returned) if isinstance(node, NodeWithScore)]
    return ()
