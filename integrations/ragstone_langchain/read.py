"""What a run becomes: question, contexts and answer where LangChain's apps say them, or why it is no sample.

Live runs, LangSmith's runs and what evaluators are called with are read alike. docs/langchain.md has the order.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, ParamSpec, TypeVar, cast, get_args

from pydantic import ValidationError

from ragstone.blocks import texts_of_results
from ragstone.errors import describe
from ragstone.options import checked
from ragstone.plain import as_dict, as_list, is_list, is_mapping, to_plain
from ragstone.run import Run, Skipped
from ragstone.sample import Sample, SampleField, first_problem
from ragstone_langchain.messages import (
    MEMORIES,
    Message,
    Unreadable,
    answer_in,
    are_documents,
    context_text,
    context_texts,
    earlier_turns,
    entries_of,
    is_document,
    kind,
    once_each,
    question_in,
    read_message,
    read_messages,
    without_thoughts,
)

Names = Sequence[str]
FieldFunction = Callable[[object, object], Sample | Mapping[str, object] | None]
"""A user's own reading of a run: by its inputs and its outputs (None if it failed)."""
Fields = Mapping[str, str] | FieldFunction
TextField = Literal["user_input", "response", "reference"]
Kind = Literal["chain", "step", "tool", "retriever", "model", "named"]
"""What a run is. A step is a chain that only words or parses (a prompt, a parser); "named" a call of `contexts`."""
P = ParamSpec("P")
T = TypeVar("T")

FIELDS: tuple[SampleField, ...] = get_args(SampleField)
FIELD_NAMES: Mapping[SampleField, Names] = {
    "user_input": ("user_input", "question", "query", "input", "user_query", "user_question"),
    "response": (
        *("response", "answer", "output", "output_text", "result", "generation", "summary", "prediction"),
        *("final_answer", "final_response", "answer_text", "completion", "reply"),
    ),
    # Not reference_contexts, which are what should have been retrieved.
    "retrieved_contexts": (
        *("retrieved_contexts", "contexts", "context", "documents", "docs"),
        *("source_documents", "input_documents", "retrieval_context"),
    ),
    "reference": (
        *("reference", "reference_answer", "ground_truth", "expected_output", "expected"),
        *("expected_answer", "target"),
    ),
}
"""The keys under which LangChain's chains, tutorials and evaluators keep each field; the first that is there counts."""

_OTHERS = {field: {name for other in FIELDS if other != field for name in FIELD_NAMES[other]} for field in FIELDS}
_QUESTION_TOO = ("prompt", "request", "topic", "message", "text", "content")  # in inputs, where no other name is
_STRUCTURED = ("structured_response", "parsed")  # where agents and `with_structured_output(include_raw=True)` put it
_TEXT_OF_IT = ("text", "content")  # of a mapping that stands under a usual name
_HITS = (*FIELD_NAMES["retrieved_contexts"], "results")  # in what a search tool returns
_PLACES: Mapping[SampleField, Names] = {
    "user_input": ("inputs", "outputs", "reference_outputs"),
    "response": ("outputs",),
    "retrieved_contexts": ("outputs", "inputs", "reference_outputs"),
    "reference": ("reference_outputs", "inputs", "outputs"),
}
"""Where a field is that the user has named, its own place first: the same name may stand in several."""

_DEPTH = 4  # {"output": {"state": {"messages": ...}}} and one to spare
_CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


@dataclass(frozen=True, slots=True)
class Reading:
    """The options of reading: see `RagEvaluator` and `MonitorHandler`."""

    fields: Fields | None = None
    retriever_tools: Collection[str] = ()

    def __post_init__(self) -> None:
        if not callable(self.fields):
            checked("fields", self.fields, dict[SampleField, str] | None)
        object.__setattr__(self, "retriever_tools", checked("retriever_tools", self.retriever_tools, frozenset[str]))

    @property
    def keys(self) -> Mapping[SampleField, str]:
        """The names of fields, where the user gave them."""
        named: Mapping[str, str] = {} if self.fields is None or callable(self.fields) else self.fields
        return cast("Mapping[SampleField, str]", named)  # checked above


