"""What stands in a row or a cell: texts, lists of contexts in every form, turns, and what is missing."""

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

from ragstone.fields.names import ID_FIELDS, TEXTS, FieldName, bare
from ragstone.fields.read import Found, Plain
from ragstone.fields.values import ids_in, text_of_document
from ragstone.plain import is_list, is_mapping
from ragstone.sample import name_list
from ragstone.sources.written import json_value, written_value

# A list of texts or mappings as Python writes it, or of what it has no literal for: Document(...), array([...]).
_LIST_BEGINS = re.compile(
    r"(?:array\(\s*)?\[\s*(?:[bBrRuU]?['\"]|\{\s*['\"]|\[\s*['\"]|None\s*[,\]]|[A-Za-z_][\w.]*\((?:\w+\s*=|['\"\[]))"
)
# DeepEval writes the texts of this column with "|" between them.
_DEEPEVAL_CONTEXTS = "retrievalcontext"
CONVERSATIONS = ("messages", "conversation", "conversations", "turns")
"""Bare names of lists of turns."""
LOGGED = ("request", "input", "inputs", *CONVERSATIONS)
"""Bare names under which loggers keep what went in, as JSON or as Python writes it."""
# What programs write for nothing, where they make texts of all cells.
_NOTHING = ("none", "nan", "null", "<na>")
# A text with one of these may be several ids, or a list that cannot be read.
_SEVERAL = re.compile(r"[;,|\n]|^\s*[\[{]")
_NEVER_MISSING = (str, list, dict, int, bool)


class _Cells(Plain):
    """The values of rows and cells: what is missing is none, and a text may be the list of contexts."""

    def value(self, field: FieldName, value: object) -> object | None:
        """A value of any kind, which the sample refuses where it is no text, so that the row says so."""
        if isinstance(value, str):
            return value
        value = python_value(value)
        if field in ID_FIELDS:
            return ids_in(_items(value))
        if field == "retrieved_contexts":
            items = _items(value)
            if not is_list(items):
                # A number says how many there were.
                return None if isinstance(items, (int, float)) else value
            return [each if isinstance(each, str) else _text_or_item(each) for each in items]
        if is_list(value) and value and is_mapping(value[0]) and field in ("user_input", "response"):
            return _last_said(field, value)
        return None if is_mapping(value) and field not in ("history", "metadata", "id") else value

    def said(self, field: FieldName, entries: Mapping[str, object]) -> tuple[str, object] | None:
        """The last message of a list."""
        for name in entries if field in ("user_input", "response") else ():
            messages = _items(entries[name])
            # A text there may be a transcript, of which nothing says who speaks.
            is_said = bare(name) in CONVERSATIONS and is_list(messages)
            if is_said and isinstance(said := _last_said(field, messages), str):
                return name, said
        return None


def _last_said(field: FieldName, value: object) -> object:
    """The last message of a conversation; anything else as it is."""
    # Loaded when first used.
    from ragstone.sources.turns import answered_in, asked_in, messages_in

    messages = messages_in(value)
    said = asked_in if field == "user_input" else answered_in
    return said(messages) if messages else value


CELLS = _Cells()


def _text_or_item(item: object) -> object:
    if is_list(item) and len(item) == 2 and isinstance(item[0], str) and is_list(item[1]):
        # A title and the sentences behind it, as HotpotQA has them.
        sentences = [each.strip() for each in item[1] if isinstance(each, str)]
        return " ".join(sentences) if len(sentences) == len(item[1]) else item
    text = text_of_document(item)
    return item if text is None else text


def field_value(field: FieldName, found: Found, *, table: bool) -> object:
    """A field's value as the sample takes it, of what was found in a row."""
    value = found.value
    if field in ("user_input", "response"):
        return value
    if field == "id":
        # A column of whole numbers of which one is missing comes as floats.
        value = int(value) if table and isinstance(value, float) and value.is_integer() else value
        return value if isinstance(value, bool) or is_list(value) or is_mapping(value) else str(value)
    if field in ID_FIELDS:
        return _ids(found)
    if field == "history":
        return _history(value)
    if field == "metadata":
        return _metadata(value, found.name)
    if field == "retrieved_contexts":
        return contexts_in(value, found.name)
    # Of ground_truths and targets there is one.
    if field == "reference" and is_list(value) and len(value) == 1:
        return _text_or_item(value[0])
    return value


def _ids(found: Found) -> list[str] | None:
    """The ids that a value holds; a text is one id, or a list of them as JSON or Python writes it."""
    value = found.value
    if isinstance(value, str) and value.strip().lower() in _NOTHING:
        return None
    ids = ids_in(_contexts_in_cell(value, found.name) if isinstance(value, str) else _items(value))
    said = f"{found.name}: {found.raw!r:.80}"
    if ids is None:
        raise ValueError(f"{said} holds no ids: they are texts or whole numbers, or a list of them")
    if any(_SEVERAL.search(each) if ids == [value] else each.startswith(('["', "['")) for each in ids):
        raise ValueError(f'{said} may be several ids; write a list, such as ["a", "b"], also of one')
    return ids


def contexts_in(value: object, name: str) -> object:
    """The texts of contexts, of a list or a cell of text.

    Raises:
        ValueError: One is a document without a text under a usual name.
    """
    if isinstance(value, str):
        value = [] if value.strip().lower() in _NOTHING else _contexts_in_cell(value, name)
    items = value
    if not is_list(items):
        return items
    texts = [_text_or_item(each) for each in items]
    for i, each in enumerate(texts):
        if is_mapping(each):
            raise ValueError(
                f"{name}[{i}]: is a document with {name_list(list(each))}; its text is read under {', '.join(TEXTS)}"
            )
    return texts


def _items(value: object) -> object:
    # Pandas reads Parquet into arrays of numpy.
    return getattr(value, "tolist", lambda: value)()


def python_value(value: object) -> Any:  # noqa: ANN401 - it may be anything, as in the user's row
    """A cell's value as Python's own; None where it is missing (NaN, NA, NaT)."""
    if type(value) in _NEVER_MISSING:
        return value
    # What pandas has for nothing.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    # Numpy's numbers have it.
    if isinstance(value, Real) and hasattr(value, "item"):
        scalar: Any = value
        value = scalar.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _contexts_in_cell(text: str, column: str) -> object:
    """The contexts in a cell of text: a list of JSON or of Python, DeepEval's list with "|", or the only one."""
    stripped = text.strip()
    if stripped.startswith(("[", "(")) and is_list(found := written_value(stripped)):
        return found
    if _LIST_BEGINS.match(stripped):
        raise ValueError(
            f"{column}: begins as a list and is none: it was cut off (spreadsheets cut a cell at 32,767 "
            "characters), or is one of numpy's or of objects; write it as JSON (json.dumps)"
        )
    return text.split("|") if bare(column) == _DEEPEVAL_CONTEXTS else [text]


def _history(value: object) -> object:
    """The turns that a value holds, which may be JSON text, without those of the system and of tools."""
    turns = json_value(value) if isinstance(value, str) else _items(value)
    if not is_list(turns) or not all(map(is_mapping, turns)):
        raise ValueError('history: write a list such as [{"role": "user", "content": "Why?"}], or its JSON as text')
    # Loaded when first used.
    from ragstone.sources.turns import turns_in

    found = turns_in(turns)
    return turns if found is None else found


def _metadata(value: object, name: str) -> object:
    """An object, which may be JSON text; any other value under its name."""
    found = json_value(value) if isinstance(value, str) else value
    return found if is_mapping(found) else {name: value}
