"""What a run becomes: question, contexts and answer where LangChain's apps say them, or why it is no sample.

Live runs, LangSmith's runs and what evaluators are called with are read alike. docs/langchain.md has the order.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast, get_args

from langchain_core.documents import Document
from pydantic import BaseModel, ValidationError

from ragstone.adapters.blocks import text_of_blocks, texts_of_results
from ragstone.adapters.runs import FieldFunction, Fields, Run, Skipped, Unreadable
from ragstone.errors import describe
from ragstone.options import checked
from ragstone.plain import as_list, is_list, is_mapping, printable, to_plain
from ragstone.plain import fields_of as fields_of_value
from ragstone.sample import Sample, SampleField, Turn, first_problem
from ragstone_langchain.inside import CANCELLED, Inside, is_langgraph_s, passed_on, texts_of
from ragstone_langchain.messages import (
    MEMORIES,
    answer_in,
    as_mapping,
    asks_for_tools,
    only_calls_tools,
    question_in,
    read_message,
    read_messages,
    role_of,
    said_in,
    turns_in,
    without_thoughts,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Names = Sequence[str]
RunKind = Literal["chain", "step", "tool", "retriever", "model", "named"]
"""What a run is. A step is a chain that only words or parses (a prompt, a parser); "named" a call of `contexts`."""
KINDS: Mapping[str, RunKind] = {
    "prompt": "step",
    "parser": "step",
    "tool": "tool",
    "retriever": "retriever",
    **dict.fromkeys(("llm", "chat_model", "embedding"), "model"),
}
"""Kinds by LangChain's `run_type`, where it is no chain: also of what begins as one, as a decision model does."""
P = ParamSpec("P")
T = TypeVar("T")

FIELDS: tuple[SampleField, ...] = get_args(SampleField)
QUESTIONS = ("user_input", "question", "query", "input", "user_query", "user_question")
ANSWERS = (
    *("response", "answer", "output", "output_text", "result", "generation", "summary", "prediction"),
    *("final_answer", "final_response", "answer_text", "completion", "reply"),
)
# Not reference_contexts, which should have been retrieved.
CONTEXTS = (
    *("retrieved_contexts", "contexts", "context", "documents", "docs"),
    *("source_documents", "input_documents", "retrieval_context"),
)
REFERENCES = (
    *("reference", "reference_answer", "ground_truth", "expected_output", "expected"),
    *("expected_answer", "target"),
)
FIELD_NAMES: Mapping[SampleField, Names] = {
    "user_input": QUESTIONS,
    "response": ANSWERS,
    "retrieved_contexts": CONTEXTS,
    "reference": REFERENCES,
}
"""The keys under which LangChain's chains, tutorials and evaluators keep each field; the first that is there counts."""

_NO_ANSWERS = {*QUESTIONS, *CONTEXTS, *REFERENCES}
# Further names of a question, where none of the usual ones is there.
_QUESTIONS_TOO = (*QUESTIONS, "prompt", "request", "topic", "message", "text", "content")
# Names in inputs of a text that is to be summed up.
_ORIGINALS = ("text", "document", "source", "article", "original")
# Agents and `with_structured_output(include_raw=True)` put a structured answer there.
_STRUCTURED = ("structured_response", "parsed")
# Names of a text in a mapping that stands under a usual name.
_TEXTS = ("text", "content")
# Names in what a search returns, or as LangSmith packs it.
_HITS = (*CONTEXTS, "results", "output")
_PLACES: Mapping[SampleField, Names] = {
    "user_input": ("inputs", "outputs", "reference_outputs"),
    "response": ("outputs",),
    "retrieved_contexts": ("outputs", "inputs", "reference_outputs"),
    "reference": ("reference_outputs", "inputs", "outputs"),
}
"""Where a field is that the user has named, its own place first: the same name may stand in several."""

