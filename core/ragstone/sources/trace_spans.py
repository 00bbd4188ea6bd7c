"""Spans of stored traces become runs, in each form in which tools export them; the content says which it is."""

import re
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.runs import Run
from ragstone.fields.read import under
from ragstone.fields.values import text_of_document
from ragstone.plain import as_dict, as_list, is_list, is_mapping
from ragstone.sources.cells import python_value
from ragstone.sources.trace_values import parsed, texts_of_call, unpacked

SpanKind = Literal["", "chain", "retriever", "reranker", "tool", "model", "other"]
"""What a span is. "": nothing says so, as of a web server's; "other": an embedding, a prompt, a grade."""
Record = Mapping[str, Any]
"""A mapping of JSON."""

_WORDS: Mapping[SpanKind, str] = {
    "chain": "chain agent workflow task invoke_agent invoke_workflow",
    "retriever": "vector_db_retrieve retriever retrieval",
    "reranker": "reranker rerank",
    "tool": "tool execute_tool",
    "model": "llm chat_model generation chat completion text_completion generate_content",
    "other": "embedding embeddings guardrail evaluator prompt parser create_agent",
}
_KINDS: Mapping[str, SpanKind] = {word: kind for kind, words in _WORDS.items() for word in words.split()}

# Under these names spans have what they are, were given and gave; the first that is there counts.
_KIND = (
    *("openinference.span.kind", "mlflow.spanType", "langfuse.observation.type", "gen_ai.operation.name"),
    *("llm.request.type", "traceloop.span.kind", "span_kind", "run_type", "type"),
)
_INPUTS = (
    *("input.value", "mlflow.spanInputs", "langfuse.observation.input", "langfuse.trace.input"),
    *("traceloop.entity.input", "gen_ai.input.messages", "gen_ai.prompt", "gen_ai.tool.call.arguments"),
    *("gen_ai.retrieval.query.text", "llm.input_messages", "inputs", "input"),
)
_OUTPUTS = (
    *("output.value", "mlflow.spanOutputs", "langfuse.observation.output", "langfuse.trace.output"),
    *("traceloop.entity.output", "gen_ai.output.messages", "gen_ai.completion", "gen_ai.tool.call.result"),
    *("llm.output_messages", "outputs", "output"),
)
_FOUND = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents", "output.documents")
_GIVEN = ("reranker.input_documents",)
_READ = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt", "llm.prompts")
_INSTRUCTIONS = ("gen_ai.system_instructions",)
_SAID = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_WHO = {
    "user_id": ("user.id", "langfuse.user.id", "userId", "user_id", "mlflow.trace.user"),
    "session_id": ("session.id", "langfuse.session.id", "sessionId", "mlflow.trace.session"),
    "conversation_id": ("gen_ai.conversation.id",),
    "tags": ("tag.tags", "langfuse.trace.tags", "tags"),
}
_TRACE = ("trace_id", "traceId")
_NAME = ("gen_ai.tool.name", "tool.name", "name")
_ID = ("span_id", "spanId", "id")
_ABOVE = (
    *("parent_id", "parentSpanId", "parent_span_id", "parentObservationId", "parent_observation_id"),
    "parent_run_id",
)
_BEGAN = ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano", "timestamp")
_ENDED = ("end_time", "endTime", "endTimeUnixNano", "end_time_unix_nano")
# What holds spans, the outermost first; and what those have inside of them.
_HOLDING = (
    *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    *("trace", "data", "traces", "runs", "spans"),
)
_INSIDE = ("child_runs", "observations")
_ABOUT = ("info", "trace_metadata", "request_metadata", "extra")
_DEEPEST = 12
# What OpenInference writes of an object that it has no JSON of; it may be cut.
_OBJECT = re.compile(r"[A-Z]\w*(?:Event|Input|Output|Response|Result|Message)\((?:\w+=.*)?(?:\)|\.\.\.)", re.DOTALL)
_TYPE_OF_ERROR = re.compile(r"(?:[a-z_]\w*\.)*(\w+)")
_STOPPED = ("CancelledError", "GeneratorExit", "KeyboardInterrupt", "SystemExit")


class SpanError(Exception):
    """The error of a span, as its trace has it: its type, and what it says."""


