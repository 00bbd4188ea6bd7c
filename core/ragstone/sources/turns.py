"""Conversations in rows: lists of turns, whatever the sides and their words are called."""

from collections.abc import Mapping, Sequence

from ragstone.fields.names import FieldName
from ragstone.plain import is_list, is_mapping

SILENT = ("system", "developer", "tool", "function")
"""Roles of turns that the user did not see."""
_SIDES = ("role", "speaker", "from", "author", "type")
_WORDS = ("content", "text", "value", "message")
_ROLES: Mapping[object, str] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "bot", "gpt", "model", "chatbot"), "assistant"),
    **dict.fromkeys(SILENT, ""),
}

Turns = Sequence[Mapping[str, str]]


def turns_in(value: object) -> Turns | None:
    """The turns of a conversation that have a text, without those that the user did not see; None where it is none.

    Example:
        >>> turns_in([{"speaker": "user", "text": "Why?"}, {"speaker": "agent", "text": "So."}])
        [{'role': 'user', 'content': 'Why?'}, {'role': 'assistant', 'content': 'So.'}]
    """
    if not is_list(value) or not value:
        return None
    turns: list[Mapping[str, str]] = []
    for each in value:
        if not is_mapping(each):
            return None
        sides = (str(each[name]).lower() for name in _SIDES if name in each)
        role = _ROLES.get(next(sides, None))
        words = [each[name] for name in _WORDS if name in each]
        text = _text_of(words[0]) if words else ""
        if role is None or text is None:
            return None
        if role and text:
            turns.append({"role": role, "content": text})
    return turns


def _text_of(words: object) -> str | None:
    if isinstance(words, str):
        return words
    # Loaded when first used: few rows have messages of blocks.
    from ragstone.adapters.blocks import text_of_blocks

    return text_of_blocks(words)


def said_last(field: FieldName, turns: Turns) -> str | None:
    """The last thing that the user said, or the app's answer to it."""
    _, asked, answers = _parts(turns)
    if field == "user_input":
        return asked
    return answers[-1]["content"] if field == "response" and answers else None


def _parts(turns: Turns) -> tuple[Turns, str | None, Turns]:
    """The turns before the last one of the user, its text, and those behind it."""
    last = max((i for i, turn in enumerate(turns) if turn["role"] == "user"), default=None)
    if last is None:
        return (), None, turns
    return turns[:last], turns[last]["content"], turns[last + 1 :]


def around(value: object) -> Mapping[FieldName, object]:
    """What a conversation says besides its last question: the turns before it, and the answer behind it."""
    before, asked, answers = _parts(turns_in(value) or ())
    said: dict[FieldName, object] = {"history": before} if before and asked is not None else {}
    return {**said, "response": answers[-1]["content"]} if answers else said
