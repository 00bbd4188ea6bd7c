"""What a run becomes: question, contexts and answer where LangChain's apps say them, or why it is no sample.

Live runs, LangSmith's runs and what evaluators are called with are read alike. docs/langchain.md has the order.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ragstone.adapters.fields_by_user import (
    BY_USER,
    SAMPLE_FIELDS,
    FoundFields,
    attempt,
    by_function,
    by_name,
    check_fields,
    draft_of,
    names_of,
    strictly,
)
from ragstone.adapters.runs import CANCELLED, Draft, Fields, Run, Searched, Skipped, Unreadable
from ragstone.fields.names import STRONG, FieldName
from ragstone.fields.read import Found, Read, likely, read
from ragstone.options import checked
from ragstone.plain import as_list, is_list, is_mapping
from ragstone.sample import Sample, SampleField, Turn
from ragstone_langchain.forms import FORMS, are_documents, last_turn
from ragstone_langchain.inside import Inside, is_langgraph_s, passed_on, texts_of
from ragstone_langchain.messages import asks_for_tools, only_calls_tools, read_message, role_of, said_in, turns_in
from ragstone_langchain.searches import tool_texts

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MEMORIES = frozenset(STRONG["history"])
_ASKED: tuple[FieldName, ...] = ("user_input", "retrieved_contexts")
_ANSWERED: tuple[FieldName, ...] = ("user_input", "retrieved_contexts", "response")
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

    def __post_init__(self) -> None:
        check_fields(self.fields)
        object.__setattr__(self, "retriever_tools", checked("retriever_tools", self.retriever_tools, frozenset[str]))


@dataclass(slots=True, eq=False)
class Ended:
    """A run that has ended, with what the calls inside of it have come to; its inputs and outputs are read once."""

    run: Run
    inside: Inside
    reference: object = None
    asked: Read = field(init=False)
    answered: Read = field(init=False)
    turn: "Sequence[BaseMessage]" = field(init=False)

    def __post_init__(self) -> None:
        self.asked = read(self.run.inputs, FORMS, _ASKED)
        self.answered = read(self.run.output, FORMS, _ANSWERED)
        self.turn = last_turn(self.run.output)

    @classmethod
    def of(cls, run: Run, reference: object = None) -> "Ended":
        """Look once into all that is in a run."""
        return cls(run, Inside().note(run), reference)

    def after(self, inputs: object, inside: Inside) -> "Ended":
        """The run together with the one that it resumes, whose question it has not been told again."""
        own = self.run
        run = Run(own.id, own.kind, inputs=inputs, output=own.output, error=own.error, metadata=own.metadata)
        return Ended(run, inside.before(self.inside), self.reference)


def sample_of_run(ended: Ended, reading: ReadingOptions) -> Draft | Skipped:
    """Read a run that has ended; raise `Unreadable` where the user's function fails."""
    if (reason := _no_sample(ended)) is not None:
        return Skipped(reason)
    fields = fields_of_run(ended, reading)
    if fields is None:
        return Skipped("declined")
    if isinstance(fields, Sample):
        return Draft(fields, dict.fromkeys(fields.model_fields_set, BY_USER))
    found = {name: each for name, each in fields.items() if isinstance(each, Found)}
    if "response" not in found and ended.run.error is None and not callable(reading.fields):
        names = tuple(ended.answered.conflicts.get("response") or sorted(FORMS.entries(ended.run.output) or ()))
        if "user_input" in found:
            return Skipped("no_answer", names, likely(ended.answered, "response", FORMS) or "")
        contexts = found.get("retrieved_contexts")
        return Skipped("nothing_found" if contexts is None or not contexts.value else "no_question")
    return draft_of_run(found, ended)


def draft_of_run(fields: FoundFields, ended: Ended) -> Draft:
    """The sample that has these fields, and the turns before its question."""
    draft = draft_of(fields, ended.answered, FORMS)
    sample = draft.sample
    history = sample.history or _history_of_run(ended, sample.user_input, sample.response)
    contexts = fields.get("retrieved_contexts")
    searched = contexts.raw if isinstance(contexts, Found) and isinstance(contexts.raw, Searched) else None
    sample = sample.model_copy(update={"history": tuple(history)}) if history else sample
    return replace(draft, sample=sample, searched=searched)


# --- earlier turns ---------------------------------------------------------------------------------------------------


