"""What an app was asked: the question in the arguments of the call that began it."""

import inspect
from collections.abc import Mapping, Sequence
from typing import cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.schema import QueryBundle
from llama_index.core.workflow import StartEvent

_QUESTIONS = ("user_msg", "query", "question", "message", "input")  # of a workflow's start event, in this order


def question_of(arguments: inspect.BoundArguments) -> str | None:
    """Return the question of a call to a query or chat engine: its first argument.

    Example:
        >>> def query(str_or_query_bundle): ...
        >>> question_of(inspect.signature(query).bind(QueryBundle("Who wrote Emma?")))
        'Who wrote Emma?'
    """
    return next((text_in(value) for value in cast("dict[str, object]", arguments.arguments).values()), None)


def question_of_run(arguments: inspect.BoundArguments) -> str | None:
    """Return the question of a workflow's run, which may be an agent's.

    It is the start event's `user_msg`, `query`, `question`, `message` or `input`; else the user's last message in its
    `chat_history`; else its only text, whatever its name.

    Example:
        >>> def run(start_event=None, **kwargs): ...
        >>> question_of_run(inspect.signature(run).bind(start_event=StartEvent(topic="Emma", most=3)))
        'Emma'
    """
    given = cast("dict[str, object]", arguments.arguments)
    start = given.get("start_event")
    fields = _fields(start) if isinstance(start, StartEvent) else given.get("kwargs")
    if not isinstance(fields, Mapping):
        return None
    known = cast("Mapping[str, object]", fields)
    for name in _QUESTIONS:
        if (text := text_in(known.get(name))) is not None:
            return text
    if (text := _last_said(known.get("chat_history"))) is not None:
        return text
    texts = [value for value in known.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def text_in(value: object) -> str | None:
    """Return a question's text; None: it has none."""
    if isinstance(value, QueryBundle):
        value = value.query_str
    elif isinstance(value, ChatMessage):
        value = value.content
    return value if isinstance(value, str) else None


def _fields(event: StartEvent) -> dict[str, object]:
    """Return the fields that the event's class declares, and those given to it besides."""
    declared = {name: cast("object", getattr(event, name, None)) for name in type(event).model_fields}
    return {**declared, **cast("Mapping[str, object]", dict(event.items()))}


def _last_said(history: object) -> str | None:
    if not isinstance(history, Sequence):
        return None
    for message in reversed(cast("Sequence[object]", history)):
        if isinstance(message, ChatMessage) and message.role == MessageRole.USER:
            return message.content
    return None