@dataclass(slots=True, eq=False, kw_only=True)
class Span(Run):
    """A run of a stored trace.

    Attributes:
        trace: The id of its trace.
        above: The id of the span that began it.
        began: When, in the words of its form.
        found: The texts of documents that it says it has found; None where it says none.
        given: The texts of documents that it chose from.
        by_id: The texts of documents that it has found, by their ids.
    """

    trace: str
    above: str
    began: str
    found: Sequence[str] | None = None
    given: Sequence[str] = ()
    by_id: Mapping[str, str] = field(default_factory=dict[str, str])


def holds_spans(value: object) -> bool:
    """Whether a value of JSON is a stored trace, or a part of one, by its content: in a list by the first item's."""
    return any(True for _ in spans_in(value, most=1))


def spans_in(value: object, most: int | None = None) -> Iterator[Span]:
    """Yield the spans in what a tool exports: a request, a trace, a run with those inside of it, or one span.

    Args:
        value: The value.
        most: How many items of a list are looked at.
    """
    waiting: list[tuple[object, str, str, Record]] = [(value, "", "", {})]
    while waiting:
        each, trace, above, about = waiting.pop()
        each = parsed(each)
        if is_list(each):
            waiting += [(one, trace, above, about) for one in each[:most][::-1]]
        record = _tree(as_dict(each))
        fields = {**record, **as_dict(record.get("context"))}
        for name in _ABOUT:
            about = {**about, **as_dict(record.get(name) or about.get(name))}
        trace = trace or _text(fields, _TRACE) or _text(about, (*_TRACE, "request_id"))
        is_span = _is_span(fields)
        if is_span:
            span = _span(fields, trace, above, about)
            yield span
            trace, above = span.trace, str(span.id)
        names = [name for name in (_INSIDE if is_span else _HOLDING) if record.get(name)]
        waiting += [(record[name], trace, above, about) for name in names[:1]]


def _is_span(fields: Record) -> bool:
    """Whether a record is a span: what has a trace is one by its place in it."""
    names = {*fields}
    if "observations" in names or ("run_type" in names and not names.isdisjoint(("inputs", "outputs"))):
        return True
    placed = not names.isdisjoint(_ID[:2]) and not names.isdisjoint((*_BEGAN, "attributes"))
    return not names.isdisjoint(_TRACE) and (placed or not names.isdisjoint(_ABOVE))


def _span(fields: Record, trace: str, above: str, about: Record) -> Span:
    attributes = _attributes(fields.get("attributes"))
    known = {**about, **fields, **attributes}
    word = str(parsed(_first(known, _KIND))).lower()
    inputs = unpacked(_first(known, _INPUTS), _first(known, ["input.mime_type"]))
    output = unpacked(_first(known, _OUTPUTS), _first(known, ["output.mime_type"]))
    if isinstance(output, str) and output == under(known, "output.value") and _OBJECT.fullmatch(output):
        output = None
    found = _documents(_first(known, _FOUND))
    has_values = inputs is not None or output is not None
    kind: SpanKind = _KINDS.get(word) or ("retriever" if found is not None else "chain")
    if kind == "chain" and not has_values:
        kind = ""
    key = _text(fields, _ID)
    span = Span(
        key or object(),
        kind,
        str(_first(known, _NAME) or ""),
        inputs,
        output,
        _error(fields),
        _facts(known),
        open=output is None and any(name in fields and fields[name] is None for name in _ENDED),
        trace=trace or key,
        above=_text(fields, _ABOVE) or above,
        began=_text(fields, _BEGAN).zfill(20),
        found=found,
        given=_documents(_first(known, _GIVEN)) or (),
        by_id=_by_id(_first(known, _FOUND)),
    )
    if kind == "model":
        read, said = _structured(_first(known, _READ)), _structured(_first(known, _SAID))
        span.inputs, span.output = inputs if read is None else read, output if said is None else said
        span.call = ModelCall(texts_of_call([_first(known, _INSTRUCTIONS), span.inputs]), texts_of_call(span.output))
    return span


