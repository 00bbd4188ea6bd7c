"""Conversations in rows and traces: messages of any maker, whatever the sides and their words are called."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragstone.adapters.blocks import calls_tools, text_of_blocks, type_of, without_thoughts
from ragstone.fields.names import FieldName
from ragstone.plain import as_dict, as_list, is_list
from ragstone.sources.written import parsed

_WORDS = {
    "user": "human user humanmessage humanmessagechunk",
    "assistant": "ai assistant agent bot gpt model chatbot aimessage aimessagechunk",
    "system": "system developer systemmessage",
    "tool": "tool function toolmessage",
}
_ROLES = {word: role for role, words in _WORDS.items() for word in words.split()}
_SIDES = ("role", "speaker", "from", "author", "type")
_CONTENTS = ("content", "parts", "blocks", "contents", "text", "value", "message")


class Message(NamedTuple):
    """Who said it, its content as it stands, the text in it, and what it passes to tools."""

    role: str
    content: object
    text: str
    calls: Sequence[object]


def dumped(value: object) -> Mapping[str, object]:
    """The entries of a mapping, or of the serialised object that it is."""
    entries = as_dict(value)
    return as_dict(entries.get("kwargs")) if entries.get("lc") == 1 else entries


def message_in(value: object) -> Message | None:
    """The message that a value is: a mapping of any maker's, or a pair of role and text; None if it is none."""
    fields = dumped(value)
    if is_list(value) and [type(each) for each in value] == [str, str]:
        fields = {"role": value[0], "content": value[1]}
    # {"type": "human", "data": {...}}; {"message": {...}}, as in a choice.
    for name in ("data", "message"):
        inner = dumped(fields.get(name))
        if any(each in inner for each in _CONTENTS):
            fields = {**fields, **inner}
    role = _ROLES.get(str(next((fields[name] for name in _SIDES if fields.get(name)), "")).lower())
    calls = as_list(fields.get("tool_calls")) or as_list(as_dict(fields.get("additional_kwargs")).get("tool_calls"))
    there = [fields[name] for name in _CONTENTS if name in fields]
    if role is None or not (there or calls):
        return None
    content = next((each for each in there if each is not None), None)
    content = parsed(content) if is_list(parsed(content)) else content
    blocks = [_block(each) for each in content] if is_list(content) else content
    if (text := text_of_blocks(blocks)) is None:
        return None
    called = calls or [each for each in as_list(blocks) if calls_tools([each])]
    return Message(role, content, without_thoughts(text) if role == "assistant" else text, called)


def _block(block: object) -> object:
    """A part of a message as a block: a text where it is one."""
    fields = as_dict(as_dict(block).get("message_content", block))
    if "text" not in (type_of(fields), fields.get("block_type")):
        return block
    return fields.get("text", fields.get("content"))


def messages_in(value: object) -> Sequence[Message]:
    """The messages of a list of them, or the only one; none where something else is among them."""
    if (one := message_in(value)) is not None:
        return [one]
    messages = [message_in(each) for each in value] if is_list(value) else []
    return [each for each in messages if each is not None] if None not in messages else []


def asked_in(messages: Sequence[Message]) -> str | None:
    """The last text that a person said."""
    texts = [each.text for each in messages if each.role == "user"]
    return next((text for text in reversed(texts) if text.strip()), None)


def answered_in(messages: Sequence[Message]) -> str | None:
    """The last text that the app said after a person; None where it waits for a tool."""
    asked = [i for i, each in enumerate(messages) if each.role == "user"]
    said = [each for each in messages[asked[-1] + 1 if asked else 0 :] if each.role in ("assistant", "tool")]
    if not said or said[-1].role == "tool" or (said[-1].calls and not said[-1].text.strip()):
        return None
    texts = [each.text for each in said if each.role == "assistant"]
    return next((text for text in reversed(texts) if text.strip()), "")


def turns_in(value: object) -> Sequence[Mapping[str, str]] | None:
    """The turns of a conversation that have a text, without those that the user did not see; None where it is none.

    Example:
        >>> turns_in([{"speaker": "user", "text": "Why?"}, {"speaker": "agent", "text": "So."}])
        [{'role': 'user', 'content': 'Why?'}, {'role': 'assistant', 'content': 'So.'}]
    """
    spoken = messages_in(value)
    turns = [{"role": each.role, "content": each.text} for each in spoken if each.role in ("user", "assistant")]
    return [turn for turn in turns if turn["content"]] if spoken else None


def around(value: object) -> Mapping[FieldName, object]:
    """What a conversation says besides its last question: the turns before it, and the answer behind it."""
    turns = turns_in(value) or ()
    last = max((i for i, turn in enumerate(turns) if turn["role"] == "user"), default=0)
    answer = answered_in(messages_in(value))
    said: dict[FieldName, object] = {"history": turns[:last], "response": answer}
    return {field: each for field, each in said.items() if each}