# {"output": {"state": {"messages": ...}}}, and some more.
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The options of reading: see `RagEvaluator` and `MonitorHandler`."""

    fields: Fields[object] | None = None
    retriever_tools: Collection[str] = ()

    def __post_init__(self) -> None:
        if not callable(self.fields):
            checked("fields", self.fields, dict[SampleField, str] | None)
        object.__setattr__(self, "retriever_tools", checked("retriever_tools", self.retriever_tools, frozenset[str]))

    @property
    def keys(self) -> Mapping[SampleField, str]:
        """The names of fields, where the user gave them."""
        named: Mapping[str, str] = {} if self.fields is None or callable(self.fields) else self.fields
        # The constructor has checked it.
        return cast("Mapping[SampleField, str]", named)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, what the calls inside of it have come to, and the last turn of what it returned."""

    run: Run
    inside: Inside
    turn: "Sequence[BaseMessage]"

    @classmethod
    def of(cls, run: Run) -> "Ended":
        """Look once into all that is in a run."""
        return cls(run, Inside().note(run), last_turn(run.output))

    def after(self, inputs: object, inside: Inside) -> "Ended":
        """The run together with the one that it resumes, whose question it has not been told again."""
        own = self.run
        run = Run(own.id, own.kind, inputs=inputs, output=own.output, error=own.error, metadata=own.metadata)
        return Ended(run, inside.before(self.inside), self.turn)


def sample_of_run(ended: Ended, reading: ReadingOptions) -> Sample | Skipped:
    """Read a run that has ended; raise `Unreadable` where the user's function fails."""
    if (reason := _no_sample(ended)) is not None:
        return Skipped(reason)
    run = ended.run
    found = fields_of_run(ended, reading)
    if found is None or isinstance(found, Sample):
        return found or Skipped("declined")
    fields = {name: value for name, value in found.items() if not isinstance(value, Unreadable)}
    if "response" not in fields and run.error is None and not callable(reading.fields):
        if "user_input" in fields:
            return Skipped("no_answer", tuple(sorted(entries_of(run.output) or ())))
        return Skipped("no_question" if fields.get("retrieved_contexts") else "nothing_found")
    return sample_with(fields, ended)


def sample_with(fields: Mapping[str, object], ended: Ended) -> Sample:
    """Return the sample that has these fields, and the turns before its question."""
    try:
        sample = Sample.model_validate(fields)
    except ValidationError as error:
        raise Unreadable(f"fields: the function's {first_problem(error)}") from None
    history = sample.history or _history_of_run(ended, sample.user_input, sample.response)
    return sample.model_copy(update={"history": tuple(history)}) if history else sample


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
    entries = {"messages": value} if is_list(value) else entries_of(value) or {}
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


def _said_directly(turn: "Sequence[BaseMessage]", found: object) -> str | None:
    """Return the text of a tool that ended its agent by `return_direct`, unless it is what was retrieved."""
    last = turn[-1] if turn else None
    if last is None or role_of(last) != "tool" or getattr(last, "status", None) == "error":
        return None
    text = said_in(last)
    return None if any(str(one) in text for one in as_list(found)) else text


# --- the fields ------------------------------------------------------------------------------------------------------


def fields_of_run(
    ended: Ended, reading: ReadingOptions, reference: object = None, source: SampleField | None = None
) -> dict[str, object] | Sample | None:
    """Return a run's fields, each its text or texts, or the `Unreadable` that says why not; absent ones are left out.

    The user's function may return a sample instead, or None for none; where it fails `Unreadable` is raised.

    Args:
        ended: The run.
        reading: The options.
        reference: What holds the reference answer.
        source: The field that a summary's original is read into, if one is wanted.
    """
    run, originals = ended.run, () if source is None else _ORIGINALS
    no_fields: Mapping[str, object] = {}
    given = _by_function(reading.fields, run) if callable(reading.fields) else no_fields
    if given is None or isinstance(given, Sample):
        return given
    readers: Mapping[SampleField, Callable[[], object]] = {
        "user_input": lambda: find_question(run, originals if source == "user_input" else ()),
        "retrieved_contexts": lambda: find_contexts(ended, reading.retriever_tools, originals),
        "response": lambda: None if run.error else find_text(run.output, "outputs", ANSWERS),
        "reference": lambda: find_text(reference, "reference_outputs", (*REFERENCES, *ANSWERS)),
    }
    fields: dict[str, object] = {name: value for name, value in given.items() if name not in FIELDS}
    for field, read in readers.items():
        if field in given:
            value: object = _strictly(field, given[field], f"fields: the function's {field!r}")
        elif field in reading.keys and not (field == "retrieved_contexts" and ended.inside.named):
            value = attempt(_under_key, field, reading.keys[field], run, reference)
        else:
            value = attempt(read)
        if value is not None:
            fields[field] = value
    said = fields.get("response")
    if not said or isinstance(said, Unreadable):
        direct = _said_directly(ended.turn, fields.get("retrieved_contexts"))
        fields.update({} if direct is None else {"response": direct})
    return fields


