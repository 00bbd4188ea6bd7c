"""Messages, documents and states in every form in which LangChain, LangGraph and LangSmith pass them on."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Literal, cast

from langchain_core.documents import Document
from pydantic import BaseModel

from ragstone.blocks import calls_tools, text_of_blocks
from ragstone.judging.reply import find_thoughts
from ragstone.plain import as_dict, as_list, is_list, is_mapping
from ragstone.sample import Turn

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

JUDGE_TAG = "ragstone:judge"
"""Stands on every run of a judge, so that handlers can tell it from the app's."""

Role = Literal["human", "ai", "tool", "other"]

# A message's `type`, its class (in LangChain's serialised form), or a chat API's role.
_ROLES: Mapping[object, Role] = {
    **dict.fromkeys(("human", "user", "HumanMessage", "HumanMessageChunk"), "human"),
    **dict.fromkeys(("ai", "assistant", "AIMessage", "AIMessageChunk"), "ai"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk"), "tool"),
    **dict.fromkeys(("function", "FunctionMessage", "FunctionMessageChunk"), "tool"),
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "other"),
    **dict.fromkeys(("chat", "ChatMessage", "ChatMessageChunk", "remove", "RemoveMessage"), "other"),
}
_PARTS = ("role", "type", "content", "tool_calls", "additional_kwargs", "name", "tool_call_id", "artifact", "status")
_MOST_KEYS = 12  # of a mapping that a message lists
_LONGEST = 100  # messages of a conversation that are read for its history
MEMORIES = frozenset(("chat_history", "history", "conversation_history", "message_history", "past_messages", "memory"))
_SPEAKER = re.compile(r"^(human|user|ai|assistant): ?", re.MULTILINE | re.IGNORECASE)


class Unreadable(ValueError):  # noqa: N818 - it becomes an Unscored
    """Says which value is not what it should be, and what it is."""


def as_mapping(value: object) -> Mapping[object, object] | None:
    """Return a mapping, that of a serialised object's fields where it is one; None for anything else."""
    if not is_mapping(value):
        return None
    if value.get("lc") == 1 and is_mapping(fields := value.get("kwargs")):
        path = as_list(value.get("id"))
        return {**({"type": path[-1]} if path and _role(path[-1]) else {}), **fields}
    if _role(value.get("type")) and is_mapping(fields := value.get("data")):
        return {**fields, "type": value["type"]}
    return value


@dataclass(frozen=True, slots=True)
class Message:
    """What matters of a message here. `calls` are the tools that it asks for, as their providers write that.

    A tool's message has the tool's name (in some formats only by the call, `call_id`, that it answers), the artifact
    that the tool kept beside its text, and whether the tool failed, so that the text is an error's.
    """

    role: Role
    text: str
    content: object = None
    calls_tools: bool = False
    calls: Sequence[object] = ()
    name: object = None
    call_id: object = None
    artifact: object = None
    failed: bool = False

    @property
    def has_text(self) -> bool:
        """Whether a person would read anything in it."""
        return bool(self.text.strip())


def text_of(message: "BaseMessage") -> str:
    """Return a message's text, of its text blocks alone; `message.text` was a method before langchain-core 1."""
    return text_of_blocks(cast("object", message.content), pieces=True) or ""


def without_thoughts(text: str) -> str:
    """Return what a model said without what it thought in the same text; a text that quotes a mark stays whole."""
    marked = "</" in text or "[/" in text or "<|" in text
    thoughts = find_thoughts(text) if marked and "`</" not in text else None
    return text if thoughts is None else "".join([*thoughts[1], text[thoughts[0] :].lstrip()])


def _role(word: object) -> Role | None:
    return _ROLES.get(word) if isinstance(word, str) else None


