"""What a call inside of a run has found: the Documents of retrievers, tools and steps, and what named tools say."""

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from ragstone.adapters.blocks import text_of_blocks, texts_of_results
from ragstone.adapters.fields_by_user import attempt
from ragstone.adapters.runs import Run, Unreadable
from ragstone.fields.read import likely, read
from ragstone.plain import as_dict, is_list, is_mapping
from ragstone_langchain.forms import FORMS, as_text, as_texts, contexts_of, documents_in
from ragstone_langchain.inside import FoundTexts, Inside
from ragstone_langchain.messages import as_mapping, read_message, role_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

FINDING = ("chain", "retriever", "tool")
"""Kinds of runs that may find texts."""
_STR: frozenset[type] = frozenset((str,))


def found_by(run: Run, output: object, tools: Collection[str], id_key: str | None = None) -> FoundTexts | None:
    """The texts that a run inside of another has found, which the app cannot change later, or why they are unreadable.

    Of a retriever and a step these are its Documents, of a tool those in its message's artifact, or as it returned
    them. A tool with one of the names has else its text, where no retriever inside of it found anything.
    With `id_key` the run keeps the Documents' ids.
    """
    if id_key is not None:
        artifact = getattr(read_message(output), "artifact", None) if run.kind == "tool" else None
        run.ids = ids_of(output if artifact is None else artifact, id_key)
    if run.kind == "chain":
        # Most steps return texts, alone or under names.
        if isinstance(output, str) or (is_mapping(output) and _STR.issuperset(map(type, output.values()))):
            return None
        found = attempt(documents_in, output, "")
        return None if isinstance(found, Unreadable) else found
    if run.kind == "retriever":
        return attempt(contexts_of, output, "a retriever's result")
    message = read_message(output)
    content, artifact = (output, output) if message is None else (message.content, getattr(message, "artifact", None))
    named = run.name in tools and not Inside().note(run).searches
    return attempt(_found_by_tool, content, artifact, named=named)


def ids_of(value: object, key: str) -> dict[str, str]:
    """The ids of Documents by their texts: what their metadata has under a key, else their own."""
    ids: dict[str, str] = {}
    for each in value if is_list(value) else [value]:
        document = each[0] if is_list(each) and each else each
        entries = vars(document) if isinstance(document, Document) else as_mapping(document) or {}
        own = as_dict(entries.get("metadata")).get(key)
        own = entries.get("id") if own is None else own
        if own is not None and isinstance(text := entries.get("page_content"), str):
            ids[text] = str(own)
    return ids


def tool_texts(turn: "Sequence[BaseMessage]", tools: Collection[str] = ()) -> list[str] | None:
    """Return the texts that tools retrieved in a turn; None where no tool that retrieves was run.

    A tool retrieves if its artifact holds Documents, or by its name; then its text counts where it has no artifact.
    """
    calls = [call for message in turn for call in getattr(message, "tool_calls", ())]
    names = {call["id"]: call["name"] for call in calls}
    retrieved: list[str] | None = None
    for message in turn:
        if role_of(message) == "tool" and getattr(message, "status", None) != "error":
            named = (message.name or names.get(getattr(message, "tool_call_id", None))) in tools
            texts = _found_by_tool(message.content, getattr(message, "artifact", None), named=named)
            if texts is not None:
                retrieved = list(dict.fromkeys([*(retrieved or ()), *texts]))
    return retrieved


def _found_by_tool(content: object, artifact: object, *, named: bool) -> list[str] | None:
    """Return the texts of the Documents that a tool keeps, else what it says if it is named; None if it found none."""
    kept = attempt(documents_in, artifact, "a tool's artifact")
    if isinstance(kept, Unreadable) and is_list(artifact):
        raise kept
    if isinstance(kept, list) and kept:
        return kept
    if not named:
        return None
    return [] if artifact == [] else _passages(content)


def _passages(content: object) -> list[str]:
    """The texts of a tool's answer: one of each block or, also as JSON, of each hit of a search; else one."""
    if (passages := texts_of_results(content)) is not None:
        return passages
    text = text_of_blocks(content)
    hits = content
    with suppress(ValueError):
        hits = content if text is None else json.loads(text)
    found = None if isinstance(hits, str) else _hits(hits)
    return [as_text(content) if text is None else text] if found is None else found


def _hits(value: object) -> list[str] | None:
    """The texts of a search's hits: in a list, under a usual name, or in the only list that there is."""
    reading = read({"documents": value} if is_list(value) else value, FORMS, ("retrieved_contexts",))
    if (found := reading.found.get("retrieved_contexts")) is not None:
        return as_texts(found.value)
    name = likely(reading, "retrieved_contexts", FORMS)
    hits = None if name is None else reading.unread[name]
    return as_texts(FORMS.value("retrieved_contexts", hits)) if is_list(hits) else None
