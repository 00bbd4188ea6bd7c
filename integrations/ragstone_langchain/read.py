"""What a run becomes: question, contexts and answer where LangChain's apps say them, or why it is no sample.

Live runs, LangSmith's runs and what evaluators are called with are read alike. docs/langchain.md has the order.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from ragstone.adapters.fields_by_user import (
    BY_USER,
    FoundFields,
    by_function,
    by_name,
    check_fields,
    draft_of,
    names_of,
    strictly,
)
from ragstone.adapters.runs import CANCELLED, Draft, Fields, Run, Searched, Skipped, Unreadable
from ragstone.fields.names import FieldName
from ragstone.fields.read import Found, Read, likely, read
from ragstone.options import checked
from ragstone.plain import as_list, is_list, is_mapping
from ragstone.sample import Sample, SampleField, Turn
from ragstone_langchain.forms import FORMS, ITSELF, last_turn, read_whole
from ragstone_langchain.inside import Inside, is_langgraph_s, passed_on, texts_of
from ragstone_langchain.messages import (
    MEMORIES,
    asks_for_tools,
    only_calls_tools,
    read_message,
    role_of,
    said_in,
    spoken_turns,
)
from ragstone_langchain.searches import ids_of, tool_texts

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_ASKED: Sequence[FieldName] = ("user_input", "retrieved_contexts")
_ANSWERED: Sequence[FieldName] = ("response", "retrieved_contexts", "user_input")
_REFERENCES: Sequence[FieldName] = ("reference", "response")
_PLACES: Mapping[SampleField, Sequence[str]] = {
    "user_input": ("inputs", "outputs", "reference_outputs"),
    "response": ("outputs",),
    "retrieved_contexts": ("outputs", "inputs", "reference_outputs"),
    "reference": ("reference_outputs", "inputs", "outputs"),
}
"""Where a field is that the user has named, its own place first: the same name may stand in several."""


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The options of reading: see `RagEvaluator` and `MonitorHandler`."""

    fields: Fields[object] | None = None
    retriever_tools: Collection[str] = ()
    id_key: str | None = None

    def __post_init__(self) -> None:
        check_fields(self.fields)
        object.__setattr__(self, "retriever_tools", checked("retriever_tools", self.retriever_tools, frozenset[str]))


@dataclass(slots=True, eq=False)
class Ended:
    """A run that has ended, and what the calls inside of it have come to; inputs and outputs are read once."""

    run: Run
    inside: Inside
    reading: ReadingOptions
    reference: object = None
    asked: Read = field(init=False)
    answered: Read = field(init=False)
    turn: "Sequence[BaseMessage]" = field(init=False)

    def __post_init__(self) -> None:
        self.asked = read_whole(self.run.inputs, _ASKED)
        self.answered = read_whole(self.run.output, _ANSWERED)
        self.turn = last_turn(self.run.output)


def sample_of_run(ended: Ended, about: Mapping[str, Any]) -> Draft | Skipped:
    """Read a run that has ended; raise `Unreadable` where the user's function fails.

    Args:
        ended: The run.
        about: The sample's `id` and `metadata`, where the user's function gives none.
    """
    if (reason := _why_no_sample(ended)) is not None:
        return Skipped(reason)
    fields = fields_of_run(ended)
    if fields is None:
        return Skipped("declined")
    if isinstance(fields, Sample):
        own = {"id": fields.id or about["id"], "metadata": {**about["metadata"], **fields.metadata}}
        return Draft(fields.model_copy(update=own), dict.fromkeys(fields.model_fields_set, BY_USER))
    found = {name: each for name, each in fields.items() if isinstance(each, Found)}
    if "response" not in found and ended.run.error is None and not callable(ended.reading.fields):
        if "user_input" in found:
            names = ended.answered.conflicts.get("response") or sorted(FORMS.entries(ended.run.output) or ())
            return Skipped("no_answer", tuple(names), likely(ended.answered, "response", FORMS) or "")
        contexts, asked = found.get("retrieved_contexts"), ended.asked
        if contexts is None or not contexts.value:
            return Skipped("nothing_found")
        names = asked.conflicts.get("user_input") or tuple(asked.unread)
        return Skipped("no_question", tuple(names), likely(asked, "user_input", FORMS) or "")
    for name, value in about.items():
        given = found[name].value if name in found else None
        found[name] = Found({**value, **given} if given and is_mapping(given) else given or value, "")
    return draft_of_run(found, ended)


def draft_of_run(fields: FoundFields, ended: Ended) -> Draft:
    """The sample that has these fields, and the turns before its question."""
    if "history" not in fields and (history := _history_of_run(ended, fields)):
        fields = {**fields, "history": Found(history, "")}
    draft = draft_of(fields, ended.answered, FORMS)
    if (key := ended.reading.id_key) is not None:
        draft = replace(draft, ids=_ids_of_run(fields, ended, key))
    differ = [*ended.asked.conflicts.get("user_input", ())]
    if "retrieved_contexts" not in draft.read_from:
        differ += ended.answered.conflicts.get("retrieved_contexts", ())
    return replace(draft, names=tuple(dict.fromkeys([*differ, *draft.names]))) if differ else draft


