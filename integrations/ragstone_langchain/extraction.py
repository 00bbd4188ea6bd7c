"""Question, contexts and answer in whatever LangChain's apps take and return, for evaluators and live runs alike."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, ParamSpec, TypeVar, get_args

from pydantic import ValidationError

from ragstone.errors import describe
from ragstone.metrics import Metric
from ragstone.options import checked
from ragstone.plain import as_list, is_list, is_mapping, to_plain
from ragstone.sample import Sample, SampleField, first_problem
from ragstone_langchain.messages import (
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
    tool_texts,
    without_thoughts,
)

FieldMapping = Mapping[str, str]
FieldFunction = Callable[..., Sample | Mapping[str, object]]
P = ParamSpec("P")
T = TypeVar("T")
TextField = Literal["user_input", "response", "reference"]

FIELDS: tuple[SampleField, ...] = get_args(SampleField)
FIELD_NAMES: Mapping[SampleField, tuple[str, ...]] = {
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
    "reference": ("reference", "reference_answer", "ground_truth", "expected_output", "expected"),
}
"""The keys under which LangChain's chains, tutorials and evaluators keep each field; the first that is there counts."""

_OTHERS = {field: {name for other in FIELDS if other != field for name in FIELD_NAMES[other]} for field in FIELDS}
_QUESTION_TOO = ("prompt", "request", "topic", "message", "text", "content")  # in inputs, where no other name is
_STRUCTURED = ("structured_response", "parsed")  # where agents and `with_structured_output(include_raw=True)` put it
_ORIGINAL_NAMES = ("text", "document", "source", "article", "original")  # of what a summariser is to sum up
# What a mapping may hold beside the fields, and hold alone when something went wrong.
_NOT_ALONE = {
    *("error", "errors", "status", "id", "run_id", "message_id", "thread_id", "session_id", "user_id", "language"),
    *("messages", "reference", "reference_contexts", "reference_outputs", "ground_truth"),
}
_BESIDE = _NOT_ALONE | {  # what is no field beside another text
    *("lang", "locale", "model", "model_name", "name", "type", "source", "user", "tenant", "route", "intent"),
    *("category", "label", "prompt", "request", "topic"),
}
_DEPTH = 4  # {"output": {"state": {"messages": ...}}} and one to spare
_WAYS_OUT: Mapping[SampleField, str] = {
    "user_input": "pass inputs as text, a message or a mapping with one of %s",
    "response": "pass outputs as text, an AI message with text, or a mapping with one of %s",
    "retrieved_contexts": "pass context as texts or Documents, or outputs with one of %s; an agent's tool keeps "
    "Documents in its artifact or is named in retriever_tools",
    "reference": "pass reference_outputs as text, or a mapping with one of %s or with an answer",
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an evaluator is called with, as LangSmith names it. `retrieved` is what a run's retrievers returned."""

    inputs: object = None
    outputs: object = None
    reference_outputs: object = None
    context: object = None
    retrieved: Sequence[object] | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """How a metric's sample is read from an evaluator's arguments: see `RagEvaluator` for the options."""

    metric: Metric
    fields: FieldMapping | FieldFunction | None = None
    retriever_tools: Collection[str] = ()

    def __post_init__(self) -> None:
        if not callable(self.fields):
            checked("fields", self.fields, dict[SampleField, str] | None)

    def sample(self, arguments: Arguments) -> Sample:
        """Return the sample in the arguments; raise Unreadable where a field that the metric needs is not there."""
        if callable(self.fields):
            return _by_function(self.fields, arguments)
        keys: FieldMapping = self.fields or {}
        values: dict[SampleField, str | list[str]] = {}
        problems: dict[SampleField, Unreadable] = {}
        for field in FIELDS:
            value = _attempt(self._field, field, arguments, keys.get(field))
            if isinstance(value, Unreadable):
                problems[field] = value
            elif value is not None:
                values[field] = value
        wrong_keys: list[SampleField] = [field for field in problems if field in keys]
        if not wrong_keys and not self.metric.source_chosen:
            _fill_source(values, self.metric.source_field)
        for field in wrong_keys or self.metric.required_fields:
            if field not in values:
                names = ", ".join(map(repr, FIELD_NAMES[field]))
                raise Unreadable(
                    f"{field}: {problems.get(field) or _absent(field, arguments)}; {_WAYS_OUT[field] % names}; "
                    f"or name its key with fields={{{field!r}: KEY}}"
                )
        question = values.get("user_input")
        asked = question if isinstance(question, str) else None
        history = earlier_turns(arguments.inputs, asked, asked=True) or earlier_turns(arguments.outputs, asked)
        return Sample.model_validate({**values, **({"history": history} if history else {})})

    def _field(self, field: SampleField, arguments: Arguments, key: str | None) -> str | list[str] | None:
        originals = _ORIGINAL_NAMES if self.metric.source_field is not None else ()
        if field == "retrieved_contexts" and arguments.context is not None:
            return named_contexts(arguments.context, "context")
        if key is not None:
            return _under_key(field, key, arguments)
        if field == "response":
            return find_text(field, arguments.outputs, "outputs")
        if field == "reference":
            names = (*FIELD_NAMES["reference"], *FIELD_NAMES["response"])
            return find_text(field, arguments.reference_outputs, "reference_outputs", names=names)
        if field == "user_input":
            # Only where it is the original: else "text" beside "question" would take the question's place.
            return find_question(
                arguments.inputs, arguments.outputs, originals if self.metric.source_field == field else ()
            )
        texts = find_contexts(arguments.outputs, "outputs", tools=self.retriever_tools)
        if texts is None and arguments.retrieved is not None:
            texts = retrieved_texts(arguments.retrieved)
        if texts is None:
            names = (*FIELD_NAMES[field], *originals)
            texts = find_contexts(arguments.inputs, "inputs", names=names, tools=self.retriever_tools)
        return texts


def _fill_source(values: dict[SampleField, str | list[str]], source: SampleField | None) -> None:
    """Take a summary's original from where the user has it, if not in the field that the metric reads."""
    if source not in ("user_input", "retrieved_contexts") or _has_text(values.get(source)):
        return
    if values.get(source) == []:  # nothing was retrieved
        return
    other = values.get("retrieved_contexts" if source == "user_input" else "user_input")
    if other is not None and _has_text(other):
        values[source] = [other] if isinstance(other, str) else "\n".join(other)  # as AlignmentCoverage joins contexts


def _has_text(texts: str | list[str] | None) -> bool:
    return any(text.strip() for text in ([texts] if isinstance(texts, str) else texts or ()))


def _absent(field: SampleField, arguments: Arguments) -> str:
    places = {
        "user_input": "inputs outputs",
        "response": "outputs",
        "retrieved_contexts": "context inputs outputs",
        "reference": "reference_outputs",
    }
    return f"is not in {' or '.join(f'{name} ({kind(getattr(arguments, name))})' for name in places[field].split())}"


def _under_key(field: SampleField, key: str, arguments: Arguments) -> str | list[str]:
    """Return a field that stands under a key of the outputs, the inputs or the reference; else raise Unreadable."""
    places = {name: getattr(arguments, name) for name in ("outputs", "inputs", "reference_outputs")}
    for name, value in places.items():
        for where, entries in _levels(value, name):
            if key in entries:
                return _strictly(field, entries[key], f"{where}[{key!r}]")
    there = ", ".join(f"{name} ({kind(value)})" for name, value in places.items())
    raise Unreadable(f"fields= names the key {key!r}, which is not in {there}")


def _levels(value: object, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the entries of a value and, where it only packs another one as LangSmith does, those of that one."""
    for _ in range(3):
        entries = entries_of(value)
        if entries is None:
            return
        yield where, entries
        if len(entries) != 1:
            return
        ((name, value),) = entries.items()
        where = f"{where}[{name!r}]"


def _strictly(field: SampleField, value: object, where: str) -> str | list[str]:
    """Read a value that someone said is the field; raise Unreadable if it is not."""
    if field == "retrieved_contexts":
        return named_contexts(value, where)
    text = find_text(field, value, where)
    if text is None:
        raise Unreadable(f"{where} is {kind(value)}, not text")
    return text


def _by_function(function: FieldFunction, arguments: Arguments) -> Sample:
    context = arguments.context
    if context is None and arguments.retrieved is not None:
        context = retrieved_texts(arguments.retrieved)
    inputs, outputs, reference = arguments.inputs, arguments.outputs, arguments.reference_outputs
    try:
        result = function(inputs=inputs, outputs=outputs, reference_outputs=reference, context=context)
    except Exception as error:
        raise Unreadable(f"fields: the function raised {describe(error, most=300)}") from error
    sample = to_sample(result, "fields")
    if sample is None:
        raise Unreadable("fields: the function returned None; return a Sample or a mapping of its fields")
    return sample


def to_sample(result: object, option: str) -> Sample | None:
    """Return the sample that a user's function returned: one, a mapping of its fields, or None for none."""
    if result is None or isinstance(result, Sample):
        return result
    if not is_mapping(result):
        raise Unreadable(f"{option}: the function returned {kind(result)}; return a Sample or a mapping of its fields")
    fields = {name: value for name, value in result.items() if value is not None}
    for field in FIELDS:
        if field in fields:
            fields[field] = _strictly(field, fields[field], f"{option}: the function's {field!r}")
    try:
        return Sample.model_validate(fields)
    except ValidationError as error:
        raise Unreadable(f"{option}: the function's {first_problem(error)}") from None


def find_question(inputs: object, outputs: object, originals: Sequence[str] = (), *, lone: bool = True) -> str | None:
    """Return the question: in the inputs by a usual name, else in the outputs, else the only text of the inputs."""
    own, *others = FIELD_NAMES["user_input"]
    names = (own, *originals, *others)
    problem: Unreadable | None = None
    for read in (
        partial(find_text, "user_input", inputs, "inputs", names=names, lone=False),
        partial(find_text, "user_input", inputs, "inputs", names=(*names, *_QUESTION_TOO), lone=False),
        partial(find_text, "user_input", outputs, "outputs", own=False),
        partial(find_text, "user_input", inputs, "inputs", names=names, lone=lone),
    ):
        text = _attempt(read)
        if isinstance(text, str):
            return text
        problem = problem or text
    if problem is not None:
        raise problem
    return None


def _attempt(read: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Unreadable:
    """Return what a function reads, or the `Unreadable` that it raises."""
    try:
        return read(*args, **options)
    except Unreadable as problem:
        return problem


def if_readable(read: Callable[P, T | None], *args: P.args, **options: P.kwargs) -> T | None:
    """Return what a function reads; None where it raises `Unreadable`."""
    value = _attempt(read, *args, **options)
    return None if isinstance(value, Unreadable) else value


def find_text(
    field: TextField,
    value: object,
    where: str,
    *,
    own: bool = True,
    lone: bool = True,
    names: Sequence[str] | None = None,
) -> str | None:
    """Return the question or the answer in a value of any form; None where it is not there.

    With `own` the value as a whole is meant to be the field, so that a bare text is it, and anything that could not
    hold it is Unreadable. With `lone` the only text of a mapping is the field, whatever its key, where no usual name
    leads to another.
    """
    names = FIELD_NAMES[field] if names is None else names
    text = _text_in(field, value, where, own, False, names, 0)
    return _text_in(field, value, where, own, True, names, 0) if text is None and lone else text


def _text_in(
    field: TextField, value: object, where: str, own: bool, lone: bool, names: Sequence[str], depth: int
) -> str | None:
    if value is None or depth > _DEPTH:
        return None
    if isinstance(value, str):
        return None if not own else without_thoughts(value) if field == "response" else value
    if own and (message := read_message(value)) is not None:
        if field == "response" and not message.is_answer:
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
    for name, meant in _leading(field, value, entries, own=own, lone=lone, names=names).items():
        text = _text_in(field, entries[name], f"{where}[{name!r}]", meant, lone, names, depth + 1)
        if text is not None:
            return text
    text = in_messages(read_messages(entries.get("messages"), named=True))
    if field == "response" and (text is None or text.lstrip()[:1] in ("{", "[")):  # its own text may be it as JSON
        made = next((entries[name] for name in _STRUCTURED if name in entries), None)
        if made is None and own and lone and not (is_mapping(value) or _OTHERS[field] & entries.keys()):
            made = value  # a pydantic model or a dataclass that is no state
        return text if made is None else _as_read(made)
    return text


def _leading(
    field: TextField, value: object, entries: Mapping[str, object], *, own: bool, lone: bool, names: Sequence[str]
) -> dict[str, bool]:
    """Return the names under which a field may stand, and whether what stands there is meant to be it."""
    inside = dict.fromkeys((name for name in names if name in entries), True)
    if len(entries) == 1 and not inside:
        ((name, only),) = entries.items()
        # A number, say, under an unknown name is nothing; under a name of the field's own it is a mistake.
        if isinstance(only, str) or read_messages(only) or entries_of(only) is not None:
            return {name: own and lone and name not in _OTHERS[field] | _NOT_ALONE}
    elif own and lone and not inside and (field != "response" or is_mapping(value)):
        texts = entries.keys() - _OTHERS[field] - _BESIDE
        texts = {name for name in texts if read_message(x := entries[name]) or (isinstance(x, str) and x.strip())}
        return dict.fromkeys(texts, True) if len(texts) == 1 else {}
    return inside


def _as_read(answer: object) -> str:
    """Return what a person would read of a structured answer: its text where it is one, else all of it as JSON."""
    entries = entries_of(answer)
    lone = entries is not None and len(entries) == 1
    text = if_readable(find_text, "response", entries if entries else answer, "", lone=lone)
    return text or json.dumps(to_plain(answer), ensure_ascii=False)


def find_contexts(
    value: object,
    where: str,
    *,
    own: bool = False,
    names: Sequence[str] = FIELD_NAMES["retrieved_contexts"],
    tools: Collection[str] = (),
    depth: int = 0,
) -> list[str] | None:
    """Return the texts of the contexts in a value of any form; None where there are none.

    With `own` the value is meant to be contexts, so that texts are, and anything else is Unreadable; otherwise
    documents alone are. `tools` are the names of those that retrieve and keep no Documents.
    """
    if not own and (value is None or isinstance(value, str) or depth > _DEPTH):
        return None
    if own or are_documents(value):
        texts = context_texts(value, where)
        if texts is not None or depth > _DEPTH:
            return texts
    if messages := read_messages(value):
        return tool_texts(messages, tools)
    entries = entries_of(value)
    if entries is None:
        if own:
            raise Unreadable(f"{where} is {kind(value)}, not texts or Documents")
        return None
    for name in sorted(names, key=lambda name: isinstance(entries.get(name), str)):  # text may be what the prompt shows
        if name in entries:
            texts = find_contexts(entries[name], f"{where}[{name!r}]", own=True, names=names, depth=depth + 1)
            if texts is not None:
                return texts
    if len(entries) == 1 and "messages" not in entries:
        ((name, inside),) = entries.items()
        return find_contexts(inside, f"{where}[{name!r}]", names=names, tools=tools, depth=depth + 1)
    return tool_texts(read_messages(entries.get("messages"), named=True), tools)


def named_contexts(value: object, where: str) -> list[str]:
    """Return the texts of what someone said are contexts; raise `Unreadable` if it is nothing of the kind."""
    texts = find_contexts(value, where, own=True)
    if texts is None:
        raise Unreadable(f"{where} is {kind(value)}, not texts or Documents")
    return texts


def readable_texts(value: object, where: str) -> tuple[list[str], Unreadable | None]:
    """Return what can be read of what someone said are contexts, and what was wrong with the first of the rest."""
    if not is_list(value) or is_document(value):
        whole = _attempt(named_contexts, value, where)
        return ([], whole) if isinstance(whole, Unreadable) else (whole, None)
    read = [_attempt(context_text, item, f"{where}[{i}]") for i, item in enumerate(value)]
    problem = next((each for each in read if isinstance(each, Unreadable)), None)
    return [text for text in read if isinstance(text, str)], problem


def retrieved_texts(retrieved: Sequence[object]) -> list[str]:
    """Return the texts of what several retriever runs returned, each once; raise `Unreadable` for anything else."""
    # LangChain's retrievers name what they return "documents"; LangSmith packs what a traced function does as "output".
    names = ("documents", "output")
    each = (find_contexts(one, f"retriever run {i}", own=True, names=names) for i, one in enumerate(retrieved, 1))
    return once_each(text for texts in each for text in texts or ())


def waits_for_tools(outputs: object, resumable: bool) -> bool:
    """Say whether an agent has stopped before the tools that it calls, as `interrupt_before` makes it.

    A last message of text and tool calls is an answer, except in the state of a graph that can be resumed: nothing
    says of that whether it has ended.
    """
    messages = state_messages(outputs)
    if not messages or messages[-1].role != "ai" or not messages[-1].calls_tools:
        return False
    return not messages[-1].is_answer or (resumable and read_message(outputs) is None)


def state_messages(state: object) -> Sequence[Message]:
    """Return the messages of a state, or those that it is."""
    return read_messages(state.get("messages"), named=True) if is_mapping(state) else read_messages(state)


def stated_contexts(outputs: object) -> Sequence[str] | None:
    """Return the documents or the list of texts under a usual name, if none, too; None where there is no such name.

    One text under it may be what the prompt was given.
    """
    if (entries := entries_of(outputs)) is not None:
        outputs = {name: value for name, value in entries.items() if name != "messages" and not isinstance(value, str)}
    return if_readable(find_contexts, outputs, "")


def any_contexts(value: object, tools: Collection[str] = ()) -> Sequence[str]:
    """Return the contexts that are anywhere in a run's inputs or outputs."""
    return once_each(if_readable(find_contexts, value, "", tools=tools) or ())


def documents_passed(outputs: object) -> Sequence[str]:
    """Return the texts of the documents that a step passes on: alone, or under a usual name."""
    if type(outputs).__name__ == "Command":  # LangGraph's
        outputs = getattr(outputs, "update", None)
    values: list[object] = [outputs] if as_list(outputs) and are_documents(outputs) else []
    if is_mapping(outputs):  # one text may be anything; a list under such a name is of documents or their texts
        named = (outputs[name] for name in FIELD_NAMES["retrieved_contexts"] if name in outputs)
        values = [value for value in named if not isinstance(value, str)]
    return next(filter(None, (if_readable(context_texts, value, "") for value in values)), ())


def tool_result(output: object) -> tuple[Sequence[str], str | None]:
    """Return what a tool returned: the texts of its documents (its message's artifact, or as they are), and its text.

    The text is None where the tool failed, has kept an empty list of documents, or returned something else.
    """
    message = read_message(output)
    if message is not None:
        is_text = not message.failed and message.artifact != []
        return tool_texts([message]) or (), message.text if is_text else None
    texts = if_readable(context_texts, output, "") if are_documents(output) else None
    return texts or (), output if isinstance(output, str) else None