def sample_of(run: Run, reading: Reading, resumes: Run | None = None) -> Sample | Skipped:
    """Read a run that has ended, with what it resumes; raise `Unreadable` where the user's function fails."""
    answer = streamed_answer(run)
    if (reason := _stopped(run, answer)) is not None:
        return Skipped(reason)
    if resumes is not None:
        run = joined(resumes, run)
    found = fields_of(run, reading)
    if found is None or isinstance(found, Sample):
        return found or Skipped("declined")
    fields = {name: value for name, value in found.items() if not isinstance(value, Unreadable)}
    if answer is None and "response" not in fields:
        answer = _said_directly(run, fields.get("retrieved_contexts"))
    if answer is not None:
        fields["response"] = answer
    if "response" not in fields and run.error is None and not callable(reading.fields):
        if "user_input" not in fields:
            return Skipped("no_question" if fields.get("retrieved_contexts") else "nothing_found")
        return Skipped("no_answer", _names_in(run.output))
    return make_sample(fields, run)


def make_sample(fields: Mapping[str, object], run: Run) -> Sample:
    """Make the sample of what was read, with the turns before its question."""
    sample = Sample.model_validate(fields)
    history = sample.history or _history(run, sample.user_input, sample.response)
    return sample.model_copy(update={"history": history}) if history else sample


def _history(run: Run, question: str | None, answer: str | None) -> Sequence[object]:
    history = earlier_turns(run.inputs, question, answer, asked=True) or earlier_turns(run.output, question)
    loaded = (earlier_turns(each.inputs, question) for each in _successful(run) if holds_memory(each.inputs))
    return history or next(filter(None, loaded), ())


def holds_memory(inputs: object) -> bool:
    """Whether a step was given a conversation: by itself, or under a memory's name."""
    return is_list(inputs) or (is_mapping(inputs) and not MEMORIES.isdisjoint(inputs))


def _names_in(outputs: object) -> tuple[str, ...]:
    """Return the names that stand in outputs, the texts last: which of them is the answer the app's author knows."""
    entries = entries_of(outputs) or {}
    of_fields = _OTHERS["response"]
    return tuple(sorted(entries, key=lambda name: (isinstance(entries[name], str), name not in of_fields)))


def _stopped(run: Run, streamed: str | None) -> str | None:
    """Return why a run has come to no end of its own, if so."""
    interrupted = any(_is_langgraph_s("GraphInterrupt", each.error) for each in run.walk())
    if _steers(run.error) or (interrupted and isinstance(run.error, (*_CANCELLED, type(None)))):
        return "interrupted"
    if streamed is not None:
        return None
    if isinstance(run.error, _CANCELLED):
        return "cancelled"
    if run.error is None and any(each.open for each in run.walk()):
        return "abandoned"
    return "interrupted" if run.error is None and _waits(run) else None


def streamed_answer(run: Run) -> str | None:
    """Return the answer of a stream that was left at its last piece: what the model said that is still open."""
    if not isinstance(run.error, (GeneratorExit, asyncio.CancelledError, type(None))):
        return None
    left = [each for each in run.walk() if each.kind == "model" and (each.open or isinstance(each.error, _CANCELLED))]
    said = left[0].output if len(left) == 1 else None
    return without_thoughts(said) if isinstance(said, str) and said.strip() else None


def _waits(run: Run) -> bool:
    """Say whether an agent has stopped before the tools that it calls, or after them, as a breakpoint makes it.

    A last message of text and tool calls is an answer, and a tool's that of one that returns directly, except in the
    state of a graph that can be resumed: nothing says of that whether it has ended.
    """
    *_, last = [None, *_state_messages(run.output)]
    resumable = "thread_id" in run.metadata and read_message(run.output) is None
    if last is None or not (last.calls_tools or last.role == "tool"):
        return False
    return resumable or (last.calls_tools and not last.has_text)


def _said_directly(run: Run, found: object) -> str | None:
    """Return the text of a tool that ended its agent by `return_direct`, unless it is what was retrieved."""
    *_, last = [None, *(_state_messages(run.output) if run.error is None else ())]
    if last is None or last.role != "tool" or last.failed:
        return None
    return None if any(str(text) in last.text for text in as_list(found)) else last.text


def joined(before: Run, run: Run) -> Run:
    """Return a run together with what it resumes, whose question it has not been told again."""
    inside = [*before.inside, *run.inside]
    return Run(run.id, run.kind, run.name, before.inputs, run.output, run.error, run.metadata, inside=inside)


