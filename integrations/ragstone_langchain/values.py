"""Looking into what was handed over, with nothing changed and nothing turned into text."""

import dataclasses
from collections.abc import Mapping
from typing import cast

from pydantic import BaseModel

from ragstone_langchain.messages import read_message, unwrapped

_SHOWN = 12  # keys of a mapping that a message lists


class Unreadable(ValueError):  # noqa: N818 - it becomes an Unscored
    """Says which value is not what it should be, and what it is."""


def entries_of(value: object) -> dict[str, object] | None:
    """Return what stands under names in a mapping, a pydantic model or a dataclass; None for anything else.

    These are the forms that a graph's state has. None counts as absent. Messages and Documents, whose "name" or
    "id" is no one's question, have none.

    Example:
        >>> entries_of({"question": "Why?", "answer": None})
        {'question': 'Why?'}
        >>> entries_of("Why?")
    """
    given: Mapping[object, object]
    if read_message(value) is not None or _is_document(value):
        return None
    if isinstance(value, Mapping):
        given = unwrapped(cast("Mapping[object, object]", value))
    elif isinstance(value, BaseModel):
        stored = {**vars(value), **(value.model_extra or {})}  # to ask for a deprecated field by its name would warn
        given = {name: stored.get(name) for name in (*type(value).model_fields, *(value.model_extra or ()))}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        given = {name: getattr(cast("object", value), name, None) for name in names}
        if set(given) == {"value", "interrupts"}:  # LangGraph's invoke(version="v2") packs the state
            return entries_of(given["value"])
    else:
        return None
    return {name: item for name, item in given.items() if isinstance(name, str) and item is not None}


def _is_document(value: object) -> bool:
    if isinstance(value, Mapping):
        return "page_content" in unwrapped(cast("Mapping[object, object]", value))
    from langchain_core.documents import Document  # not needed where nothing but mappings is handed over

    return isinstance(value, Document)


def kind(value: object) -> str:
    """Return what a value is, in words for a message: its type and, where it has them, its keys.

    Example:
        >>> kind(7), kind({"question": "Why?"}), kind({})
        ('int', "dict with 'question'", 'an empty dict')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    if not isinstance(value, Mapping):
        return name
    keys = list(cast("Mapping[object, object]", value))
    if not keys:
        return f"an empty {name}"
    shown = ", ".join(repr(key[:40]) if isinstance(key, str) else type(key).__name__ for key in keys[:_SHOWN])
    return f"{name} with {shown}" + (", ..." if len(keys) > _SHOWN else "")


def kind_of_keys(value: object) -> str:
    """Return what a value is, with the keys that it has as a mapping, a pydantic model or a dataclass.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class State:
        ...     topic: str
        >>> kind_of_keys(State("Emma"))
        "State with 'topic'"
    """
    shown, entries = kind(value), entries_of(value)
    if entries is None or isinstance(value, Mapping):
        return shown
    return kind(entries).replace("dict", shown, 1)
