"""Spans of stored traces become runs, in each form in which tools export them; the content says which it is."""

import re
from asyncio import CancelledError
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.runs import Run
from ragstone.fields.read import under
from ragstone.fields.values import text_of_document
from ragstone.plain import as_dict, as_list, is_list, is_mapping
from ragstone.sources.trace_values import by_dots, structured, texts_of_call, unpacked
from ragstone.sources.written import parsed

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

_NAMES: Mapping[str, Sequence[str]] = {
    "kind": (
        *("openinference.span.kind", "mlflow.spanType", "langfuse.observation.type", "gen_ai.operation.name"),
        *("llm.request.type", "traceloop.span.kind", "span_kind", "run_type", "type"),
    ),
    "inputs": (
        *("input.value", "mlflow.spanInputs", "langfuse.observation.input", "langfuse.trace.input"),
        *("traceloop.entity.input", "gen_ai.input.messages", "gen_ai.prompt", "gen_ai.tool.call.arguments"),
        *("gen_ai.retrieval.query.text", "llm.input_messages", "inputs", "input"),
    ),
    "output": (
        *("output.value", "mlflow.spanOutputs", "langfuse.observation.output", "langfuse.trace.output"),
        *("traceloop.entity.output", "gen_ai.output.messages", "gen_ai.completion", "gen_ai.tool.call.result"),
        *("llm.output_messages", "outputs", "output"),
    ),
    "found": ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents", "output.documents"),
    "given": ("reranker.input_documents",),
    "prompt": ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt", "llm.prompts"),
    "instructions": ("gen_ai.system_instructions",),
    "said": ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion"),
    "trace": ("trace_id", "traceId", "request_id"),
    "name": ("gen_ai.tool.name", "tool.name", "name"),
    "id": ("span_id", "spanId", "id"),
    "above": (
        *("parent_id", "parentSpanId", "parent_span_id", "parentObservationId", "parent_observation_id"),
        "parent_run_id",
    ),
    "began": ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano", "timestamp"),
    "code": ("status.code", "status.status_code", "status_code", "status"),
    "problem": ("error", "statusMessage", "status_message", "status.message", "status.description"),
}
"""Under these names spans have what they are, were given and gave; the first that is there counts."""
# What holds spans, the outermost first; and what those have inside of them.
_HOLDING = (
    *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    *("trace", "data", "traces", "runs", "spans"),
)
_INSIDE = ("child_runs", "observations")
_ENDED = ("end_time", "endTime", "endTimeUnixNano", "end_time_unix_nano")
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
        found: The texts of documents that it says it has found, with their ids; None where it says none.
        given: The texts of documents that it chose from.
    """

    trace: str
    above: str
    began: str
    found: Mapping[str, str] | None = None
    given: Iterable[str] = ()


def holds_spans(value: object) -> bool:
    """Whether a value of JSON is a stored trace, or a part of one, by its content: in a list by the first item's."""
    return any(True for _ in spans_in(value, most=1))


def spans_in(value: object, most: int | None = None) -> Iterator[Span]:
    """Yield the spans in what a tool exports: a request, a trace, a run with those inside of it, or one span.

    Args:
        value: The value.
        most: How many items of a list are looked at.
    """
    waiting: list[tuple[object, str, str]] = [(value, "", "")]
    while waiting:
        each, trace, above = waiting.pop()
        each = parsed(each)
        if is_list(each):
            waiting += [(one, trace, above) for one in each[:most][::-1]]
        record = by_dots(as_dict(each))
        fields = {**record, **as_dict(record.get("context"))}
        trace = trace or _text(fields, "trace")
        is_span = _is_span(fields)
        if is_span:
            span = _span(fields, trace, above)
            yield span
            trace, above = span.trace, str(span.id)
        names = _INSIDE if is_span else _HOLDING
        waiting += [(record[name], trace, above) for name in names if record.get(name)][:1]