def _state_messages(state: object) -> Sequence[Message]:
    return read_messages(state.get("messages"), named=True) if is_mapping(state) else read_messages(state)


def _steers(error: BaseException | None) -> bool:
    return _is_langgraph_s("GraphBubbleUp", error)


def _is_langgraph_s(name: str, error: BaseException | None) -> bool:
    """Say whether an error is one of those with which LangGraph steers graphs, without importing it."""
    return any(each.__name__ == name and each.__module__.startswith("langgraph.") for each in type(error).__mro__)


def _failed(run: Run) -> bool:
    return not (run.error is None or _steers(run.error) or isinstance(run.error, GeneratorExit))


def _successful(run: Run) -> Iterator[Run]:
    """Yield the runs inside that did not fail, each after those inside of it: as they ended.

    Where the app survived a failure, its answer rests on others. What is inside of a retriever is the retriever's.
    """
    for each in run.inside:
        if not _failed(each):
            if each.kind != "retriever":
                yield from _successful(each)
            yield each


def fields_of(
    run: Run, reading: Reading, reference: object = None, originals: Names = (), *, original_asked: bool = False
) -> dict[str, object] | Sample | None:
    """Return a run's fields, each its text or texts, or the `Unreadable` that says why not; absent ones are left out.

    The user's function may return a sample instead, or None for none; where it fails `Unreadable` is raised.

    Args:
        run: The run.
        reading: The options.
        reference: What holds the reference answer.
        originals: Names of what a summary's original may stand under in the inputs.
        original_asked: Whether the original is the question, rather than the contexts.
    """
    given: Mapping[str, object] = {}
    if callable(reading.fields):
        made = _by_function(reading.fields, run)
        if made is None or isinstance(made, Sample):
            return made
        given = made
    fields = {name: value for name, value in given.items() if name not in FIELDS}
    readers: Mapping[SampleField, Callable[[], str | Sequence[str] | None]] = {
        "user_input": lambda: find_question(run.inputs, run.output, originals if original_asked else ()),
        "retrieved_contexts": lambda: _contexts(run, reading.retriever_tools, originals),
        "response": lambda: None if run.error else find_text("response", run.output, "outputs"),
        "reference": lambda: find_text("reference", reference, "reference_outputs"),
    }
    for field, read in readers.items():
        if field in given:
            value: object = _strictly(field, given[field], f"fields: the function's {field!r}")
        elif field in reading.keys and not (field == "retrieved_contexts" and _named(run)):
            value = attempt(_under_key, field, reading.keys[field], run, reference)
        else:
            value = attempt(read)
        if value is not None:
            fields[field] = value
    return fields


def _by_function(function: FieldFunction, run: Run) -> Sample | Mapping[str, object] | None:
    try:
        made: object = function(run.inputs, run.output)
    except Exception as error:
        raise Unreadable(f"fields: the function raised {describe(error, most=300)}") from error
    if made is None or isinstance(made, Sample):
        return made
    if not is_mapping(made):
        raise Unreadable(f"fields: the function returned {kind(made)}; return a Sample or a mapping of its fields")
    given = {str(name): value for name, value in made.items() if value is not None}
    try:
        Sample.model_validate({name: value for name, value in given.items() if name not in FIELDS})
    except ValidationError as error:
        raise Unreadable(f"fields: the function's {first_problem(error)}") from None
    return given


def _under_key(field: SampleField, key: str, run: Run, reference: object) -> str | Sequence[str] | None:
    """Return a field that stands under a key, dotted where it is deeper; raise `Unreadable` if it is nowhere."""
    values = {"inputs": run.inputs, "outputs": run.output, "reference_outputs": reference}
    places = {place: values[place] for place in _PLACES[field]}
    for place, value in places.items():
        found = _follow(value, key)
        if found is None:  # LangSmith packs what a target returned
            found = _in_one(entries_of(value) or {}, lambda inner, _: _follow(inner, key))
        if found is not None:
            return _strictly(field, found, f"{place}[{key!r}]")
    there = ", ".join(f"{name} ({kind(value)})" for name, value in places.items())
    raise Unreadable(f"fields= names the key {key!r}, which is not in {there}")


def _follow(value: object, key: str) -> object:
    entries = entries_of(value) or {}
    first, _, rest = key.partition(".")
    return entries.get(key) if key in entries or not rest else _follow(entries.get(first), rest)


