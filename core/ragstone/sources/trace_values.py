"""What stands in stored traces: JSON in texts, serialised objects, messages and documents of every maker."""

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ragstone.adapters.answering import texts_in
from ragstone.adapters.blocks import calls_tools, text_of_blocks, type_of
from ragstone.fields.names import ID_FIELDS, FieldName
from ragstone.fields.read import Plain
from ragstone.fields.values import text_of_document
from ragstone.judging.reply import find_thoughts
from ragstone.plain import as_dict, as_list, is_list, is_mapping, to_json
from ragstone.sample import BadLine
from ragstone.sources.cells import json_value, python_value

_WORDS = {
    "user": "human user humanmessage humanmessagechunk",
    "assistant": "ai assistant model aimessage aimessagechunk",
    "system": "system developer systemmessage",
    "tool": "tool function toolmessage",
}
_ROLES = {word: role for role, words in _WORDS.items() for word in words.split()}
_CONTENTS = ("content", "parts", "blocks", "contents")
# Where the request or the result of a model has what was said.
_SAID = ("messages", "message", "generations", "choices", "text", "content", "output", "prompts", "prompt", "input")
# What a tracer writes of an object that it has no JSON of, such as <Node(id=1)>.
_REPR = re.compile(r"<[\w.]+(\(.*\)| .* at 0x[0-9a-fA-F]+)>", re.DOTALL)
# What gave nothing is "null".
_JSON = re.compile(r'\s*[{["]|null$')
_LONGEST_LITERAL = 1_000_000
# Beside what a call was given or gave, its tracer writes these.
_BESIDE = ("tags", "metadata", "kwargs")
_PACKED = ("inputs", "outputs", "input", "output")
_DEEPEST = 12


class Message(NamedTuple):
    """Who said it, its content as it stands, the text in it, and what it passes to tools."""

    role: str
    content: object
    text: str
    calls: Sequence[object]


def parsed(value: object, mime_type: object = None) -> object:
    """The value of a text that is JSON, unless it is said to be plain; anything else as it is."""
    if not isinstance(value, str) or mime_type == "text/plain" or not _JSON.match(value):
        return value
    found = json_value(value)
    if not isinstance(found, BadLine):
        return found
    # Frames write lists and mappings as Python does.
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(value.strip()[:_LONGEST_LITERAL])
    return value


def unpacked(value: object, mime_type: object = None) -> object:
    """What a call was given or gave, out of the mapping in which its tracer packs what is none."""
    value = parsed(value, mime_type)
    if not is_mapping(value):
        return value
    names = [name for name in value if name not in _BESIDE]
    return unpacked(value[names[0]]) if len(names) == 1 and names[0] in _PACKED else value


def by_dots(value: Mapping[str, object]) -> dict[str, Any]:
    """A mapping with another one for each dot in its names."""
    tree: dict[str, Any] = {}
    for name, each in value.items():
        *path, last = str(name).split(".", _DEEPEST)
        at = tree
        for part in path:
            at[part] = as_dict(at.get(part))
            at = at[part]
        at.setdefault(last, python_value(each))
    return tree


def structured(value: object) -> object:
    """A value with a mapping for each dot in a name, and a list for what has numbers for names."""
    if is_list(value):
        return [structured(each) for each in value]
    if not is_mapping(value):
        return value
    inner = {name: structured(each) for name, each in by_dots(as_dict(value)).items()}
    # Frames have a column for each attribute of any span.
    entries = {name: each for name, each in inner.items() if each not in (None, {})}
    numbered = bool(entries) and all(map(str.isdecimal, entries))
    return [entries[name] for name in sorted(entries, key=int)] if numbered else entries


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
    role = _ROLES.get(str(fields.get("role") or fields.get("type")).lower())
    content = next((fields[name] for name in _CONTENTS if fields.get(name) is not None), None)
    calls = as_list(fields.get("tool_calls")) or as_list(as_dict(fields.get("additional_kwargs")).get("tool_calls"))
    if role is None or (content is None and not calls):
        return None
    content = parsed(content) if is_list(parsed(content)) else content
    blocks = [_block(each) for each in content] if is_list(content) else content
    text = text_of_blocks(blocks) or ""
    called = calls or [each for each in as_list(blocks) if calls_tools([each])]
    return Message(role, content, without_thoughts(text) if role == "assistant" else text, called)


def _block(block: object) -> object:
    """A part of a message as a block: a text where it is one."""
    fields = as_dict(as_dict(block).get("message_content", block))
    if "text" not in (type_of(fields), fields.get("block_type")):
        return block
    return fields.get("text", fields.get("content"))


def without_thoughts(text: str) -> str:
    """An answer's text without the thoughts in it."""
    thoughts = find_thoughts(text) if "</" in text and "`</" not in text else None
    return text if thoughts is None else "".join([*thoughts[1], text[thoughts[0] :].lstrip()])


def conversation(value: object) -> Sequence[Message]:
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


def texts_of_call(value: object) -> list[str]:
    """The texts of what a model was given or gave: of prompts, messages, choices, and what is passed to tools."""
    texts: list[str] = []
    waiting = [value]
    for each in waiting:
        each = structured(parsed(each))
        if isinstance(each, str):
            texts.append(each)
        elif (message := message_in(each)) is not None:
            texts += [*texts_in(message.content), *map(_passed_on, message.calls)]
        else:
            waiting += each if is_list(each) else [as_dict(each)[name] for name in _SAID if as_dict(each).get(name)][:1]
    return texts


def _passed_on(call: object) -> str:
    """What a call of a tool passes on, in any maker's form."""
    for name in ("tool_call", "function"):
        call = as_dict(call).get(name, call)
    passed = next((as_dict(call)[name] for name in ("args", "arguments", "input") if as_dict(call).get(name)), "")
    return passed if isinstance(passed, str) else to_json(passed)


class TraceForms(Plain):
    """How `ragstone.fields.read` sees the values of stored traces."""

    def entries(self, value: object) -> Mapping[str, object] | None:
        """The values under the names of a mapping; None for a message, a document and anything else."""
        fields = dumped(value)
        return None if not fields or "page_content" in fields or message_in(value) is not None else dict(fields)

    def value(self, field: FieldName, value: object) -> object | None:
        """A text, the last one of a conversation, or the texts of documents."""
        items = value if is_list(value) else [value]
        if any(isinstance(each, str) and _REPR.fullmatch(each) for each in items):
            return None
        if field == "retrieved_contexts":
            texts = [None if message_in(each) else text_of_document(each) for each in items]
            return None if None in texts else texts
        if field in (*ID_FIELDS, "history", "id", "metadata"):
            return super().value(field, value)
        if isinstance(value, str):
            return value if field == "user_input" else without_thoughts(value)
        if messages := conversation(value):
            return asked_in(messages) if field == "user_input" else answered_in(messages)
        blocks = as_list(value)
        return text_of_blocks(blocks) if blocks and all(isinstance(type_of(each), str) for each in blocks) else None

    def said(self, field: FieldName, entries: Mapping[str, object]) -> tuple[str, object] | None:
        """What was asked, or answered, last among the messages of a state."""
        if field not in ("user_input", "response"):
            return None
        text = self.value(field, entries.get("messages"))
        return None if text is None else ("messages", text)


FORMS = TraceForms()