def _history_of_run(ended: Ended, question: str | None, answer: str | None) -> Sequence[Turn]:
    run = ended.run
    history = earlier_turns(run.inputs, question, answer, asked=True) or earlier_turns(run.output, question, answer)
    given = (earlier_turns(each, question, answer) for each in ended.inside.given)
    return history or next(filter(None, given), ())


def holds_memory(inputs: object) -> bool:
    """Whether a step was given a conversation: by itself, or under a memory's name."""
    return is_list(inputs) or (is_mapping(inputs) and not MEMORIES.isdisjoint(inputs))


def earlier_turns(value: object, question: str | None, answer: str | None, *, asked: bool = False) -> Sequence[Turn]:
    """The turns before a question, oldest first: in a conversation, or in a state that holds one.

    With `asked` the value came with the question: a memory is all earlier then, but for the question and its answer at
    its end, and so are messages that do not have the question.
    """
    entries = {"messages": value} if is_list(value) else FORMS.entries(value) or {}
    for name, held in entries.items():
        turns = turns_in(held, memory=name in MEMORIES)
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


def _no_sample(ended: Ended) -> str | None:
    """Why a run is no sample, whatever it holds: it came to no end of its own, or is many."""
    error, inside = ended.run.error, ended.inside
    cancelled = isinstance(error, CANCELLED)
    if (inside.waits and (cancelled or error is None)) or is_langgraph_s("GraphBubbleUp", error):
        return "interrupted"
    if cancelled:
        return "cancelled"
    if error is not None:
        return None
    if inside.open:
        return "abandoned"
    asked, output = as_list(ended.run.inputs), as_list(ended.run.output)
    # It is `chain.map()` under a name of the app's.
    if 1 < len(asked) == len(output):
        return "no_question"
    return "interrupted" if _has_stopped(ended) else None


def _has_stopped(ended: Ended) -> bool:
    """Say whether an agent has stopped before the tools that it calls, or after them, as a breakpoint makes it.

    A last message of text and tool calls is an answer, and a tool's that of one that returns directly, except in the
    state of a graph that can be resumed: nothing says of that whether it has ended.
    """
    last = ended.turn[-1] if ended.turn else None
    if last is None or not (asks_for_tools(last) or role_of(last) == "tool"):
        return False
    return only_calls_tools(last) or ("thread_id" in ended.run.metadata and read_message(ended.run.output) is None)


# --- the fields ------------------------------------------------------------------------------------------------------


def fields_of_run(ended: Ended, reading: ReadingOptions) -> FoundFields | Sample | None:
    """A run's fields, each found or the `Unreadable` that says why not; absent ones are left out.

    The user's function may return a sample instead, or None for none; where it fails `Unreadable` is raised.
    """
    run, nothing = ended.run, dict[str, object]()
    given = by_function(reading.fields, run.inputs, run.output) if callable(reading.fields) else nothing
    if given is None or isinstance(given, Sample):
        return given
    values = {"inputs": run.inputs, "outputs": run.output, "reference_outputs": ended.reference}
    names = names_of(reading.fields)
    readers: Mapping[SampleField, Callable[[], Found | None]] = {
        "user_input": lambda: find_question(ended),
        "retrieved_contexts": lambda: find_contexts(ended, reading.retriever_tools),
        "response": lambda: find_answer(ended),
        "reference": lambda: find_reference(ended.reference),
    }
    fields: dict[str, Found | Unreadable] = {}
    for name, value in given.items():
        if name not in SAMPLE_FIELDS:
            fields[name] = Found(value, BY_USER)
    for name, find in readers.items():
        found: Found | Unreadable | None
        if name in given:
            value = strictly(name, given[name], f"fields: the function's {name!r}", FORMS)
            found = Found(value, BY_USER)
        elif name in names and not (name == "retrieved_contexts" and ended.inside.named):
            found = attempt(by_name, name, names[name], {place: values[place] for place in _PLACES[name]}, FORMS)
        else:
            found = attempt(find)
        if found is not None:
            fields[name] = found
    answer = fields.get("response")
    if not isinstance(answer, Found) or not answer.value:
        direct = _said_directly(ended.turn, fields.get("retrieved_contexts"))
        fields |= {} if direct is None else {"response": direct}
    return fields


def _itself(field: FieldName, value: object, name: str) -> Found | None:
    """A field that a value is by itself: a text, a message, a conversation, an answer of an app's own class."""
    read_as = FORMS.value(field, value)
    return None if read_as is None else Found(read_as, name, value)


