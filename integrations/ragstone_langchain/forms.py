"""How LangChain's values are read: states, messages, documents and structured answers, in every form."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.documents import Document
from pydantic import BaseModel

from ragstone.adapters.blocks import text_of_blocks, type_of, without_thoughts
from ragstone.adapters.fields_by_user import strictly
from ragstone.fields.names import ID_FIELDS, STRONGLY, FieldName, bare
from ragstone.fields.read import Found, Read, looked_into, read
from ragstone.fields.values import ids_in, text_of_document
from ragstone.plain import fields_of, is_list, is_mapping, to_plain
from ragstone_langchain.messages import (
    answer_in,
    as_mapping,
    only_calls_tools,
    question_in,
    read_message,
    read_messages,
    said_in,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

ITSELF = "the output itself"
"""Where a field came from that is the whole of what a run was asked or returned."""
# Agents and `with_structured_output(include_raw=True)` put a structured answer there.
_STRUCTURED = ("structured_response", "parsed")
# In what LangGraph packs a state or its change, and what stands beside it: `invoke(version="v2")`, `Command`.
_PACKED = {"value": "interrupts", "update": "goto"}
_DEPTH = 5


class LangChainForms:
    """How `ragstone.fields.read` sees LangChain's values."""

    def entries(self, value: object) -> Mapping[str, object] | None:
        """The values under names in a state: of a mapping, a pydantic model or a dataclass. None for anything else.

        Messages and Documents, whose "name" or "id" is no one's question, have no entries.
        """
        if value is None or isinstance(value, (str, list, tuple, Document)):
            return None
        entries: Any = as_mapping(value)
        if entries is None:
            if read_message(value) is not None:
                return None
            entries = dict(value) if isinstance(value, BaseModel) else fields_of(value)
        elif "page_content" in entries or ("content" in entries and read_message(value) is not None):
            return None
        if entries is None:
            return None
        for name, beside in _PACKED.items():
            if name in entries and beside in entries:
                return self.entries(entries[name])
        return {name: item for name, item in entries.items() if isinstance(name, str)}

    def value(self, field: FieldName, value: object) -> object | None:
        """A text, or the texts of contexts; None where it cannot be the field."""
        if field == "retrieved_contexts":
            return _texts_of_documents(value)
        if field in ID_FIELDS:
            return ids_in(value)
        asked = field == "user_input"
        if isinstance(value, str):
            return value if asked else without_thoughts(value)
        if (message := read_message(value)) is not None:
            return None if not asked and only_calls_tools(message) else said_in(message)
        if turn := read_messages(value):
            return question_in(turn) if asked else answer_in(turn)
        # A message's content, by itself.
        if is_list(value) and value and all(isinstance(type_of(each), str) for each in value):
            return text_of_blocks([*value]) or None
        return None if asked or not _is_structured(value) else _in_words(value)

    def said(self, field: FieldName, entries: Mapping[str, object]) -> tuple[str, object] | None:
        """What was asked, or answered, last among the messages of a state; a structured answer where it has one."""
        if field == "retrieved_contexts":
            return None
        messages = messages_of(entries)
        text = question_in(messages) if field == "user_input" else answer_in(messages)
        for name in () if field == "user_input" else _STRUCTURED:
            # The message's text may be the structured answer as JSON.
            if entries.get(name) is not None and (text is None or text.lstrip()[:1] in ("{", "[")):
                return name, _in_words(entries[name])
        return None if text is None else ("messages", text)


FORMS = LangChainForms()


def read_whole(value: object, fields: Sequence[FieldName]) -> Read:
    """What a run was asked, or returned: a state, or a text, a message or a conversation that is a field itself.

    Args:
        value: The value.
        fields: The fields that are wanted, first the one that a text is.
    """
    if FORMS.entries(value) is not None and not _is_structured(value):
        return read(value, FORMS, fields)
    found: dict[FieldName, Found] = {}
    conversation = is_list(value) and read_message(value) is None
    for name in fields:
        told = are_documents(value) if name == "retrieved_contexts" else conversation or name == fields[0]
        read_as = FORMS.value(name, value) if told else None
        if read_as is not None:
            found[name] = Found(read_as, ITSELF, value)
    return Read(found)


def messages_of(entries: Mapping[str, object]) -> "Sequence[BaseMessage]":
    """The last turn of the conversation in a state, where a bare text is the human's."""
    held = entries.get("messages")
    return read_messages(("human", held) if isinstance(held, str) else held)


def last_turn(output: object, depth: int = _DEPTH) -> "Sequence[BaseMessage]":
    """The messages of a conversation, or of the one state that holds it, from the last question on."""
    if isinstance(output, str):
        return ()
    entries = FORMS.entries(output)
    if entries is None:
        return read_messages(output)
    if (messages := messages_of(entries)) or not depth:
        return messages
    inner = (last_turn(entries[name], depth - 1) for name in looked_into("response", entries))
    return next(filter(None, inner), ())


def _is_structured(value: object) -> bool:
    """Whether a value is an answer of an app's own class, and no state."""
    entries = FORMS.entries(value) if isinstance(value, BaseModel) else None
    if not entries or "messages" in entries:
        return False
    return all("response" in STRONGLY.get(bare(name), ("response",)) for name in entries)


def _in_words(answer: object) -> str:
    """The text that a person would read of a structured answer: its own where it is one, else all of it as JSON."""
    entries = FORMS.entries(answer) or {}
    text = next(iter(entries.values())) if len(entries) == 1 else read(answer, fields=("response",)).value("response")
    return as_text(text if isinstance(text, str) else answer)


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)


# --- documents -------------------------------------------------------------------------------------------------------


def _texts_of_documents(value: object) -> object | None:
    """The texts of a document or a list of them, with scores or without; None unless all have one."""
    texts = [_text_of(each) for each in _documents_of(value)]
    return None if None in texts else texts


def _documents_of(value: object) -> Sequence[object]:
    if not is_list(value):
        return [value]
    with_score = len(value) == 2 and isinstance(value[1], (int, float)) and not isinstance(value[0], str)
    return [value] if with_score else value


def _text_of(value: object) -> str | None:
    """The text of a document or a hit; what people and models say to each other is none."""
    if isinstance(value, Document):
        return value.page_content
    is_said = not isinstance(value, str) and not is_mapping(value) and read_message(value) is not None
    return None if is_said else text_of_document(value)


def are_documents(value: object) -> bool:
    """Whether a value is a document or a list that holds one, all of which then have to be."""
    return not isinstance(value, str) and any(_is_document(each) for each in _documents_of(value))


def _is_document(value: object) -> bool:
    if is_list(value) and value:
        value = value[0]
    return isinstance(value, Document) or "page_content" in (as_mapping(value) or ())


def documents_in(value: object, where: str) -> list[str] | None:
    """The texts of documents, or of those under a usual name in a state; None where neither is there.

    A text alone under a name is none: it may be what the prompt was given.

    Raises:
        Unreadable: One of the documents has no text.
    """
    if FORMS.entries(value) is None:
        return contexts_of(value, where) if are_documents(value) else None
    found = read(value, FORMS, ("retrieved_contexts",)).found.get("retrieved_contexts")
    return None if found is None or isinstance(found.raw, str) else as_texts(found.value)


def contexts_of(value: object, where: str) -> list[str]:
    """The texts of what someone said are contexts; `Unreadable` if it is nothing of the kind."""
    return as_texts(strictly("retrieved_contexts", value, where, FORMS))


def as_texts(contexts: object) -> list[str]:
    """Contexts as `FORMS` have read them."""
    return cast("list[str]", contexts)
