"""The blocks of which providers of models compose a message: one table of those that hold text."""

from collections.abc import Mapping

from ragstone.judging.reply import find_thoughts
from ragstone.plain import as_list, is_list, is_mapping

# Before these characters a block of text begins no new paragraph.
_GOES_ON = ".,;:!?)]}%'\"\u2019\u201d\u3002\uff0c"

_TEXTS: Mapping[object, str] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}
"""Types of blocks that say something, and the name of their text. Thoughts, images and sound are no text."""

_CALLS = ("tool_use", "tool_call", "function_call")


def type_of(block: object) -> object:
    """A block's type; None where it has none."""
    return block.get("type") if is_mapping(block) else None


def text_of_block(block: object) -> str | None:
    """The text that a block says; None where it says none."""
    text = block.get(_TEXTS.get(type_of(block), "")) if is_mapping(block) else block
    return text if isinstance(text, str) else None


def text_of_blocks(content: object, *, pieces: bool = False) -> str | None:
    """The text of a message's content: a text, or blocks, each a paragraph; None for anything else.

    Args:
        content: The content. None, as a message has it that only calls tools, is an empty text.
        pieces: Whether blocks without an "index" are parts of one text, as a stream has them.

    Example:
        >>> text_of_blocks([{"type": "thinking", "thinking": "Emma?"}, {"type": "output_text", "text": "Jane Austen."}])
        'Jane Austen.'
    """
    if isinstance(content, str) or content is None:
        return content or ""
    if not is_list(content) or isinstance(content, tuple):
        return None
    joined = ""
    for block in content:
        if text := text_of_block(block):
            one_text = pieces and not (is_mapping(block) and "index" in block)
            joined += text if not joined or one_text or _goes_on(joined[-1], text[0]) else f"\n\n{text}"
    return joined


def _goes_on(last: str, first: str) -> bool:
    """Say, by the characters at the seam, whether a block is the same paragraph as the one before, cut in two."""
    within_words = last.isalnum() and not first.isupper() and first not in "#*-"
    return last.isspace() or first.isspace() or first in _GOES_ON or within_words


def calls_tools(content: object) -> bool:
    """Whether a message's content has a block that calls a tool."""
    return any(type_of(block) in _CALLS for block in as_list(content))


def texts_of_results(content: object) -> list[str] | None:
    """The texts of what a tool returned as blocks, one for each block: passages, not paragraphs of one text.

    None where it is not a list of blocks that hold text.

    Example:
        >>> texts_of_results([{"type": "search_result", "content": [{"type": "text", "text": "Emma is a novel."}]}])
        ['Emma is a novel.']
    """
    if not is_list(content) or not content:
        return None
    texts: list[str] = []
    for block in content:
        if is_mapping(block) and type_of(block) == "search_result":
            text = text_of_blocks(block.get("content"))
        else:
            text = text_of_block(block)
        if text is None:
            return None
        texts.append(text)
    return texts


def without_thoughts(text: str) -> str:
    """An answer's text without the thoughts in it; a text that quotes a mark stays whole."""
    thoughts = find_thoughts(text) if any(mark in text for mark in ("</", "[/", "<|")) and "`</" not in text else None
    return text if thoughts is None else "".join([*thoughts[1], text[thoughts[0] :].lstrip()])