def _strictly(field: SampleField, value: object, where: str) -> str | Sequence[str]:
    """Read a value that someone said is the field; raise `Unreadable` if it is not."""
    if field == "retrieved_contexts":
        return named_contexts(value, where)
    text = find_text(field, value, where)
    if text is None:
        raise Unreadable(f"{where} is {kind(value)}, not text")
    return text


def attempt(read: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Unreadable:
    """Return what a function reads, or the `Unreadable` that it raises."""
    try:
        return read(*args, **options)
    except Unreadable as problem:
        return problem


def _if_readable(read: Callable[P, T | None], *args: P.args, **options: P.kwargs) -> T | None:
    """Return what a function reads; None where it raises `Unreadable`."""
    value = attempt(read, *args, **options)
    return None if isinstance(value, Unreadable) else value


def find_question(inputs: object, outputs: object, originals: Names = ()) -> str | None:
    """Return the question: in the inputs by a usual name, else by one that may mean it, else in the outputs."""
    own, *others = FIELD_NAMES["user_input"]
    usual = (own, *originals, *others)
    problem: Unreadable | None = None
    for value, where, names in (
        (inputs, "inputs", usual),
        (inputs, "inputs", (*usual, *_QUESTION_TOO)),
        (outputs, "outputs", FIELD_NAMES["user_input"]),
    ):
        text = attempt(find_text, "user_input", value, where, names, own=value is inputs)
        if isinstance(text, str):
            return text
        problem = problem or text
    if problem is not None:
        raise problem
    return None


def find_text(
    field: TextField, value: object, where: str, names: Names | None = None, *, own: bool = True, depth: int = 0
) -> str | None:
    """Return the question or the answer in a value of any form; None where it is not there.

    With `own` the value as a whole is meant to be the field, so that a bare text is it, and anything that could not
    hold it is `Unreadable`.
    """
    names = _names_of(field) if names is None else names
    if isinstance(value, str) and own:
        return without_thoughts(value) if field == "response" else value
    if value is None or isinstance(value, str) or depth > _DEPTH:
        return None
    if own and (message := read_message(value)) is not None:
        if field == "response" and message.calls_tools and not message.has_text:
            raise Unreadable(f"{where} only calls tools and has no answer")
        return message.text
    in_messages = question_in if field == "user_input" else answer_in
    if messages := read_messages(value):
        return in_messages(messages)
    entries = entries_of(value)
    if entries is None:
        if own:
            raise Unreadable(f"{where} is {kind(value)}, not text")
        return None
    text, said = _under_a_name(field, entries, where, names, depth)
    if said:
        return text
    text = in_messages(read_messages(entries.get("messages"), named=True))
    if field == "response" and (text is None or text.lstrip()[:1] in ("{", "[")):  # its own text may be it as JSON
        text = _structured(value, entries, own=own) or text
    if text is not None:
        return text
    return _in_one(entries, lambda inner, at: find_text(field, inner, where + at, names, own=False, depth=depth + 1))


def _under_a_name(
    field: TextField, entries: Mapping[str, object], where: str, names: Names, depth: int
) -> tuple[str | None, bool]:
    """Return the text under the first usual name that has any, and whether that settles it.

    So it does for an answer under whose name is None: the app says that it has none.
    """
    there = [name for name in names if name in entries]
    for name in there:
        deeper = (*names, *_TEXT_OF_IT)
        text = find_text(field, entries[name], f"{where}[{name!r}]", deeper, depth=depth + 1)
        if text is not None:
            return text, True
    return None, bool(there) and field == "response"


def _names_of(field: TextField) -> Names:
    return (*FIELD_NAMES["reference"], *FIELD_NAMES["response"]) if field == "reference" else FIELD_NAMES[field]


def _in_one(entries: Mapping[str, object], read: Callable[[object, str], T | None]) -> T | None:
    """Return what is read in one of the inner mappings alone."""
    found: list[T] = []
    for name, inner in entries.items():
        if not isinstance(inner, str) and entries_of(inner) is not None:
            value = _if_readable(read, inner, f"[{name!r}]")
            found += [] if value is None else [value]
    return found[0] if len(found) == 1 else None


def _structured(value: object, entries: Mapping[str, object], *, own: bool) -> str | None:
    """Return what a person would read of a structured answer: its text where it is one, else all of it as JSON."""
    answer = next((entries[name] for name in _STRUCTURED if entries.get(name) is not None), None)
    if answer is None and own and not (is_mapping(value) or _OTHERS["response"] & entries.keys()):
        answer = value  # a pydantic model or a dataclass that is no state
    if answer is None or "messages" in (inner := entries_of(answer) or {}):
        return None
    text = next((text for text in inner.values() if isinstance(text, str)), None) if len(inner) == 1 else None
    if text is None and answer is not value:
        text = _if_readable(find_text, "response", answer, "")
    return text or _as_text(answer)


def _named(run: Run) -> list[Run]:
    return [each for each in _successful(run) if each.kind == "named"]


def _contexts(run: Run, tools: Collection[str], originals: Names = ()) -> Sequence[str] | None:
    """Return the contexts of a run: the first that are there, in the order of docs/langchain.md; None without any.

    Args:
        run: The run.
        tools: Names of tools whose text is a context.
        originals: Further names in the inputs.
    """
    if named := _named(run):
        return once_each(text for each in named for text in named_contexts(each.output, "context"))
    stated = attempt(stated_contexts, run.output)
    if stated is not None and not isinstance(stated, Unreadable):
        return stated
    searches = list(_searches(run))
    artifacts = _if_readable(tool_texts, _state_messages(run.output)) or ()
    found = once_each([*(text for texts in searches for text in texts), *artifacts]) or _passed_on(run)
    if found:
        return found
    names = (*FIELD_NAMES["retrieved_contexts"], *originals)
    texts = find_contexts(run.output, "outputs", tools=tools)
    if texts is None:
        texts = find_contexts(run.inputs, "inputs", names=names, tools=tools)
    return texts if texts is not None or not searches else ()


def _searches(run: Run) -> Iterator[Sequence[str]]:
    """Yield what each outermost retriever found, or tool that found anything itself."""
    for each in run.inside:
        if _failed(each):
            continue
        if each.kind == "retriever" or (each.kind == "tool" and each.output):
            yield _texts(each)
        else:
            yield from _searches(each)


def _texts(run: Run) -> list[str]:
    if isinstance(run.output, Unreadable):
        raise run.output
    return [text for text in as_list(run.output) if isinstance(text, str)]


def _passed_on(run: Run) -> Sequence[str]:
    """Return the texts of the Documents that steps returned, where no retriever was run."""
    passed: list[str] = []
    for each in _successful(run):
        texts = _texts(each) if each.kind == "chain" else []
        passed = once_each(texts if set(texts) <= set(passed) and texts else [*passed, *texts])  # one may choose
    return passed


def found_by(run: Run, output: object, tools: Collection[str]) -> list[str] | None:
    """Return what a run inside of another has found, in texts, which the app cannot change later.

    Of a retriever and a step these are its Documents, of a tool those in its message's artifact, or as it returned
    them. A tool with one of the names has else its text, where no retriever inside of it found anything.
    """
    if run.kind == "retriever":
        names = (*FIELD_NAMES["retrieved_contexts"], "output")  # as LangChain, or LangSmith, packs them
        return find_contexts(output, "a retriever's result", own=True, names=names)
    if run.kind == "tool":
        message = read_message(output) or Message("tool", _as_text(output), artifact=output)
        texts = tool_texts([message])
        if texts is None and run.name in tools and not any(_searches(run)):
            texts = tool_texts([replace(message, name=run.name)], tools)
        return texts
    if type(output).__name__ == "Command":  # LangGraph's
        output = getattr(output, "update", None)
    is_text = run.kind != "chain" or isinstance(output, str)
    return None if is_text else _if_readable(stated_contexts, output)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)


