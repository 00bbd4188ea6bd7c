"""From what LangChain hands over to a sample."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ragstone.metrics import Metric
from ragstone.sample import Sample, SampleField
from ragstone_langchain.given import FieldFunction, FieldMapping, Given
from ragstone_langchain.places import (
    ORIGINAL_NAMES,
    USUAL_NAMES,
    TextPlace,
    contexts_of,
    find_contexts,
    find_text,
    response_place,
    retrieved_texts,
    user_input_place,
)
from ragstone_langchain.told import FIELDS, by_function, under_key
from ragstone_langchain.values import Unreadable, kind_of_keys

_OTHER: Mapping[SampleField, SampleField] = {"user_input": "retrieved_contexts", "retrieved_contexts": "user_input"}
_USUAL = {field: ", ".join(map(repr, names)) for field, names in USUAL_NAMES.items()}
_WAYS_OUT: Mapping[SampleField, str] = {
    "user_input": f"pass inputs as text, a message or a mapping with one of {_USUAL['user_input']}",
    "response": "pass outputs as text, an AI message with text, or a mapping with one of " + _USUAL["response"],
    "retrieved_contexts": "pass context as texts or Documents, or outputs with one of "
    f"{_USUAL['retrieved_contexts']}; an agent's tool keeps Documents in its artifact or is named in retriever_tools",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read what was handed over.

    Attributes:
        metric: Its required fields must be there; its source field, if it has one and the user did not choose it,
            is filled from the other one.
        fields: Where the fields are when the names are not the usual ones: a mapping or a function.
        retriever_tools: Names of tools whose messages are contexts.
    """

    metric: Metric
    fields: FieldMapping | FieldFunction | None = None
    retriever_tools: Collection[str] = ()


def read_sample(given: Given, reading: Reading) -> Sample:
    """Return the sample that is in what was handed over, which is not changed.

    Raises:
        Unreadable: A field that the metric needs, or that `fields` names, is not there or is not text. The message
            names the field, what was given and the way out.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> reading = Reading(ContextRelevancy(llm=FakeLLM(lambda request: {"ids": []})))
        >>> read_sample(Given({"question": "Who?"}, {"answer": "Jane.", "context": ["Emma."]}), reading)
        Sample(user_input='Who?', retrieved_contexts=('Emma.',), response='Jane.', id=None, metadata={})
    """
    if callable(reading.fields):
        return by_function(reading.fields, given)
    keys: FieldMapping = reading.fields or {}
    found: dict[SampleField, str | list[str]] = {}
    problems: dict[SampleField, Unreadable] = {}
    for field in FIELDS:
        read = _read_or_problem(field, given, reading, keys.get(field))
        if isinstance(read, Unreadable):
            problems[field] = read
        elif read is not None:
            found[field] = read
    told_wrong: list[SampleField] = [field for field in problems if field in keys]
    if not told_wrong and not reading.metric.source_chosen:
        _fill_source(found, reading.metric.source_field)
    needed: Sequence[SampleField] = told_wrong or reading.metric.required_fields
    for field in needed:
        if field not in found:
            raise Unreadable(
                f"{field}: {problems.get(field) or _absent(field, given)}; {_WAYS_OUT[field]}; "
                f"or say where it is with fields={{{field!r}: KEY}}"
            )
    return Sample.model_validate(found)


def _read_or_problem(
    field: SampleField, given: Given, reading: Reading, key: str | None
) -> str | list[str] | Unreadable | None:
    """Read a field; what is wrong with it is raised later, if the metric needs it."""
    originals = ORIGINAL_NAMES if reading.metric.source_field is not None else ()
    try:
        if field == "retrieved_contexts" and given.context is not None:
            return _context(given.context)
        if key is not None:
            return under_key(field, key, given)
        if field == "response":
            return find_text(response_place(), given.outputs, "outputs", own=True)
        if field == "user_input":
            # Only where it is the original: else "text" beside "question" would take the question's place.
            return _find_user_input(user_input_place(originals if reading.metric.source_field == field else ()), given)
        return _find_contexts((*USUAL_NAMES[field], *originals), given, reading.retriever_tools)
    except Unreadable as problem:
        return problem


def _context(context: object) -> list[str]:
    texts = contexts_of(context, "context")
    if texts is None:
        raise Unreadable(f"context is {kind_of_keys(context)}, not texts or Documents")
    return texts


def _find_user_input(place: TextPlace, given: Given) -> str | None:
    text = find_text(replace(place, lone=False), given.inputs, "inputs", own=True)
    if text is None:
        text = find_text(user_input_place(), given.outputs, "outputs", own=False)
    return find_text(place, given.inputs, "inputs", own=True) if text is None else text


def _find_contexts(names_in_inputs: Sequence[str], given: Given, tools: Collection[str]) -> list[str] | None:
    usual = USUAL_NAMES["retrieved_contexts"]
    texts = find_contexts(usual, given.outputs, "outputs", retriever_tools=tools)
    if texts is None and given.retrieved is not None:
        texts = retrieved_texts(given.retrieved)
    if texts is None:
        texts = find_contexts(names_in_inputs, given.inputs, "inputs", retriever_tools=tools)
    return texts


def _fill_source(found: dict[SampleField, str | list[str]], source: SampleField | None) -> None:
    """Take a summary's original from where the user has it, if not in the field that the metric reads."""
    if source is None or source not in _OTHER or _holds_text(found.get(source)):
        return
    other = found.get(_OTHER[source])
    if other is not None and _holds_text(other):
        found[source] = [other] if isinstance(other, str) else "\n".join(other)  # as AlignmentCoverage joins contexts


def _holds_text(texts: str | list[str] | None) -> bool:
    return any(text.strip() for text in ([texts] if isinstance(texts, str) else texts or ()))


def _absent(field: SampleField, given: Given) -> str:
    places = {"context": given.context, "inputs": given.inputs, "outputs": given.outputs}
    looked_in = {"user_input": ("inputs", "outputs"), "response": ("outputs",), "retrieved_contexts": tuple(places)}
    return f"is not in {' or '.join(f'{name} ({kind_of_keys(places[name])})' for name in looked_in[field])}"
