"""What an app answered: the text and the contexts of whatever a query engine, chat engine or workflow returned."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, PydanticResponse, Response, StreamingResponse
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import StopEvent

from ragstone.options import checked
from ragstone.plain import as_list, is_mapping
from ragstone.sample import Sample
from ragstone_llama_index.streaming import Streamed, StreamText, aread_stream, known_text, read_stream, share

_WithNodes = Response | PydanticResponse | AgentChatResponse | StreamingAgentChatResponse | Streamed
AnyResponse = _WithNodes | AgentOutput
"""What query engines, chat engines and agents return."""

Mode = MetadataMode | Literal["all", "embed", "llm", "none"]
"""Which metadata of a node stand before its text in a context."""

Answered = tuple[Sample, str | None]
"""A question with what an app answered, and why there is no answer, where that is known."""

Node = NodeWithScore | BaseNode
Texts = tuple[str, ...]
Tools = Collection[str]  # by name

# Of a dict or an event that a workflow ends with.
_ANSWERS = ("response", "answer", "result", "output", "final_answer", "final_response", "answer_text", "reply")
_LABEL = re.compile(r"\ASource \d+:\n")  # before a text, by CitationQueryEngine
_EMPTY = "Empty Response"  # what LlamaIndex' synthesizers say where nothing was retrieved
_GENERATED = re.compile(r"Sub question: .*?\nResponse: |\nQuestion: .*?\nAnswer: ", re.DOTALL)
"""How a node begins into which SubQuestionQueryEngine or MultiStepQueryEngine has put an answer of its own."""


def read_response(question: str | None, response: object, mode: MetadataMode, tools: Tools = ()) -> Answered:
    """Return what an app answered to a question. A stream is read to its end, once, and can still be read after that.

    TypeError: it is no response. ValueError: it is an async stream that is yet to be read by the running event loop.
    """
    text = None
    if isinstance(response, StreamingResponse):
        text = read_stream(response)
    elif isinstance(response, AsyncStreamingResponse):
        text = known_text(response) or _run(response)
    return _answered(question, response, text, contexts_of(response, tuple, mode, tools))


async def aread_response(question: str | None, response: object, mode: MetadataMode, tools: Tools = ()) -> Answered:
    """Return what an app answered, without holding up the running loop; otherwise as `read_response`."""
    text = None
    if isinstance(response, StreamingResponse):  # shared before the thread begins: the user may read meanwhile
        text = share(response) or await asyncio.to_thread(read_stream, response)
    elif isinstance(response, AsyncStreamingResponse):
        text = await aread_stream(response)
    return _answered(question, response, text, contexts_of(response, tuple, mode, tools))


def _run(response: AsyncStreamingResponse) -> StreamText:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aread_stream(response))
    raise ValueError("response: its stream belongs to the running event loop; await aevaluate_response(...)")


def _answered(question: str | None, response: object, streamed: StreamText | None, contexts: Texts) -> Answered:
    if not isinstance(response, AnyResponse):
        raise TypeError(
            f"response: is {type(response).__name__}; pass what a query engine, chat engine or agent returned, "
            "or its text to evaluate(query=..., response=..., contexts=...)"
        )
    if isinstance(response, StreamingAgentChatResponse) and not (response.is_done or response.response):
        streamed = StreamText(None, "is still being streamed; read it to its end first")
    text, problem = (text_of(response), None) if streamed is None else (streamed.text, streamed.problem)
    if text is not None and not isinstance(text, str):
        text, problem = None, f"is {type(text).__name__}, not text"
    text = said(text, contexts)
    return Sample(user_input=question, retrieved_contexts=contexts, response=text), problem


def said(text: str | None, contexts: Sequence[str]) -> str | None:
    """Return the text of an answer, which is empty where the engine says in its own words that it found nothing."""
    return "" if text is not None and text.strip() == _EMPTY and not contexts else text


def answer_in(result: object) -> object:
    """Return what an app answered: in a dict, or a workflow's stop event, it stands by one of a few usual names."""
    if isinstance(result, StopEvent):
        values = (getattr(result, name, None) for name in ("result", *_ANSWERS))
        result = next((value for value in values if value is not None), result)
    if is_mapping(result):
        values = (result.get(name) for name in _ANSWERS)
        result = next((value for value in values if value is not None), result)
    return result


def text_of(answer: object) -> object:
    """Return the text of an answer that is no stream, or what else it answers."""
    if isinstance(answer, PydanticResponse):
        return None if answer.response is None else answer.response.model_dump_json()
    if isinstance(answer, Response | AgentChatResponse | StreamingAgentChatResponse | AgentOutput):
        return text_of(answer.response)
    if isinstance(answer, ChatResponse):
        return answer.message.content
    if isinstance(answer, ChatMessage):
        return answer.content
    return answer.text if isinstance(answer, CompletionResponse) else answer


def contexts_of(answer: object, retrieved: Callable[[], Iterable[str]], mode: MetadataMode, tools: Tools = ()) -> Texts:
    """Return the contexts of an answer: its source nodes, or, where it has none, what was retrieved on the way to it.

    An agent's answer has the nodes of its tools. What was retrieved says more there: tools may return only a text.
    """
    own: Iterable[str] = texts_of(nodes_in(answer), mode) if isinstance(answer, _WithNodes) else ()
    if isinstance(answer, AgentOutput):
        # Declared as the choice of a tool; what an agent puts there is the call with its result.
        calls: Sequence[object] = answer.tool_calls
        outputs = [call.tool_output for call in calls if isinstance(call, ToolCallResult)]
        own = tuple(retrieved()) or [text for output in outputs for text in tool_contexts(output, mode, tools)]
    return tuple(dict.fromkeys(own or retrieved()))


def tool_contexts(output: ToolOutput, mode: MetadataMode, tools: Tools) -> Texts:
    """Return the contexts in what a tool returned: its nodes, or the texts of one whose name is among those given."""
    nodes = nodes_in(output.raw_output)
    if nodes or output.is_error or output.tool_name not in tools:
        return texts_of(nodes, mode)
    texts = [each for each in as_list(output.raw_output) if isinstance(each, str)] or [output.content]
    return tuple(text for text in texts if text.strip())


def texts_of(nodes: Iterable[Node], mode: MetadataMode) -> Texts:
    """Return the texts of nodes, with the metadata of a mode before each: no text twice, none empty or generated."""
    texts = (_LABEL.sub("", node.get_content(metadata_mode=mode)) for node in nodes if not _is_generated(node))
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _is_generated(node: Node) -> bool:
    """Return whether a node holds the answer to a sub-question. What was read from a source has metadata or a score."""
    scored, inner = (node.score, node.node) if isinstance(node, NodeWithScore) else (None, node)
    return scored is None and not inner.metadata and _GENERATED.match(inner.get_content()) is not None


def nodes_in(result: object) -> Sequence[Node]:
    """Return the nodes of a response, or those that a retriever or a tool returned."""
    nodes: object = result.source_nodes if isinstance(result, _WithNodes) else result
    return [node for node in as_list(nodes) if isinstance(node, Node)]


def check_tools(names: Tools) -> Tools:
    """Return names of tools."""
    known: Tools = checked("context_tools", names, frozenset[str])
    return known


def check_mode(mode: object) -> MetadataMode:
    """Return a metadata mode."""
    known: MetadataMode = checked("metadata_mode", mode, MetadataMode)
    return known
