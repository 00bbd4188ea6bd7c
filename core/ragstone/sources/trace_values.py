"""What stands in stored traces: JSON in texts, serialised objects, messages and documents of every maker."""

import re
from collections.abc import Mapping
from typing import Any

from ragstone.adapters.answering import texts_in
from ragstone.adapters.blocks import text_of_blocks, type_of, without_thoughts
from ragstone.fields.names import ID_FIELDS, FieldName
from ragstone.fields.read import Plain
from ragstone.fields.values import text_of_document
from ragstone.plain import as_dict, as_list, is_list, is_mapping, to_json
from ragstone.sources.cells import python_value
from ragstone.sources.turns import answered_in, asked_in, dumped, message_in, messages_in
from ragstone.sources.written import parsed

# Where the request or the result of a model has what was said.
_SAID = ("messages", "message", "generations", "choices", "text", "content", "output", "prompts", "prompt", "input")
# What a tracer writes of an object that it has no JSON of, such as <Node(id=1)>.
_REPR = re.compile(r"<[\w.]+(\(.*\)| .* at 0x[0-9a-fA-F]+)>", re.DOTALL)
# Beside what a call was given or gave, its tracer writes these.
_BESIDE = ("tags", "metadata", "kwargs")
_PACKED = ("inputs", "outputs", "input", "output")
_DEEPEST = 12


def unpacked(value: object, mime_type: object = None) -> object:
    """What a call was given or gave, out of the mapping in which its tracer packs what is none."""
    value = parsed(value, mime_type)
    names = [name for name in as_dict(value) if name not in _BESIDE]
    return unpacked(as_dict(value)[names[0]]) if len(names) == 1 and names[0] in _PACKED else value


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
    """The arguments of a tool's call, in any maker's form."""
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
        if messages := messages_in(value):
            return asked_in(messages) if field == "user_input" else answered_in(messages)
        blocks = as_list(value)
        return text_of_blocks(blocks) if blocks and all(isinstance(type_of(each), str) for each in blocks) else None

    def said(self, field: FieldName, entries: Mapping[str, object]) -> tuple[str, object] | None:
        """The last question, or answer, among the messages of a state."""
        if field not in ("user_input", "response"):
            return None
        text = self.value(field, entries.get("messages"))
        return None if text is None else ("messages", text)


FORMS = TraceForms()
