"""Messages in every form in which LangChain, LangGraph and LangSmith pass them on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ragstone.adapters.answering import texts_in
from ragstone.adapters.blocks import calls_tools, text_of_blocks, without_thoughts
from ragstone.fields.names import STRONG
from ragstone.plain import is_list, is_mapping, to_json
from ragstone.sample import Turn

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MEMORIES = frozenset(STRONG["history"])
_ROLES = {"human": "user", "ai": "assistant"}
# Where the result of a model, and what it is made of, has what was said.
_SAID = ("message", "generations", "choices", "text", "output")
# More than that holds itself.
_MOST_PIECES = 1_000
# Messages of a conversation that are read for its history at most.
_LONGEST = 100


def as_mapping(value: object) -> Mapping[Any, object] | None:
    """Return a mapping, that of a serialised object's fields where it is one; None for anything else."""
    if not is_mapping(value):
        return None
    if value.get("lc") == 1 and is_mapping(fields := value.get("kwargs")):
        return fields
    if "type" in value and is_mapping(fields := value.get("data")) and "content" in fields:
        return {**fields, "type": value["type"]}
    return value


def read_message(value: object) -> "BaseMessage | None":
    """Return the message that `value` is: an object, a mapping, or a pair of role and text. None if it is none."""
    if value is None or isinstance(value, str):
        return None
    # Most of langchain-core's import time goes here.
    from langchain_core.messages import BaseMessage, convert_to_messages

    if isinstance(value, BaseMessage):
        return value
    parts: Any = as_mapping(value)
    if parts is not None:
        role = parts.get("role") or parts.get("type")
        if "content" not in parts or not isinstance(role, str):
            return None
        parts = {"tool_call_id": "", **parts, "role": _role_word(role)}
    elif is_list(value):
        parts = (*value,)
        if len(parts) != 2 or not isinstance(parts[0], str):
            return None
    else:
        return None
    # LangChain has many errors for what it takes for no message.
    with suppress(Exception):
        return convert_to_messages([parts])[0] if parts else None
    return None


def _role_word(word: str) -> str:
    return word.removesuffix("MessageChunk").lower() if word.endswith("MessageChunk") else word


def role_of(message: "BaseMessage") -> str:
    """Return who says a message: human, ai, tool or another."""
    return _role_word(message.type)


def message_text(message: "BaseMessage") -> str:
    """Return a message's text, of its text blocks alone; `message.text` was a method before langchain-core 1."""
    content: object = message.content
    return text_of_blocks(content, pieces=True) or ""


def said_in(message: "BaseMessage") -> str:
    """The text that a person would read of a message."""
    role = role_of(message)
    content: object = message.content
    text = text_of_blocks(content, pieces=role != message.type) or ""
    if role != "ai":
        return text
    return without_thoughts(text) or str(message.additional_kwargs.get("refusal") or "")


def only_calls_tools(message: "BaseMessage") -> bool:
    """Whether a message asks for tools and says nothing."""
    return asks_for_tools(message) and not said_in(message).strip()


def asks_for_tools(message: "BaseMessage") -> bool:
    """Whether a message asks for tools."""
    calls = getattr(message, "tool_calls", ()) or message.additional_kwargs.get("tool_calls")
    return role_of(message) == "ai" and bool(calls or calls_tools(message.content))


def read_messages(value: object) -> "Sequence[BaseMessage]":
    """Return the last turn of the conversation that `value` is, from its last question on; empty if it is none.

    A message by itself is a turn. Human messages in a row are one question, of which the last with text counts.
    """
    if (one := read_message(value)) is not None:
        return (one,)
    turn: list[BaseMessage] = []
    for item in reversed(value) if is_list(value) else ():
        if (message := read_message(item)) is None:
            return ()
        human = role_of(message) == "human"
        if not human and turn and role_of(turn[-1]) == "human":
            break
        turn.append(message)
        if human and said_in(message).strip():
            break
    return turn[::-1]


def question_in(turn: "Sequence[BaseMessage]") -> str | None:
    """Return the text of the question."""
    texts = [said_in(message) for message in turn if role_of(message) == "human"]
    return next((text for text in texts if text.strip()), texts[0] if texts else None)


def answer_in(turn: "Sequence[BaseMessage]") -> str | None:
    """Return the last text that the AI said; None where an agent has not answered.

    After its answer it may have called a tool, such as one that saves a memory, and then said nothing.
    """
    said = [message for message in turn if role_of(message) in ("ai", "tool")]
    if not said or role_of(said[-1]) == "tool" or only_calls_tools(said[-1]):
        return None
    texts = [said_in(message) for message in said if role_of(message) == "ai"]
    return next((text for text in reversed(texts) if text.strip()), "")


def spoken_turns(value: object, *, memory: bool) -> list[Turn]:
    """The turns of people and the AI in a conversation; a memory may be pairs of texts."""
    said: list[tuple[str, str]] = []
    for item in value[-_LONGEST:] if is_list(value) else ():
        if (message := read_message(item)) is not None:
            said.append((role_of(message), said_in(message)))
        elif memory and is_list(item) and [type(part) for part in item] == [str, str]:
            said += [("human", str(item[0])), ("ai", str(item[1]))]
        else:
            return []
    spoken = [(_ROLES[who], text) for who, text in said if who in _ROLES and text.strip()]
    return [Turn.model_validate({"role": role, "content": text}) for role, text in spoken]


def prompt_of(given: object) -> list[str]:
    """The texts that a model is given: of prompts or messages, as LangChain and LangSmith pass them on."""
    return _texts_in(given, _texts_of_content)


def said_by(result: object) -> list[str]:
    """What a model said, and what it passes to tools, which may be an answer: of its result, in every form."""
    return _texts_in(result, _said_and_passed_on)


def _texts_of_content(message: "BaseMessage") -> "Iterable[str]":
    content: object = message.content
    return [content] if isinstance(content, str) else texts_in(content)


def _said_and_passed_on(message: "BaseMessage") -> list[str]:
    calls: Sequence[Any] = getattr(message, "tool_calls", ())
    return [said_in(message), *(to_json(call["args"]) for call in calls)]


def _texts_in(value: object, texts_of: "Callable[[BaseMessage], Iterable[str]]") -> list[str]:
    """The texts in a value, and in the messages in it: one loop, because each call of a model's comes here twice."""
    texts: list[str] = []
    waiting = [value]
    for each in waiting:
        if isinstance(each, str):
            texts.append(each)
        elif is_list(each):
            waiting += each
        elif (message := read_message(each)) is not None:
            texts += texts_of(message)
        elif len(waiting) < _MOST_PIECES:
            for name in _SAID:
                inner = each.get(name) if is_mapping(each) else getattr(each, name, None)
                if inner:
                    waiting.append(inner)
                    break
    return texts