def _by_function(function: FieldFunction[object], run: Run) -> Sample | Mapping[str, object] | None:
    try:
        given: object = function(run.inputs, run.output)
    except Exception as error:
        raise Unreadable(f"fields: the function raised {describe(error, most=300)}") from error
    if given is None or isinstance(given, Sample):
        return given
    if not is_mapping(given):
        raise Unreadable(f"fields: the function returned {kind(given)}; return a Sample or a mapping of its fields")
    return {str(name): value for name, value in given.items() if value is not None}


def _under_key(field: SampleField, key: str, run: Run, reference: object) -> object:
    """Return a field that stands under a key, dotted where it is deeper; raise `Unreadable` if it is nowhere."""
    values = {"inputs": run.inputs, "outputs": run.output, "reference_outputs": reference}
    for place in _PLACES[field]:
        found = in_state(values[place], place, lambda entries, _: _follow(entries, key))
        if found is not None:
            return _strictly(field, found, f"{place}[{key!r}]")
    there = ", ".join(f"{place} ({kind(values[place])})" for place in _PLACES[field])
    raise Unreadable(f"fields= names the key {key!r}, which is not in {there}")


def _follow(value: object, key: str) -> object:
    entries = entries_of(value) or {}
    first, _, rest = key.partition(".")
    return entries.get(key) if key in entries or not rest else _follow(entries.get(first), rest)


def _strictly(field: SampleField, value: object, where: str) -> str | list[str]:
    """Read a value that someone said is the field; raise `Unreadable` if it is not."""
    if field == "retrieved_contexts":
        return named_contexts(value, where)
    text = find_text(value, where, FIELD_NAMES[field], asked=field == "user_input")
    if text is None:
        raise Unreadable(f"{where} is {kind(value)}, not text")
    return text