def stated_contexts(outputs: object) -> list[str] | None:
    """Return the Documents or the list of texts under a usual name, if none, too; None where there is no such name.

    One text under it may be what the prompt was given.
    """
    return find_contexts(outputs, "outputs", tools=None, texts=False)


def find_contexts(
    value: object,
    where: str,
    *,
    own: bool = False,
    names: Names = FIELD_NAMES["retrieved_contexts"],
    tools: Collection[str] | None = (),
    texts: bool = True,
    depth: int = 0,
) -> list[str] | None:
    """Return the texts of the contexts in a value of any form; None where there are none.

    Args:
        value: The value.
        where: Its place, for errors.
        own: Whether it is meant to be contexts, so that texts are, and anything else is `Unreadable`.
        names: The names under which contexts stand.
        tools: Names of tools that retrieve and keep no Documents; None: messages are not read.
        texts: Whether one text under a name is a context.
        depth: How deep the value is.
    """
    if not own and (value is None or isinstance(value, str) or depth > _DEPTH):
        return None
    if own or are_documents(value):
        found = context_texts(value, where)
        if found is not None or depth > _DEPTH:
            return found
    if messages := read_messages(value):
        return None if tools is None else tool_texts(messages, tools)
    entries = entries_of(value)
    if entries is None:
        if own:
            raise Unreadable(f"{where} is {kind(value)}, not texts or Documents")
        return None
    found = _under_names(entries, where, names, depth, texts=texts)
    if found is None and tools is not None:
        found = tool_texts(read_messages(entries.get("messages"), named=True), tools)
    deeper = partial(find_contexts, names=names, tools=tools, texts=texts, depth=depth + 1)
    return _in_one(entries, lambda inner, at: deeper(inner, where + at)) if found is None else found