def read_message(value: object) -> Message | None:
    """Return the message that `value` is: an object, a mapping, or a pair of role and text. None if it is none."""
    if isinstance(value, str):
        return None
    parts = as_mapping(value)
    if parts is not None:
        return _from_parts(parts)
    if is_list(value):
        return _from_parts({"role": value[0], "content": value[1]}) if len(value) == 2 else None
    from langchain_core.messages import BaseMessage  # most of langchain-core's import time

    if not isinstance(value, BaseMessage):
        return None
    return _from_parts({name: getattr(value, name, None) for name in _PARTS}) or Message("other", text_of(value))


def _from_parts(parts: Mapping[object, object]) -> Message | None:
    role = _role(parts.get("role")) or _role(parts.get("type"))
    streamed = str(parts.get("type")).endswith("Chunk")
    content = parts.get("content")
    text = text_of_blocks(content, pieces=streamed) if role and "content" in parts else None
    if role is None or text is None:
        return None
    further = as_dict(parts.get("additional_kwargs"))
    calls = parts.get("tool_calls") or further.get("tool_calls")
    if role == "ai":
        text = without_thoughts(text) or str(further.get("refusal") or "")
    return Message(
        role=role,
        text=text,
        content=content,
        calls_tools=role == "ai" and (bool(calls) or calls_tools(content)),
        calls=as_list(calls),
        name=parts.get("name"),
        call_id=parts.get("tool_call_id"),
        artifact=parts.get("artifact"),
        failed=parts.get("status") == "error",
    )


def read_messages(value: object, *, named: bool = False) -> Sequence[Message]:
    """Return the last turn of the conversation that `value` is, from its last question on; empty if it is none.

    A message by itself is a turn. Human messages in a row are one question, of which the last with text counts. With
    `named` the value stands under the key "messages", where a bare text is the human's, as LangGraph has it.
    """
    if (one := _read_item(value, named)) is not None:
        return (one,)
    turn: list[Message] = []
    for item in reversed(value) if is_list(value) else ():
        if (message := _read_item(item, named)) is None:
            return ()
        if message.role != "human" and turn and turn[-1].role == "human":
            break
        turn.append(message)
        if message.role == "human" and message.has_text:
            break
    return turn[::-1]


def _read_item(value: object, named: bool) -> Message | None:
    return Message("human", value) if named and isinstance(value, str) else read_message(value)


def earlier_turns(
    value: object, question: str | None, answer: str | None = None, *, asked: bool = False
) -> tuple[Turn, ...]:
    """Return what was said before a question, oldest first: in a conversation, or in a state or memory that holds one.

    With `asked` the value is what came with the question, so that all of a conversation without it is earlier, but
    for the question with its answer, which the app may have added since.
    """
    if value is None or isinstance(value, str):
        return ()
    entries = entries_of(value)
    for name, inside in ({"messages": value} if entries is None else entries).items():
        memory = name in MEMORIES
        messages = [m for m in _conversation(inside, memory) if m.role in ("human", "ai") and m.has_text]
        same = [i for i, message in enumerate(messages) if message.role == "human" and message.text == question]
        end = len(messages) if memory or (asked and name == "messages") else 0
        own = [m.text for m in messages[same[-1] + 1 :]] in ([], [answer]) if same else False
        if same and (own or not (asked and memory)):
            end = same[-1]
        if end:
            return tuple(Turn.model_validate({"role": m.role, "content": m.text}) for m in messages[:end])
    return ()


def _conversation(value: object, memory: bool) -> Sequence[Message]:
    """Return all messages of a conversation; of a memory also those that are pairs of texts, or one text with names."""
    if isinstance(value, str) and memory:
        _, *parts = _SPEAKER.split(value)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return [Message(_ROLES[name.lower()], text.strip()) for name, text in pairs]
    messages: list[Message] = []
    for item in value[-_LONGEST:] if is_list(value) else ():
        if (message := read_message(item)) is not None:
            messages.append(message)
        elif memory and is_list(item) and [type(part) for part in item] == [str, str]:
            messages += [Message("human", str(item[0])), Message("ai", str(item[1]))]
        else:
            return ()
    return messages