def _is_span(fields: Record) -> bool:
    """Whether a record is a span: what has a trace is one by its place in it."""
    names = {*fields}
    if "observations" in names or ("run_type" in names and not names.isdisjoint(("inputs", "outputs"))):
        return True
    placed = not names.isdisjoint(_NAMES["id"][:2]) and not names.isdisjoint((*_NAMES["began"], "attributes"))
    return not names.isdisjoint(_NAMES["trace"][:2]) and (placed or not names.isdisjoint(_NAMES["above"]))


def _span(fields: Record, trace: str, above: str) -> Span:
    """The span that a record of any form is."""
    known = {**fields, **_attributes(fields.get("attributes"))}
    inputs = unpacked(_first(known, "inputs"), under(known, "input.mime_type"))
    output = unpacked(_first(known, "output"), under(known, "output.mime_type"))
    if isinstance(output, str) and output == under(known, "output.value") and _OBJECT.fullmatch(output):
        output = None
    found, key = _documents(_first(known, "found")), _text(fields, "id")
    word = str(parsed(_first(known, "kind"))).lower()
    kind: SpanKind = _KINDS.get(word) or ("chain" if found is None else "retriever")
    call = None
    if kind == "chain" and inputs is None and output is None:
        kind = ""
    if kind == "model":
        prompt = [_first(known, "instructions"), _first(known, "prompt") or inputs]
        call = ModelCall(texts_of_call(prompt), texts_of_call(_first(known, "said") or output))
    return Span(
        key or object(),
        kind,
        _text(known, "name"),
        inputs,
        output,
        _error(fields),
        open=output is None and None in [fields.get(name, "") for name in _ENDED],
        call=call,
        trace=trace or key,
        above=_text(fields, "above") or above,
        began=_text(fields, "began").zfill(20),
        found=found,
        given=_documents(_first(known, "given")) or (),
    )


def _error(fields: Record) -> SpanError | CancelledError | None:
    """The error of a span that failed, or was cancelled, by its status, level or exception."""
    code = _text(fields, "code").upper()
    if not (code.endswith("ERROR") or code == "2" or fields.get("level") == "ERROR" or fields.get("error")):
        return None
    events = [_attributes(as_dict(each).get("attributes")) for each in as_list(parsed(fields.get("events")))]
    raised = next((as_dict(each["exception"]) for each in reversed(events) if "exception" in each), dict[str, Any]())
    text = _text(fields, "problem") or str(raised.get("message") or code)
    begins = _TYPE_OF_ERROR.match(str(raised.get("type") or text))
    kind = begins[1] if begins else ""
    return CancelledError(kind, text) if kind in _STOPPED else SpanError(kind, text)


def _attributes(value: object) -> dict[str, Any]:
    """Attributes by their names: OTLP has pairs, others flat names or a tree."""
    value = parsed(value)
    if is_list(value):
        value = {as_dict(each).get("key"): _any_value(as_dict(each).get("value")) for each in value}
    return as_dict(structured(value))


def _any_value(value: object) -> object:
    """The value of OTLP's `AnyValue`."""
    kind, inner = next(iter(as_dict(value).items()), ("", None))
    if not is_mapping(inner):
        return inner
    items = as_list(inner.get("values"))
    return _attributes(items) if kind.startswith("kvlist") else [_any_value(each) for each in items]


def _first(record: Record, what: str, names: Mapping[str, Sequence[str]] = _NAMES) -> object:
    """What stands under the first of some names that is there, with dots where it is deeper."""
    return next((found for name in names[what] if (found := under(record, name)) is not None), None)


def _text(record: Record, what: str) -> str:
    return str(_first(record, what) or "")


def _documents(value: object) -> dict[str, str] | None:
    """The ids of documents by their texts; None where there is no list of them."""
    value = structured(parsed(value))
    if not is_list(value):
        return None
    found = {text_of_document(each): str(under(each, "document.id") or "") for each in value}
    return {text: key for text, key in found.items() if text}