def _ids_of_run(fields: FoundFields, ended: Ended, key: str) -> Mapping[str, str]:
    """The ids of sources by their texts: of what the app states, and of what its searches found."""
    contexts = fields.get("retrieved_contexts")
    stated = ids_of(contexts.raw, key) if isinstance(contexts, Found) else {}
    return {**ended.inside.ids, **stated}


def _find_ids(ended: Ended) -> FoundFields:
    """The ids that a reference names, and those that the app states."""
    found: dict[str, Found | Unreadable] = {}
    places: Sequence[tuple[object, FieldName]] = (
        (ended.run.output, "retrieved_ids"),
        (ended.run.inputs, "reference_ids"),
        (ended.reference, "reference_ids"),
    )
    for place, name in places:
        if (each := read(place, FORMS, (name,)).found.get(name)) is not None:
            found[name] = each
    return found


# --- earlier turns ---------------------------------------------------------------------------------------------------


def _history_of_run(ended: Ended, fields: FoundFields) -> Sequence[Turn]:
    asked, answered = fields.get("user_input"), fields.get("response")
    question = asked.value if isinstance(asked, Found) else None
    answer = answered.value if isinstance(answered, Found) else None
    inputs = ended.run.inputs
    for each in (inputs, ended.run.output, *ended.inside.given):
        # No text holds turns.
        if each is not None and not isinstance(each, str):
            turns = earlier_turns(each, question, answer, asked=each is inputs)
            if turns:
                return turns
    return ()


def holds_memory(inputs: object) -> bool:
    """Whether a step was given a conversation: by itself, or under a memory's name."""
    if isinstance(inputs, str):
        return False
    if is_list(inputs):
        return bool(inputs) and not isinstance(inputs[0], Document)
    return is_mapping(inputs) and not MEMORIES.isdisjoint(inputs)


def earlier_turns(value: object, question: object, answer: object, *, asked: bool = False) -> Sequence[Turn]:
    """The turns before a question, oldest first: in a conversation, or in a state that holds one.

    With `asked` the value came with the question: a memory is all earlier then, but for the question and its answer at
    its end, and so are messages that do not have the question.
    """
    entries = {"messages": value} if is_list(value) else FORMS.entries(value) or {}
    for name, held in entries.items():
        turns = spoken_turns(held, memory=name in MEMORIES)
        if not turns:
            continue
        said = [turn.content for turn in turns]
        asked_at = [i for i, turn in enumerate(turns) if turn.role == "user" and turn.content == question]
        if name in MEMORIES:
            own = bool(asked_at) and (not asked or said[asked_at[-1] + 1 :] in ([], [answer]))
            turns = turns[: asked_at[-1]] if own else turns
        elif asked_at or not (asked and name == "messages"):
            turns = turns[: asked_at[-1]] if asked_at else []
        if turns:
            return turns
    return ()


# --- how a run ended -------------------------------------------------------------------------------------------------


def _why_no_sample(ended: Ended) -> str | None:
    """Why a run is no sample, whatever it holds: it came to no end of its own, or is many."""
    run, inside = ended.run, ended.inside
    cancelled = isinstance(run.error, CANCELLED)
    if run.error is None or cancelled:
        if inside.waits:
            return "interrupted"
    elif is_langgraph_s("GraphBubbleUp", run.error):
        return "interrupted"
    if run.error is not None:
        return "cancelled" if cancelled else None
    if inside.open:
        return "abandoned"
    # It is `chain.map()` under a name of the app's.
    if is_list(run.inputs) and 1 < len(run.inputs) == len(as_list(run.output)):
        return "no_question"
    return "interrupted" if ended.turn and _has_stopped(ended) else None


def _has_stopped(ended: Ended) -> bool:
    """Say whether an agent has stopped before the tools that it calls, or after them, as a breakpoint makes it.

    A last message of text and tool calls is an answer, and a tool's that of one that returns directly, except in the
    state of a graph that can be resumed: nothing says of that whether it has ended.
    """
    last = ended.turn[-1]
    if not (asks_for_tools(last) or role_of(last) == "tool"):
        return False
    return only_calls_tools(last) or ("thread_id" in ended.run.metadata and read_message(ended.run.output) is None)


# --- the fields ------------------------------------------------------------------------------------------------------


def fields_of_run(ended: Ended) -> FoundFields | Sample | None:
    """A run's fields, each found or the `Unreadable` that says why not; absent ones are left out.

    The user's function may return a sample instead, or None for none; where it fails `Unreadable` is raised.
    """
    run, by_user = ended.run, ended.reading.fields
    given: Sample | Mapping[str, object] | None = {}
    if callable(by_user):
        given = by_function(by_user, run.inputs, run.output)
    if given is None or isinstance(given, Sample):
        return given
    fields: dict[str, Found | Unreadable] = {name: Found(value, BY_USER) for name, value in given.items()}
    names = names_of(by_user)
    for name, find in _FINDERS.items():
        found: Found | Unreadable | None
        if name in given:
            found = Found(strictly(name, given[name], f"fields: the function's {name!r}", FORMS), BY_USER)
        else:
            try:
                found = find(ended) if name not in names else _under_name(ended, name, names[name])
            except Unreadable as problem:
                found = problem
        if found is not None:
            fields[name] = found
    if ended.reading.id_key is not None:
        fields = {**_find_ids(ended), **fields}
    answer = fields.get("response")
    if ended.turn and not (isinstance(answer, Found) and answer.value):
        direct = _said_directly(ended.turn[-1], fields.get("retrieved_contexts"))
        fields |= {} if direct is None else {"response": direct}
    return fields