def _error(fields: Record) -> SpanError | CancelledError | None:
    """The error of a span that failed, or was cancelled, by its status, level or exception."""
    status = fields.get("status")
    record = as_dict(status) or {"code": fields.get("status_code") or status}
    events = [_attributes(as_dict(each).get("attributes")) for each in as_list(parsed(fields.get("events")))]
    raised = next((as_dict(each["exception"]) for each in reversed(events) if "exception" in each), dict[str, Any]())
    code = _text(record, ["code", "status_code"]).upper()
    said = fields.get("error") or fields.get("statusMessage") or fields.get("status_message")
    text = str(said or record.get("message") or record.get("description") or raised.get("message") or code)
    if not (code.endswith("ERROR") or code == "2" or fields.get("level") == "ERROR" or fields.get("error")):
        return None
    begins = _TYPE_OF_ERROR.match(_text(raised, ["type"]) or text)
    kind = begins[1] if begins else ""
    return CancelledError(kind, text) if kind in _STOPPED else SpanError(kind, text)


def _facts(known: Record) -> dict[str, object]:
    """What a sample's metadata says of its run: its name, who asked, in which conversation, and what the app added."""
    own = as_dict(parsed(known.get("metadata")))
    facts = {name: value for name, value in own.items() if isinstance(value, (str, int, float))}
    said = {name: _first(known, names) for name, names in _WHO.items()}
    name = {"name": known["name"]} if known.get("name") else {}
    return {**facts, **{name: parsed(value) for name, value in said.items() if value}, **name}


def _attributes(value: object) -> dict[str, Any]:
    """Attributes by their names, what has numbers for names as a list: OTLP has pairs, others flat names or a tree."""
    value = parsed(value)
    pairs = [(as_dict(each).get("key"), _any_value(as_dict(each).get("value"))) for each in as_list(value)]
    return as_dict(_structured(dict(pairs) if pairs else as_dict(value)))


def _any_value(value: object) -> object:
    """The value of OTLP's `AnyValue`."""
    kind, inner = next(iter(as_dict(value).items()), ("", None))
    if not is_mapping(inner):
        return inner
    items = as_list(inner.get("values"))
    return _attributes(items) if kind.startswith("kvlist") else [_any_value(each) for each in items]


def _tree(value: Any, *, deep: bool = False) -> Any:  # noqa: ANN401 - of JSON
    """A mapping with another one for each dot in its names."""
    if deep and is_list(value):
        return [_tree(each, deep=True) for each in value]
    if not is_mapping(value):
        return value
    tree: dict[str, Any] = {}
    for name, each in value.items():
        new = _tree(each, deep=True) if deep else python_value(each)
        if deep and (new is None or new == {}):
            # Frames have a column for each attribute of any span.
            continue
        *path, last = str(name).split(".", _DEEPEST)
        at = tree
        for part in path:
            if not isinstance(at.get(part), dict):
                at[part] = {}
            at = at[part]
        old = at.get(last)
        at[last] = {**old, **as_dict(new)} if isinstance(old, dict) else new
    return tree


def _listed(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """A tree with a list for what has numbers for names."""
    if isinstance(value, list):
        return [_listed(each) for each in as_list(cast("object", value))]
    entries = {name: _listed(each) for name, each in as_dict(value).items()}
    if entries and all(map(str.isdecimal, entries)):
        return [entries[name] for name in sorted(entries, key=int)]
    return entries if isinstance(value, dict) else value


def _structured(value: object) -> Any:  # noqa: ANN401 - of JSON
    """A value, which may be JSON text, with a mapping or a list for each dot in a name."""
    return _listed(_tree(parsed(value), deep=True))


def _first(record: Record, names: Sequence[str]) -> object:
    """What stands under the first of some names that is there, with dots where it is deeper."""
    return next((found for name in names if (found := under(record, name)) is not None), None)


def _text(record: Record, names: Sequence[str]) -> str:
    found = _first(record, names)
    return "" if found is None else str(found)


def _by_id(documents: object) -> dict[str, str]:
    """The texts of documents by their ids."""
    found = [as_dict(as_dict(each).get("document")) for each in as_list(_structured(documents))]
    return {str(each["id"]): str(each.get("content")) for each in found if "id" in each}


def _documents(value: object) -> list[str] | None:
    """The texts of documents; None where there is no list of them."""
    value = _structured(value)
    if not is_list(value):
        return None
    texts = [text_of_document(each) for each in value]
    return [text for text in texts if text]