def attempt(read: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Unreadable:
    """The value that a function reads, or the `Unreadable` that it raises."""
    try:
        return read(*args, **options)
    except Unreadable as problem:
        return problem


# --- what stands in a state -------------------------------------------------------------------------------------------


def entries_of(value: object) -> Mapping[str, object] | None:
    """The values under names in a state: of a mapping, a pydantic model or a dataclass. None for anything else.

    Messages and Documents, whose "name" or "id" is no one's question, have no entries.
    """
    if value is None or isinstance(value, str) or is_list(value) or document_content(value) or read_message(value):
        return None
    entries: Any = as_mapping(value)
    if entries is None:
        entries = dict(value) if isinstance(value, BaseModel) else fields_of_value(value)
    # LangGraph's invoke(version="v2") packs the state.
    if entries and set(entries) == {"value", "interrupts"}:
        return entries_of(entries["value"])
    return entries if entries is None else {name: item for name, item in entries.items() if isinstance(name, str)}


def kind(value: object) -> str:
    """A value's description for a message: its type and, where it has them, its keys, such as "dict with 'q'"."""
    name = "None" if value is None else type(value).__name__
    keys = ", ".join(map(repr, entries_of(value) or ()))
    return f"{name} with {printable(keys, 300)}" if keys else name


def messages_of(state: object) -> "Sequence[BaseMessage]":
    """Return the last turn of a conversation, or of a state that holds one, where a bare text is the human's."""
    entries = entries_of(state)
    held = state if entries is None else entries.get("messages")
    return read_messages(held if entries is None or not isinstance(held, str) else ("human", held))


def in_state(
    value: object, where: str, read: Callable[[Mapping[str, object], str], T | None], depth: int = 0
) -> T | None:
    """The value that is read among the entries of a state, or else in exactly one of the mappings that it holds."""
    entries = entries_of(value) if depth < _DEPTH else None
    if entries is None:
        return None
    found = read(entries, where)
    if found is not None:
        return found
    inner: list[T] = []
    for name, each in entries.items():
        with suppress(Unreadable):
            found = in_state(each, f"{where}[{name!r}]", read, depth + 1)
            inner += [] if found is None else [found]
    return inner[0] if len(inner) == 1 else None


# --- question and answer ---------------------------------------------------------------------------------------------


def find_question(run: Run, originals: Names = ()) -> str | None:
    """Return the question: in the inputs by a usual name, else by one that may mean it, else in the outputs."""
    own, *others = QUESTIONS
    usual = (own, *originals, *others)
    state = None if isinstance(run.output, str) or read_message(run.output) is not None else run.output
    found = [
        attempt(find_text, run.inputs, "inputs", usual, asked=True),
        attempt(find_text, run.inputs, "inputs", (*usual, *_QUESTIONS_TOO), asked=True),
        attempt(find_text, state, "outputs", QUESTIONS, asked=True),
    ]
    text = next((each for each in found if isinstance(each, str)), None)
    if text is None and isinstance(found[0], Unreadable):
        raise found[0]
    return text


def find_text(value: object, where: str, names: Names, *, asked: bool = False, depth: int = 0) -> str | None:
    """Return the answer, or what was asked, in a value that is it, or holds it under a name or as a message.

    None where it is not there; anything that could not hold it is `Unreadable`.
    """
    if isinstance(value, str):
        return value if asked else without_thoughts(value)
    message = read_message(value)
    if message is not None:
        if not asked and only_calls_tools(message):
            raise Unreadable(f"{where} only calls tools and has no answer")
        return said_in(message)
    messages = read_messages(value)
    if messages:
        return question_in(messages) if asked else answer_in(messages)
    if value is None or depth > _DEPTH:
        return None
    entries = entries_of(value)
    if entries is None:
        raise Unreadable(f"{where} is {kind(value)}, not text")
    text = in_state(value, where, partial(_text_of, names=names, asked=asked, depth=depth))
    if text is None and not asked and isinstance(value, BaseModel) and _NO_ANSWERS.isdisjoint(entries):
        return _in_words(value)
    return text


def _text_of(entries: Mapping[str, object], where: str, names: Names, *, asked: bool, depth: int) -> str | None:
    """Return the text of a state's entries: under the first name that has any, or the last that was said.

    An answer's name without one says that there is none.
    """
    there = [name for name in names if name in entries]
    for name in there:
        text = find_text(entries[name], f"{where}[{name!r}]", (*names, *_TEXTS), asked=asked, depth=depth + 1)
        if text is not None:
            return text
    if there and not asked:
        raise Unreadable(f"{where}[{there[0]!r}] is {kind(entries[there[0]])}, not text")
    messages = messages_of(entries)
    if asked:
        return question_in(messages)
    text = answer_in(messages)
    structured = next((entries[name] for name in _STRUCTURED if entries.get(name) is not None), None)
    # The message's text may be the structured answer as JSON.
    if structured is not None and (text is None or text.lstrip()[:1] in ("{", "[")):
        return _in_words(structured)
    return text


def _in_words(answer: object) -> str:
    """The text that a person would read of a structured answer: its own where it is one, else all of it as JSON."""
    entries = entries_of(answer) or {}
    names = [*ANSWERS, *entries] if len(entries) == 1 else ANSWERS
    text = next((entries[name] for name in names if isinstance(entries.get(name), str)), None)
    return _as_text(answer if text is None else text)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)


# --- contexts --------------------------------------------------------------------------------------------------------


def find_contexts(ended: Ended, tools: Collection[str], originals: Names = ()) -> list[str] | None:
    """Return the contexts of a run: the first that are there, in the order of docs/langchain.md; None without any.

    Args:
        ended: The run.
        tools: Names of tools whose text is a context.
        originals: Further names in the inputs.
    """
    run, inside = ended.run, ended.inside
    if inside.named:
        return texts_of(inside.named)
    stated = attempt(contexts_in, run.output, "outputs", bare=False, texts=False)
    # A graph's output repeats its inputs.
    if isinstance(stated, list) and stated != attempt(contexts_in, run.inputs, "inputs", bare=False):
        return stated
    found = [*dict.fromkeys([*texts_of(inside.searches), *(tool_texts(ended.turn) or ())])]
    found = found or passed_on(inside.steps)
    if found:
        return found
    texts = tool_texts(ended.turn, tools)
    if texts is None:
        texts = contexts_in(run.output, "outputs", bare=False)
    if texts is None:
        texts = contexts_in(run.inputs, "inputs", (*CONTEXTS, *originals), bare=False)
    return [] if texts is None and inside.searches else texts