def _under_name(ended: Ended, name: SampleField, key: str) -> Found:
    """A field under a name that the user says, except where the app itself names contexts."""
    if name == "retrieved_contexts" and ended.inside.named:
        return _named_by_app(ended)
    values = {"inputs": ended.run.inputs, "outputs": ended.run.output, "reference_outputs": ended.reference}
    return by_name(name, key, {place: values[place] for place in _PLACES[name]}, FORMS)


def _raise_why_not(reading: Read, field: SampleField, value: object, where: str) -> None:
    """Raise `Unreadable` where a field stands under its names, and cannot be told."""
    if names := reading.conflicts.get(field):
        raise Unreadable(f"{' and '.join(f'{where}[{name!r}]' for name in names)} differ")
    if names := reading.unreadable.get(field):
        entries = FORMS.entries(value) or {}
        for name in names:
            if name in entries:
                strictly(field, entries[name], f"{where}[{name!r}]", FORMS)


def find_question(ended: Ended) -> Found | None:
    """The question: in the inputs, or in the outputs where the inputs have none."""
    run = ended.run
    if (found := _in_inputs(ended.asked.found.get("user_input"))) is not None:
        return found
    if "user_input" not in ended.asked.conflicts and (found := ended.answered.found.get("user_input")) is not None:
        return found
    _raise_why_not(ended.asked, "user_input", run.inputs, "inputs")
    _raise_why_not(ended.answered, "user_input", run.output, "outputs")
    return None


def _in_inputs(found: Found | None) -> Found | None:
    if found is None:
        return None
    name = "the input itself" if found.name == ITSELF else f"inputs.{found.name}"
    return Found(found.value, name, found.raw)


def find_answer(ended: Ended) -> Found | None:
    """The answer: the output itself, or what it holds."""
    run = ended.run
    if run.error is not None:
        return None
    if (found := ended.answered.found.get("response")) is None:
        _raise_why_not(ended.answered, "response", run.output, "outputs")
    return found


def _said_directly(last: "BaseMessage", contexts: Found | Unreadable | None) -> Found | None:
    """The text of a tool that ended its agent by `return_direct`, unless it is what was retrieved."""
    if role_of(last) != "tool" or getattr(last, "status", None) == "error":
        return None
    text, found = said_in(last), as_list(contexts.value) if isinstance(contexts, Found) else ()
    return None if any(str(one) in text for one in found) else Found(text, "messages", last)


def find_reference(ended: Ended) -> Found | None:
    """The reference answer: the value itself, or what it holds under a usual name, an answer's last."""
    if ended.reference is None:
        return None
    found = read_whole(ended.reference, _REFERENCES).found
    return found.get("reference") or found.get("response")


# --- contexts --------------------------------------------------------------------------------------------------------


def find_contexts(ended: Ended) -> Found | None:
    """The contexts of a run: the first that are there, in the order of docs/langchain.md; None without any."""
    inside, given = ended.inside, _in_inputs(ended.asked.found.get("retrieved_contexts"))
    stated = ended.answered.found.get("retrieved_contexts")
    if inside.named:
        return _named_by_app(ended)
    # A graph's output repeats its inputs, and a text alone may be what the prompt was given.
    repeated = given is not None and stated is not None and given.value == stated.value
    if stated is not None and not repeated and not isinstance(stated.raw, str):
        return stated
    if "retrieved_contexts" in ended.answered.conflicts:
        # What the app says counts before its searches, and cannot be told.
        _raise_why_not(ended.answered, "retrieved_contexts", ended.run.output, "outputs")
    found = texts_of(inside.searches)
    if ended.turn and (by_tools := tool_texts(ended.turn)):
        found = [*dict.fromkeys([*found, *by_tools])]
    if found:
        return Found(found, f"searches ({len(found)})", Searched(found, inside.calls, texts_of(inside.steps)))
    if passed := passed_on(inside.steps):
        return Found(passed, "steps")
    said = tool_texts(ended.turn, ended.reading.retriever_tools) if ended.turn else None
    if said is not None:
        return Found(said, f"searches ({len(said)})")
    if stated is None and given is None:
        if inside.searches:
            return Found([], "searches (0)")
        _raise_why_not(ended.answered, "retrieved_contexts", ended.run.output, "outputs")
    return stated or given


def _named_by_app(ended: Ended) -> Found:
    return Found(texts_of(ended.inside.named), "contexts(...)")


_FINDERS: Mapping[SampleField, Callable[[Ended], Found | None]] = {
    "user_input": find_question,
    "retrieved_contexts": find_contexts,
    "response": find_answer,
    "reference": find_reference,
}