def _refuse(reading: Read, field: SampleField, value: object, where: str) -> None:
    """Raise `Unreadable` where a field stands under its names, and cannot be told."""
    if names := reading.conflicts.get(field):
        differ = " and ".join(f"{where}[{name!r}]" for name in names)
        raise Unreadable(f"{differ} differ")
    entries = FORMS.entries(value) or {}
    for name in reading.unreadable.get(field, ()):
        if name in entries:
            strictly(field, entries[name], f"{where}[{name!r}]", FORMS)


def find_question(ended: Ended) -> Found | None:
    """The question: in the inputs, or in the outputs where the inputs have none."""
    run = ended.run
    if (asked := _itself("user_input", run.inputs, "the input itself")) is not None:
        return asked
    if (asked := ended.asked.found.get("user_input")) is not None:
        return Found(asked.value, f"inputs.{asked.name}", asked.raw)
    if "user_input" in ended.asked.conflicts:
        _refuse(ended.asked, "user_input", run.inputs, "inputs")
    found = ended.answered.found.get("user_input")
    if found is None and is_list(run.output) and read_message(run.output) is None:
        found = _itself("user_input", run.output, "the output itself")
    if found is None:
        _refuse(ended.asked, "user_input", run.inputs, "inputs")
        _refuse(ended.answered, "user_input", run.output, "outputs")
    return found


def find_answer(ended: Ended) -> Found | None:
    """The answer: the output itself, or what it holds."""
    run = ended.run
    if run.error is not None:
        return None
    found = _itself("response", run.output, "the output itself") or ended.answered.found.get("response")
    if found is None:
        _refuse(ended.answered, "response", run.output, "outputs")
    return found


def _said_directly(turn: "Sequence[BaseMessage]", contexts: Found | Unreadable | None) -> Found | None:
    """The text of a tool that ended its agent by `return_direct`, unless it is what was retrieved."""
    last = turn[-1] if turn else None
    if last is None or role_of(last) != "tool" or getattr(last, "status", None) == "error":
        return None
    text, found = said_in(last), as_list(contexts.value) if isinstance(contexts, Found) else ()
    return None if any(str(one) in text for one in found) else Found(text, "messages", last)


def find_reference(value: object) -> Found | None:
    """The reference answer: the value itself, or what it holds under a usual name, an answer's last."""
    itself = _itself("reference", value, "reference_outputs")
    reading = read(value, FORMS, ("reference", "response"))
    return itself or reading.found.get("reference") or reading.found.get("response")


# --- contexts --------------------------------------------------------------------------------------------------------


def find_contexts(ended: Ended, tools: Collection[str]) -> Found | None:
    """The contexts of a run: the first that are there, in the order of docs/langchain.md; None without any.

    Args:
        ended: The run.
        tools: Names of tools whose text is a context.
    """
    return next((found for found in _contexts(ended, tools) if found is not None), None)


def _contexts(ended: Ended, tools: Collection[str]) -> "Iterator[Found | None]":
    """Yield the contexts of a run, those that count first."""
    run, inside = ended.run, ended.inside
    if inside.named:
        yield Found(texts_of(inside.named), "contexts(...)")
    given, stated = ended.asked.found.get("retrieved_contexts"), ended.answered.found.get("retrieved_contexts")
    if stated is None and are_documents(run.output):
        stated = _itself("retrieved_contexts", run.output, "the output itself")
    # A graph's output repeats its inputs; a text alone may be what the prompt was given.
    repeated = given is not None and stated is not None and given.value == stated.value
    if stated is not None and not repeated and not isinstance(stated.raw, str):
        yield stated
    searched = [*dict.fromkeys([*texts_of(inside.searches), *(tool_texts(ended.turn) or ())])]
    if searched:
        read_by = Searched(searched, inside.calls, texts_of(inside.steps))
        yield Found(searched, f"searches ({len(searched)})", read_by)
    if passed := passed_on(inside.steps):
        yield Found(passed, "steps")
    said = tool_texts(ended.turn, tools)
    if said is not None:
        yield Found(said, f"searches ({len(said)})")
    yield stated
    if given is None and are_documents(run.inputs):
        given = _itself("retrieved_contexts", run.inputs, "the input itself")
    if given is not None:
        yield Found(given.value, f"inputs.{given.name}", given.raw)
    if inside.searches:
        yield Found([], "searches (0)")
    _refuse(ended.answered, "retrieved_contexts", run.output, "outputs")
