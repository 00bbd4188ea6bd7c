"""The texts of retrieved contexts, in every form in which they are handed over."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import cast

from ragstone_langchain.messages import Message, this_turn, unwrapped
from ragstone_langchain.values import Unreadable, kind


def document_text(value: object, where: str) -> str | None:
    """Return a document's text; None if `value` is no document (an object, or a mapping with "page_content").

    Raises:
        Unreadable: Its content is not text.

    Example:
        >>> document_text({"page_content": "Emma is a novel.", "metadata": {}}, "context")
        'Emma is a novel.'
        >>> document_text({"text": "Emma is a novel."}, "context")
    """
    if isinstance(value, Mapping):
        fields = unwrapped(cast("Mapping[object, object]", value))
        if "page_content" not in fields:
            return None
        content = fields["page_content"]
    else:
        from langchain_core.documents import Document  # not needed where nothing but text is handed over

        if not isinstance(value, Document):
            return None
        content = cast("object", value.page_content)
    if not isinstance(content, str):
        raise Unreadable(f"{where}: its page_content is {kind(content)}, not text")
    return content


def context_text(value: object, where: str) -> str:
    """Return the text of one context: a text, a document, or a document with its score.

    Raises:
        Unreadable: It is none of these.

    Example:
        >>> context_text(({"page_content": "Emma is a novel."}, 0.7), "context[0]")
        'Emma is a novel.'
    """
    if isinstance(value, str):
        return value
    text = document_text(_scored(value), where)
    if text is None:
        raise Unreadable(f"{where} is {kind(value)}, not text or a Document")
    return text


def _scored(value: object) -> object:
    """Return the document of a (Document, score) pair, as `similarity_search_with_score` has them."""
    pair = _items(value)
    return pair[0] if len(pair) == 2 and isinstance(pair[1], Real) else value


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else ()


def is_document(value: object) -> bool:
    """Say whether a value is a document, or a document with its score."""
    try:
        return document_text(_scored(value), "") is not None
    except Unreadable:
        return True  # a broken one; whoever reads it will say so


def are_documents(value: object) -> bool:
    """Say whether a value is a document or a list of nothing but documents, at least one.

    Example:
        >>> are_documents([{"page_content": "Emma is a novel."}]), are_documents(["Emma is a novel."])
        (True, False)
    """
    if is_document(value):
        return True
    items = _items(value)
    return bool(items) and all(map(is_document, items))


def context_texts(value: object, where: str) -> list[str] | None:
    """Return the texts of what is meant to be contexts: one, or a list of them. None for a mapping of other things.

    Raises:
        Unreadable: It is none of these, or an item of the list is not; the message names it.

    Example:
        >>> context_texts(["Emma is a novel.", {"page_content": "It is long."}], "context")
        ['Emma is a novel.', 'It is long.']
        >>> context_texts(["Emma is a novel.", 7], "context")
        Traceback (most recent call last):
        ragstone_langchain.values.Unreadable: context[1] is int, not text or a Document
    """
    if isinstance(value, str) or is_document(value):
        return [context_text(value, where)]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        items = cast("Sequence[object]", value)
        return [context_text(item, f"{where}[{i}]") for i, item in enumerate(items)]
    return None


def turn_texts(messages: Sequence[Message], retriever_tools: Collection[str]) -> list[str] | None:
    """Return the texts that tools retrieved in this turn; None where no tool that retrieves was run.

    A tool retrieves if its artifact holds Documents, or if its name says so; then its message's text is what was
    retrieved where it has no artifact. A tool that failed retrieved nothing.

    Args:
        messages: A conversation.
        retriever_tools: Names of the tools that retrieve and keep no Documents.

    Example:
        >>> turn_texts([Message("human", "Who?"), Message("tool", "Jane Austen.", name="search")], {"search"})
        ['Jane Austen.']
        >>> turn_texts([Message("human", "Who?"), Message("tool", "Jane Austen.", name="search")], ())
    """
    found: list[str] | None = None
    for message in this_turn(messages):
        if message.role != "tool" or message.failed:
            continue
        texts, named = _artifact_texts(message.artifact), message.name in retriever_tools
        if named and texts is None:
            texts = [message.text]
        if named or texts:
            found = [*(found or ()), *(texts or ())]
    return None if found is None else once_each(found)


def _artifact_texts(artifact: object) -> list[str] | None:
    """Return the texts of the documents in a tool's artifact; [] for an empty list, None where it has none."""
    if is_document(artifact):
        return [context_text(artifact, "a tool's artifact")]
    texts = [context_text(item, "a tool's artifact") for item in _items(artifact) if is_document(item)]
    nothing = isinstance(artifact, (list, tuple)) and not artifact
    return texts if texts or nothing else None


def once_each(texts: Iterable[str]) -> list[str]:
    """Return the texts without repetitions, in order: several searches may find the same."""
    return list(dict.fromkeys(texts))
