"""Messages and conversations, in every form in which LangChain, LangGraph and LangSmith hand them over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

from ragstone.judging.values import as_dict, as_list

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Role = Literal["human", "ai", "tool", "other"]

# A message's `type`, its class (in LangChain's serialised form), or a chat API's role.
_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("human", "user", "HumanMessage", "HumanMessageChunk"), "human"),
    **dict.fromkeys(("ai", "assistant", "AIMessage", "AIMessageChunk"), "ai"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk"), "tool"),
    **dict.fromkeys(("function", "FunctionMessage", "FunctionMessageChunk"), "tool"),
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "other"),
    **dict.fromkeys(("chat", "ChatMessage", "ChatMessageChunk", "remove", "RemoveMessage"), "other"),
}
_TOOL_BLOCKS = ("tool_use", "tool_call", "function_call")


@dataclass(frozen=True, slots=True)
class Message:
    """What matters of a message here.

    Attributes:
        role: Who speaks.
        text: Its text; "" where it has none.
        calls_tools: Whether it asks for tools to be run.
        name: The tool's name, for a tool's message; some formats name it only in the call that the message answers.
        call_id: Which call a tool's message answers.
        calls: The names of the tools that it asks for, by the call's id.
        artifact: What the tool kept beside its text.
        failed: Whether the tool failed, so that the text is an error's.
    """

    role: Role
    text: str
    calls_tools: bool = False
    name: str | None = None
    artifact: object = None
    failed: bool = False
    call_id: str | None = None
    calls: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_answer(self) -> bool:
        """Whether it answers where it is the last word: it has text, or calls no tools."""
        return not self.calls_tools or bool(self.text.strip())


def text_of(message: "BaseMessage") -> str:
    """Return a message's text, be its content text or a list of blocks; blocks of other kinds have none.

    `message.text` says the same but is a property in langchain-core 1 and was a method before.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> text_of(AIMessage([{"type": "text", "text": "Jane "}, {"type": "text", "text": "Austen."}]))
        'Jane Austen.'
    """
    return _text(cast("object", message.content)) or ""


def _text(content: object) -> str | None:
    """Return the text of a message's content; None if it is no message's content."""
    if isinstance(content, str):
        return content
    if content is None:  # a chat API's message that only calls tools
        return ""
    if not isinstance(content, list):
        return None
    texts = [_block(block) for block in cast("list[object]", content)]
    return "".join(text for text in texts if isinstance(text, str))


def _block(block: object) -> object:
    if isinstance(block, Mapping):
        given = cast("Mapping[object, object]", block)
        return given.get("text") if given.get("type") == "text" else None
    return block


def unwrapped(value: Mapping[object, object]) -> Mapping[object, object]:
    """Return the fields of an object that LangChain serialised; any other mapping as it is.

    Example:
        >>> unwrapped({"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": "So."}})
        {'type': 'AIMessage', 'content': 'So.'}
        >>> unwrapped({"type": "ai", "data": {"content": "So."}})
        {'content': 'So.', 'type': 'ai'}
    """
    if value.get("lc") == 1 and isinstance(fields := value.get("kwargs"), Mapping):
        path = as_list(value.get("id"))
        role: dict[object, object] = {"type": path[-1]} if path and _role(path[-1]) else {}
        return {**role, **cast("Mapping[object, object]", fields)}
    if _role(value.get("type")) and isinstance(fields := value.get("data"), Mapping):
        return {**cast("Mapping[object, object]", fields), "type": value["type"]}
    return value


def read_message(value: object) -> Message | None:
    """Return the message that `value` is: an object, a mapping, or a pair of role and text. None if it is none.

    Example:
        >>> read_message(("user", "Why?")) == read_message({"role": "user", "content": "Why?"})
        True
        >>> read_message({"question": "Why?"})
    """
    if isinstance(value, Mapping):
        return _from_mapping(unwrapped(cast("Mapping[object, object]", value)))
    if isinstance(value, (list, tuple)):
        pair = cast("Sequence[object]", value)
        role = _role(pair[0]) if len(pair) == 2 else None
        text = _text(pair[1]) if role else None
        return Message(role, text) if role and text is not None else None
    return _from_object(value)


def _from_object(value: object) -> Message | None:
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage  # most of langchain-core's import time

    if not isinstance(value, BaseMessage):
        return None
    return Message(
        role=_role(getattr(value, "role", None)) or _role(value.type) or "other",
        text=text_of(value),
        calls_tools=isinstance(value, AIMessage) and bool(value.tool_calls),
        name=value.name,
        artifact=cast("object", value.artifact) if isinstance(value, ToolMessage) else None,
        failed=isinstance(value, ToolMessage) and value.status == "error",
        call_id=value.tool_call_id if isinstance(value, ToolMessage) else None,
        calls=_names_by_id(value.tool_calls) if isinstance(value, AIMessage) else {},
    )


def _from_mapping(value: Mapping[object, object]) -> Message | None:
    role = _role(value.get("role")) or _role(value.get("type"))
    text = _text(value["content"]) if role and "content" in value else None
    if role is None or text is None:
        return None
    more = value.get("additional_kwargs")
    older = as_dict(more).get("tool_calls")
    asked = any(as_dict(block).get("type") in _TOOL_BLOCKS for block in as_list(value["content"]))
    name = value.get("name")
    return Message(
        role=role,
        text=text,
        calls_tools=role == "ai" and bool(value.get("tool_calls") or older or asked),
        name=name if isinstance(name, str) else None,
        artifact=value.get("artifact"),
        failed=value.get("status") == "error",
        call_id=call_id if isinstance(call_id := value.get("tool_call_id"), str) else None,
        calls=_names_by_id(value.get("tool_calls") or older),
    )


def _names_by_id(calls: object) -> dict[str, str]:
    """Return the tools that calls name, in LangChain's form or a chat API's."""
    names: dict[str, str] = {}
    for call in map(as_dict, as_list(calls)):
        name, number = call.get("name") or as_dict(call.get("function")).get("name"), call.get("id")
        if isinstance(name, str) and isinstance(number, str):
            names[number] = name
    return names


def _role(word: object) -> Role | None:
    return _ROLES.get(word) if isinstance(word, str) else None


def read_messages(value: object, *, named: bool = False) -> tuple[Message, ...]:
    """Return the conversation that `value` is, from one message up; empty if it is none.

    Args:
        value: A message or a list of messages, of any form.
        named: Whether it stands under the key "messages", where a bare text is the human's, as LangGraph has it.

    Example:
        >>> [message.role for message in read_messages([("user", "Why?"), {"role": "assistant", "content": "So."}])]
        ['human', 'ai']
        >>> read_messages(["Why?"]), read_messages("Why?", named=True)[0].role
        ((), 'human')
    """
    one = Message("human", value) if named and isinstance(value, str) else read_message(value)
    if one is not None:
        return (one,)
    if not isinstance(value, (list, tuple)):
        return ()
    messages: list[Message] = []
    called: dict[str, str] = {}
    for item in cast("Sequence[object]", value):
        message = Message("human", item) if named and isinstance(item, str) else read_message(item)
        if message is None:
            return ()
        called |= message.calls
        if message.name is None and message.call_id in called:
            message = replace(message, name=called[message.call_id])
        messages.append(message)
    return tuple(messages)


def question_in(messages: Sequence[Message]) -> str | None:
    """Return the text of the last human message.

    Example:
        >>> question_in(read_messages([("user", "Why?"), ("ai", "So."), ("user", "Really?")]))
        'Really?'
    """
    return next((message.text for message in reversed(messages) if message.role == "human"), None)


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Return what came after the last human message; all where no human spoke.

    Example:
        >>> [message.text for message in this_turn(read_messages([("user", "Why?"), ("ai", "So.")]))]
        ['So.']
    """
    last = max((i for i, message in enumerate(messages) if message.role == "human"), default=-1)
    return messages[last + 1 :]


def answer_in(messages: Sequence[Message]) -> str | None:
    """Return the text of this turn's last AI message that calls no tools; None where an agent has not answered.

    The last message of all may call tools beside its text, such as one that takes the answer's sources.

    Example:
        >>> answer_in(read_messages([("user", "Why?"), ("ai", "So.")]))
        'So.'
        >>> answer_in(read_messages([("user", "Why?"), ("ai", "So."), ("user", "Really?")]))
    """
    turn = this_turn(messages)
    answers = (m for m in reversed(turn) if m.role == "ai" and (m.is_answer if m is turn[-1] else not m.calls_tools))
    return next((m.text for m in answers), None)
