"""From what was gathered of a run to the question, contexts and answer in it."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ragstone_langchain.documents import are_documents, context_texts, once_each, turn_texts
from ragstone_langchain.messages import Message, read_message, read_messages
from ragstone_langchain.places import (
    USUAL_NAMES,
    TextPlace,
    contexts_of,
    find_contexts,
    find_text,
    response_place,
    user_input_place,
)
from ragstone_langchain.values import Unreadable, entries_of

if TYPE_CHECKING:
    from ragstone_langchain.recorder import LiveRun

_CONTEXTS = USUAL_NAMES["retrieved_contexts"]
_QUESTION = user_input_place()
_QUESTION_BY_NAME = replace(_QUESTION, lone=False)
_ANSWER = response_place()


def this_turn(value: object) -> object:
    """Return a state or conversation without the earlier turns, so that a long history costs nothing.

    Example:
        >>> this_turn({"messages": [("user", "Hi."), ("ai", "Hello."), ("user", "Why?"), ("ai", "So.")], "k": 1})
        {'messages': [('user', 'Why?'), ('ai', 'So.')], 'k': 1}
    """
    if isinstance(value, list):
        return _last_turn(cast("list[object]", value))
    if value is None or isinstance(value, str) or (entries := entries_of(value)) is None:
        return value
    messages = entries.get("messages")
    return (
        {**entries, "messages": _last_turn(cast("list[object]", messages))} if isinstance(messages, list) else entries
    )


def _last_turn(messages: list[object]) -> list[object]:
    for i in range(len(messages) - 1, -1, -1):
        message = read_message(messages[i])
        if message is None:
            break
        if message.role == "human":
            return messages[i:]
    return messages


def question_given(inputs: object) -> str | None:
    """Return the question in a run's inputs: the inputs as a whole, in messages, or under a usual name.

    Example:
        >>> question_given({"question": "Who wrote Emma?", "language": "en"})
        'Who wrote Emma?'
        >>> question_given({"messages": [("user", "Who wrote Emma?")]})
        'Who wrote Emma?'
    """
    return _text(_QUESTION_BY_NAME, inputs, own=True)


def question_elsewhere(outputs: object, inputs: object) -> str | None:
    """Return the question where it is in no usual place: in the outputs, as of a resumed graph, or lone in the inputs.

    Example:
        >>> question_elsewhere({"question": "Who?", "answer": "Jane."}, None)
        'Who?'
        >>> question_elsewhere("Jane.", {"q": "Who?"})
        'Who?'
    """
    text = _text(_QUESTION, outputs, own=False)
    return _text(_QUESTION, inputs, own=True) if text is None else text


def answer_of(outputs: object) -> str | None:
    """Return the answer in a run's outputs.

    Example:
        >>> answer_of({"question": "Who?", "answer": ("ai", "Jane.")})
        'Jane.'
    """
    return _text(_ANSWER, outputs, own=True)


def _text(place: TextPlace, value: object, *, own: bool) -> str | None:
    try:
        return find_text(place, value, "", own=own)
    except Unreadable:
        return None


def waits_for_tools(outputs: object, resumable: bool) -> bool:
    """Say whether an agent has stopped before the tools that it calls, as `interrupt_before` makes it.

    A last message of text and tool calls is an answer, except of a graph that can be resumed: nothing says of that
    whether it has ended.

    Args:
        outputs: What the run returned.
        resumable: Whether the run is of a thread that a graph may be resumed on.

    Example:
        >>> call = {"name": "search", "args": {}, "id": "1"}
        >>> waits_for_tools({"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}, False)
        True
        >>> waits_for_tools({"role": "assistant", "content": "Jane did.", "tool_calls": [call]}, True)
        False
    """
    messages = _messages(outputs)
    if not messages or messages[-1].role != "ai" or not messages[-1].calls_tools:
        return False
    return not messages[-1].is_answer or (resumable and read_message(outputs) is None)


def _messages(state: object) -> Sequence[Message]:
    if state is None or isinstance(state, str):
        return ()
    if isinstance(state, Mapping):
        return read_messages(cast("Mapping[str, object]", state).get("messages"), named=True)
    return read_messages(state)


def contexts_used(run: "LiveRun", inputs: object, outputs: object, tools: Collection[str]) -> Sequence[str]:
    """Return the contexts of a run: the first of these places that holds any.

    1. What the app named itself by the event `ragstone.contexts`.
    2. Documents or a list of texts in the outputs, under a usual name: a graph's final state.
    3. What retrievers and tools returned, each text once, in the order of their start.
    4. Documents that a step passed on, where no retriever was run.
    5. One text in the outputs under a usual name, then whatever the inputs hold.

    Args:
        run: What is known of the run.
        inputs: What it was given.
        outputs: What it returned.
        tools: Names of the tools whose messages are contexts.
    """
    named = run.items("event")
    if named:
        return once_each(text for _, texts in named for text in texts)
    # An artifact in this turn's messages may also be of a run before, which an interrupt has stopped.
    artifacts = turn_texts(_messages(outputs), ()) or ()
    searches = sorted(run.items("search"), key=lambda item: item[0].order)
    return (
        _stated(outputs)
        or once_each([*(text for _, texts in searches for text in texts), *artifacts])
        or _passed_on(run)
        or _anywhere(outputs, tools)
        or _anywhere(inputs, tools)
    )


def _passed_on(run: "LiveRun") -> list[str]:
    """Return the texts that steps passed on, each once; a step that passes on some of those before has chosen."""
    known: list[str] = []
    for _, texts in run.items("step"):
        known = list(dict.fromkeys(texts if set(texts) <= set(known) else [*known, *texts]))
    return known


def _stated(outputs: object) -> Sequence[str]:
    if isinstance(outputs, Mapping):
        entries = cast("Mapping[str, object]", outputs).items()
        # One text is what a prompt was given: the documents one by one, where there are any, tell more.
        outputs = {name: value for name, value in entries if name != "messages" and not isinstance(value, str)}
    return _anywhere(outputs, ())


def _anywhere(value: object, tools: Collection[str]) -> Sequence[str]:
    if value is None or isinstance(value, str):
        return ()
    try:
        return find_contexts(_CONTEXTS, value, "", retriever_tools=tools) or ()
    except Unreadable:
        return ()


def documents_passed(outputs: object) -> Sequence[str]:
    """Return the texts of the documents that a step passes on: alone, or under a usual name; none if there are none.

    Example:
        >>> documents_passed({"documents": [{"page_content": "Emma is a novel."}], "question": "Who?"})
        ['Emma is a novel.']
    """
    command: object = getattr(sys.modules.get("langgraph.types"), "Command", None)  # whoever made one has imported it
    if isinstance(command, type) and isinstance(outputs, command):
        outputs = getattr(outputs, "update", None)
    if isinstance(outputs, list):
        return _texts(cast("object", outputs)) if are_documents(cast("object", outputs)) else ()
    if isinstance(outputs, dict):
        entries = cast("dict[str, object]", outputs)
        for name in _CONTEXTS:
            # One text may be anything; a list under such a name is of documents or their texts.
            if name in entries and not isinstance(entries[name], str) and (texts := _texts(entries[name])):
                return texts
    return ()


def _texts(value: object) -> Sequence[str]:
    try:
        return context_texts(value, "") or ()
    except Unreadable:
        return ()


def tool_documents(output: object) -> Sequence[str]:
    """Return the texts of the documents that a tool returned: as its message's artifact, or as they are."""
    message = read_message(output)
    if message is None:
        return _texts(output) if are_documents(output) else ()
    return turn_texts([message], ()) or ()


def tool_text(output: object) -> str | None:
    """Return the text that a tool returned; None where it failed or returned something else."""
    if isinstance(output, str):
        return output
    message = read_message(output)
    return None if message is None or message.failed else message.text


def contexts_told(data: object) -> Sequence[str]:
    """Return the contexts that came with the event `ragstone.contexts`: texts, Documents, or a mapping that holds them.

    Raises:
        Unreadable: They are none of these.

    Example:
        >>> contexts_told({"documents": ["Emma is a novel."]})
        ['Emma is a novel.']
    """
    texts = contexts_of(data, "ragstone.contexts")
    if texts is None:
        raise Unreadable("ragstone.contexts came with neither texts nor Documents")
    return texts