def question_in(turn: Sequence[Message]) -> str | None:
    """Return the text of the question."""
    texts = [message.text for message in turn if message.role == "human"]
    return next((text for text in texts if text.strip()), texts[0] if texts else None)


def answer_in(turn: Sequence[Message]) -> str | None:
    """Return the last text that the AI said; None where an agent has not answered.

    After its answer it may have called a tool, such as one that saves a memory, and then said nothing.
    """
    said = [message for message in turn if message.role in ("ai", "tool")]
    if not said or said[-1].role == "tool" or (said[-1].calls_tools and not said[-1].has_text):
        return None
    return next((message.text for message in reversed(said) if message.role == "ai" and message.has_text), "")


def _content(value: object, names: Sequence[str]) -> tuple[object, ...]:
    """Return the content of a document, or of a pair of a document and its score; nothing for anything else."""
    if is_list(value) and len(value) == 2 and isinstance(value[1], Real):
        value = value[0]
    if isinstance(value, Document):
        return (value.page_content,)
    mapping = as_mapping(value)
    return () if mapping is None else tuple(mapping[name] for name in names if name in mapping)[:1]


def is_document(value: object) -> bool:
    """Say whether a value is a document (an object, or a mapping with "page_content"), or one with its score."""
    return bool(_content(value, ("page_content",)))


def are_documents(value: object) -> bool:
    """Say whether a value is a document or a list of nothing but documents, at least one."""
    return is_document(value) or (is_list(value) and bool(value) and all(map(is_document, value)))


def context_text(value: object, where: str) -> str:
    """Return the text of one context: a text, a document or a search's hit, with or without its score."""
    content = (value,) if isinstance(value, str) else _content(value, ("page_content", "text", "content"))
    if not content:
        raise Unreadable(f"{where} is {kind(value)}, not text or a Document")
    if not isinstance(content[0], str):
        raise Unreadable(f"{where}: its page_content is {kind(content[0])}, not text")
    return content[0]


def context_texts(value: object, where: str) -> list[str] | None:
    """Return the texts of what is meant to be contexts: one, or a list of them. None for a mapping of other things."""
    if isinstance(value, str) or is_document(value):
        return [context_text(value, where)]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        items = cast("Sequence[object]", value)
        return [context_text(item, f"{where}[{i}]") for i, item in enumerate(items)]
    return None


def once_each(texts: Iterable[str]) -> list[str]:
    """Return the texts without repetitions, in order: several searches may find the same."""
    return list(dict.fromkeys(texts))


def entries_of(value: object) -> dict[str, object] | None:
    """Return what stands under names in a state: a mapping, a pydantic model or a dataclass. None for anything else.

    Messages and Documents, whose "name" or "id" is no one's question, have no entries.
    """
    if is_list(value) or read_message(value) is not None or is_document(value):
        return None
    entries = as_mapping(value)
    if isinstance(value, BaseModel):
        stored = {**vars(value), **(value.model_extra or {})}  # to ask for a deprecated field by its name would warn
        entries = {name: stored.get(name) for name in (*type(value).model_fields, *(value.model_extra or ()))}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        entries = {each.name: getattr(cast("object", value), each.name, None) for each in dataclasses.fields(value)}
        if set(entries) == {"value", "interrupts"}:  # LangGraph's invoke(version="v2") packs the state
            return entries_of(entries["value"])
    if entries is None:
        return None
    return {name: item for name, item in entries.items() if isinstance(name, str)}


def kind(value: object) -> str:
    """Return what a value is, for a message: its type and, where it has them, its keys, such as "dict with 'q'"."""
    name = "None" if value is None else type(value).__name__
    entries = value if is_mapping(value) else entries_of(value)
    if entries is None:
        return name
    keys = [repr(key[:40]) if isinstance(key, str) else type(key).__name__ for key in entries]
    listed = ", ".join([*keys[:_MOST_KEYS], *(["..."] if len(keys) > _MOST_KEYS else [])])
    return f"{name} with {listed}" if keys else f"an empty {name}"