def _under_names(
    entries: Mapping[str, object], where: str, names: Names, depth: int, *, texts: bool
) -> list[str] | None:
    lists_first = sorted(names, key=lambda name: isinstance(entries.get(name), str))
    there = [name for name in lists_first if entries.get(name) is not None]
    for name in there if texts else [name for name in there if not isinstance(entries[name], str)]:
        found = find_contexts(entries[name], f"{where}[{name!r}]", own=True, names=names, depth=depth + 1)
        if found is not None:
            return found
    return None


def named_contexts(value: object, where: str) -> list[str]:
    """Return the texts of what someone said are contexts; raise `Unreadable` if it is nothing of the kind."""
    texts = find_contexts(value, where, own=True)
    if texts is None:
        raise Unreadable(f"{where} is {kind(value)}, not texts or Documents")
    return texts


def readable_texts(value: object, where: str) -> tuple[list[str], Unreadable | None]:
    """Return what can be read of what someone said are contexts, and what was wrong with the first of the rest."""
    if not is_list(value) or is_document(value):
        whole = attempt(named_contexts, value, where)
        return ([], whole) if isinstance(whole, Unreadable) else (whole, None)
    read = [attempt(context_text, item, f"{where}[{i}]") for i, item in enumerate(value)]
    problem = next((each for each in read if isinstance(each, Unreadable)), None)
    return [text for text in read if isinstance(text, str)], problem


def tool_texts(turn: Sequence[Message], retriever_tools: Collection[str] = ()) -> list[str] | None:
    """Return the texts that tools retrieved in a turn; None where no tool that retrieves was run.

    A tool retrieves if its artifact holds Documents, or by its name; then its text counts where it has no artifact.
    """
    calls = [as_dict(call) for message in turn for call in message.calls] if retriever_tools else []
    names = {str(call.get("id")): call.get("name") or as_dict(call.get("function")).get("name") for call in calls}
    retrieved: list[str] | None = None
    for message in turn:
        if message.role == "tool" and not message.failed:
            named = str(message.name or names.get(str(message.call_id))) in retriever_tools
            texts = _kept(message.artifact)
            if not texts and named and message.artifact != []:
                texts = _said_by_tool(message)
            if texts or named:
                retrieved = [*(retrieved or ()), *texts]
    return None if retrieved is None else once_each(retrieved)


def _kept(artifact: object) -> list[str]:
    """Return the texts of the Documents that a tool keeps: among others, or under a usual name."""
    if is_mapping(artifact) and not is_document(artifact):
        return _if_readable(find_contexts, artifact, "") or []
    items = artifact if is_list(artifact) and not is_document(artifact) else [artifact]
    return [context_text(item, "a tool's artifact") for item in items if is_document(item)]


def _said_by_tool(message: Message) -> list[str]:
    """Return a tool's text; its passages where it says them one by one, in blocks or as JSON of a search's hits."""
    if (passages := texts_of_results(message.content)) is not None:
        return passages
    try:
        hits = json.loads(message.text) if message.text.lstrip()[:1] in ("{", "[") else None
    except ValueError:
        hits = None
    return (_if_readable(find_contexts, hits, "", own=True, names=_HITS) if hits else None) or [message.text]
