"""How LlamaIndex' values are read: responses, messages, nodes and events, wherever they stand."""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import UnionType
from typing import Any

from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, PydanticResponse, Response, StreamingResponse
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.workflow import Event

from ragstone.fields.names import ID_FIELDS, FieldName
from ragstone.fields.read import Found, Read, read
from ragstone.fields.values import ids_in, is_path, text_of_document
from ragstone.plain import as_dict, fields_of, is_list, is_mapping

Streamed = StreamingResponse | AsyncStreamingResponse
Streams = Streamed | StreamingAgentChatResponse
"""What is answered piece by piece, as the app reads it."""
_WithNodes = Response | PydanticResponse | AgentChatResponse | StreamingAgentChatResponse | Streamed
AnyResponse = _WithNodes | AgentOutput
"""What query engines, chat engines and agents return."""
Answers = str | AnyResponse | ChatMessage | ChatResponse | CompletionResponse
"""What is an answer by itself."""

Node = NodeWithScore | BaseNode
NodeOrText = Node | str

_TEXTS: Sequence[tuple[type | UnionType, Callable[[Any], object]]] = (
    (QueryBundle, attrgetter("query_str")),
    (ChatMessage, attrgetter("content")),
    (ChatResponse, attrgetter("message.content")),
    (CompletionResponse, attrgetter("text")),
    (Response | AgentChatResponse, attrgetter("response")),
    (PydanticResponse, lambda each: each.response and each.response.model_dump_json()),
    (AsyncStreamingResponse, lambda each: None if getattr(each.response_gen, "ag_frame", None) else each.response_txt),
    (StreamingResponse, attrgetter("response_txt")),
    (StreamingAgentChatResponse, lambda each: each.response or None),
    (AgentOutput, attrgetter("response.content")),
)
_ID = re.compile(r"[0-9a-f-]{32,64}")
# LlamaIndex' synthesizers say so where there is no answer.
EMPTY = "Empty Response"
# Nodes are contexts there; texts may be citations.
_SOURCES = "sources"
# By the field: whose last words it is, and in which conversations.
_SAID: Mapping[FieldName, tuple[str, Sequence[str]]] = {
    "user_input": ("user", ("messages", "chat_history")),
    "response": ("assistant", ("messages",)),
}


class LlamaIndexForms:
    """How `ragstone.fields.read` sees LlamaIndex' values."""

    def entries(self, value: object) -> Mapping[str, object] | None:
        """The names and values of a mapping, an event, a pydantic model or a dataclass; None for anything else."""
        if isinstance(value, Event):
            # A stop event of the app's own need not have one.
            result = getattr(value, "result", None)
            return {**({} if result is None else {"result": result}), **(fields_of(value) or {}), **dict(value.items())}
        if is_mapping(value):
            return {str(name): each for name, each in value.items()}
        fields = fields_of(value)
        # Its text is yet to come.
        return {**(fields or {}), "response": value} if isinstance(value, Streams) else fields

    def value(self, field: FieldName, value: object) -> object | None:
        """A text, or the texts of contexts; of a stream that is yet to be read what stands for its text."""
        if field == "retrieved_contexts":
            sources = sources_in(value)
            texts = [one if isinstance(one, str) else one.get_content() for one in sources or ()]
            return None if sources is None or (texts and all(map(_is_reference, texts))) else texts
        if field in ID_FIELDS:
            return ids_in(value)
        text = text_or_none(value)
        return f"{type(value).__name__} {id(value)}" if text is None and isinstance(value, Streams) else text

    def said(self, field: FieldName, entries: Mapping[str, object]) -> tuple[str, object] | None:
        """What was said last in a conversation; of contexts the nodes among sources."""
        if field == "retrieved_contexts":
            nodes = nodes_in(entries.get(_SOURCES))
            return (_SOURCES, [node.get_content() for node in nodes]) if nodes else None
        role, names = _SAID.get(field, ("", ()))
        for name in names:
            texts = [text for said_by, text in spoken_lines(entries.get(name)) if said_by == role]
            if texts:
                return name, texts[-1]
        return None


FORMS = LlamaIndexForms()


def read_output(output: object) -> Read:
    """What a run returned: an answer by itself, a conversation, or something that holds one."""
    if isinstance(output, Answers):
        text = FORMS.value("response", output)
        return Read({} if text is None else {"response": Found(text, "the output itself", output)})
    if is_list(output):
        if not spoken_lines(output):
            is_tuple = not isinstance(output, list)
            return Read({}, {str(i): each for i, each in enumerate(output)} if is_tuple else {})
        output = {"messages": output}
    return read(output, FORMS, ("retrieved_contexts", "response", "user_input"))


def text_or_none(value: object) -> str | None:
    """A question's or an answer's text; None where there is none, or not yet."""
    text = (
        value if isinstance(value, str) else next((get(value) for kinds, get in _TEXTS if isinstance(value, kinds)), 0)
    )
    return said(text) if isinstance(text, str) else None


def said(text: str) -> str:
    """An answer's text, which is empty where LlamaIndex says in its own words that there is none."""
    return "" if text.strip() == EMPTY else text


def _is_reference(text: str) -> bool:
    """Whether a text is the path of a file or an id of a node, and so no context."""
    return is_path(text) or _ID.fullmatch(text) is not None


def nodes_in(result: object) -> Sequence[Node]:
    """The nodes of a response, or those in a list."""
    nodes = result.source_nodes if isinstance(result, _WithNodes) else result
    return [node for node in nodes if isinstance(node, Node)] if is_list(nodes) else []


def sources_in(value: object) -> Sequence[NodeOrText] | None:
    """The nodes and texts that a value names as contexts; None where something else is among them."""
    if isinstance(value, _WithNodes):
        return nodes_in(value)
    sources: list[NodeOrText] = []
    for each in value if is_list(value) else [value]:
        source = each if isinstance(each, Node) else text_of_document(each)
        if source is None:
            return None
        sources.append(source)
    return sources


def spoken_lines(messages: object) -> list[tuple[str, str]]:
    """The messages of users and assistants: who said it, and the text."""
    lines: list[tuple[str, str]] = []
    for one in messages if is_list(messages) else ():
        message = {"role": one.role.value, "content": one.content} if isinstance(one, ChatMessage) else as_dict(one)
        role, text = message.get("role"), message.get("content")
        if role in ("user", "assistant") and isinstance(text, str) and text:
            lines.append((str(role), text))
    return lines