def last_turn(output: object) -> "Sequence[BaseMessage]":
    """Return the messages of a state, or of the one state that it holds, from the last question on."""
    return messages_of(output) or in_state(output, "", lambda entries, _: messages_of(entries) or None) or ()


def found_by(run: Run, output: object, tools: Collection[str]) -> list[str] | None:
    """The texts that a run inside of another has found, which the app cannot change later.

    Of a retriever and a step these are its Documents, of a tool those in its message's artifact, or as it returned
    them. A tool with one of the names has else its text, where no retriever inside of it found anything.
    """
    if run.kind == "retriever":
        return named_contexts(output, "a retriever's result", _HITS)
    if run.kind == "tool":
        message = read_message(output)
        content, artifact = (
            (output, output) if message is None else (message.content, getattr(message, "artifact", None))
        )
        named = run.name in tools and not Inside().note(run).searches
        return _found_by_tool(content, artifact, named=named)
    if run.kind != "chain" or isinstance(output, str):
        return None
    stated = attempt(contexts_in, output, "", bare=False, texts=False)
    return None if isinstance(stated, Unreadable) else stated


def _contexts_of(entries: Mapping[str, object], where: str, names: Names, *, texts: bool) -> list[str] | None:
    there = [name for name in names if entries.get(name) is not None]
    for name in sorted(there, key=lambda name: isinstance(entries[name], str)):
        if texts or not isinstance(entries[name], str):
            found = contexts_in(entries[name], f"{where}[{name!r}]", names)
            if found is not None:
                return found
    return None


def contexts_in(
    value: object, where: str, names: Names = CONTEXTS, *, bare: bool = True, texts: bool = True
) -> list[str] | None:
    """Return the texts of contexts: of one, of a list of them, or of what stands under a usual name in a state.

    None for a state without such a name. Where a value is not `bare`, it has to be a Document or a list of them.
    Without `texts` a text alone under a name is none: it may be what the prompt was given.
    """
    if entries_of(value) is not None:
        return in_state(value, where, partial(_contexts_of, names=names, texts=texts))
    if not (bare or are_documents(value)):
        return None
    if is_list(value) and not document_content(value):
        return [_text_of_context(item, f"{where}[{i}]") for i, item in enumerate(value)]
    return [_text_of_context(value, where)]


def named_contexts(value: object, where: str, names: Names = CONTEXTS) -> list[str]:
    """Return the texts of what someone said are contexts; raise `Unreadable` if it is nothing of the kind."""
    texts = contexts_in(value, where, names)
    if texts is None:
        raise Unreadable(f"{where} is {kind(value)}, not text or a Document")
    return texts


def _text_of_context(value: object, where: str) -> str:
    """Return the text of one context: a text, a document or a search's hit, with or without its score."""
    content = (value,) if isinstance(value, str) else document_content(value, ("page_content", *_TEXTS))
    text = next(iter(content), None)
    if not isinstance(text, str):
        raise Unreadable(f"{where} is {kind(value)}, not text or a Document")
    return text


def document_content(value: object, names: Sequence[str] = ("page_content",)) -> tuple[object, ...]:
    """Return the content of a document, or of a pair of a document and its score; nothing for anything else."""
    if is_list(value) and len(value) == 2 and isinstance(value[1], (int, float)):
        value = value[0]
    if isinstance(value, Document):
        return (value.page_content,)
    mapping = as_mapping(value) or {}
    return tuple(mapping[name] for name in names if name in mapping)[:1]


def are_documents(value: object) -> bool:
    """Whether a value is a document or a list that holds one, all of which then have to be."""
    return bool(document_content(value)) or (is_list(value) and any(map(document_content, value)))


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
    kept = attempt(contexts_in, artifact, "a tool's artifact", bare=False)
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
    found = None if isinstance(hits, str) else attempt(contexts_in, hits, "", _HITS)
    return found if isinstance(found, list) else [_as_text(content) if text is None else text]
