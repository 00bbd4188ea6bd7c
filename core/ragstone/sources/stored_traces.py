"""Stored traces become rows of samples: their spans are read as the runs of a live app are."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.fields_by_user import by_name, draft_of
from ragstone.adapters.narrowing import narrowed
from ragstone.adapters.open_runs import MOST_IN_PROMPTS
from ragstone.adapters.runs import CANCELLED, Draft, Run, Searched, Skipped, Unreadable
from ragstone.errors import describe
from ragstone.fields.names import FieldName, strongly
from ragstone.fields.read import Found, Read, likely, read
from ragstone.plain import as_dict, as_list, is_list, to_json
from ragstone.sample import BadLine, FirstRow, Row, SampleField, Turn, name_list, naming_of
from ragstone.sources.trace_spans import Span, SpanError, spans_in
from ragstone.sources.trace_values import FORMS, conversation, dumped, message_in, parsed

MOST_OPEN = 1_000
"""So many other traces may begin before the last span of a trace comes."""
_MOST_KNOWN = 10_000
_WAITING = "GraphInterrupt"
# An app steers itself by these.
_STEERING = ("GeneratorExit", _WAITING, "ParentCommand")
_SEARCHING = ("retriever", "reranker")
_LONGEST = 100
# How a tracer writes a node.
_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=([\w-]+)\)")
_ITSELF = "the output itself"
_ASKED: Sequence[FieldName] = ("user_input", "retrieved_contexts")
_ANSWERED: Sequence[FieldName] = ("response", "retrieved_contexts", "user_input")
_ALONE = {
    "model": "a model was called outside of any chain, and its prompt need not be the question",
    "retriever": "no answer followed the retrieval",
    "": "no span says what was asked and answered",
}
_WHY = {
    "cancelled": "the app or its user cancelled the run",
    "interrupted": "the run waits for a person",
    "never_ended": "it has not ended",
    "no_answer": "what it returned has no answer under a name that says so",
    "no_question": "what it was asked has no question under a name that says so",
}


# --- the tree -----------------------------------------------------------------------------------------------------


def _entries(spans: Sequence[Span]) -> tuple[Sequence[Span], str]:
    """The outermost spans of a trace that may be samples; or why there are none."""
    by_id = {span.id: span for span in spans}
    tops: dict[str, list[Run]] = {}
    for span in sorted(by_id.values(), key=lambda span: span.began):
        above = by_id.get(span.above)
        if above is None:
            tops.setdefault(span.above, []).append(span)
        else:
            span.parent = above
            above.inside.append(span)
    for name, below in tops.items():
        if name and len(below) > 1:
            return (), f"{len(below)} spans are below {name[:50]!r}, which is not there"
    entries: list[Span] = []
    others: list[str] = []
    waiting = [run for below in tops.values() for run in below][::-1]
    while waiting:
        run = waiting.pop()
        if isinstance(run, Span) and run.kind == "chain" and not _only_repeats(run):
            entries.append(run)
        elif run.kind in ("", "tool", "chain"):
            waiting += run.inside[::-1]
            for each in run.inside:
                each.metadata = {**run.metadata, **each.metadata}
        else:
            others.append(run.kind)
    why = next((_ALONE[kind] for kind in others if kind in _ALONE), _ALONE[""])
    return entries, why if tops else "its spans are below each other"


def _only_repeats(span: Span) -> bool:
    """Whether a trace's own record says what the only span in it says."""
    one = span.inside[0] if len(span.inside) == 1 and span.id == span.trace else None
    return one is not None and (one.inputs, one.output) == (span.inputs, span.output)


@dataclass(slots=True, eq=False)
class _Inside:
    """What the spans inside of one have come to: what searches found, what steps passed on, the calls of models."""

    found: dict[str, None] = field(default_factory=dict[str, None])
    passed: dict[str, None] = field(default_factory=dict[str, None])
    on_the_way: list[str] = field(default_factory=list[str])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    given: list[object] = field(default_factory=list[object])
    by_id: dict[str, str] = field(default_factory=dict[str, str])
    searched: bool = False
    open: bool = False
    waits: bool = False

    def note(self, root: Span, tools: Collection[str]) -> None:
        """Note the spans inside of one: a search is an outermost retriever or tool that ended well."""
        waiting = [(each, False, False) for each in root.inside[::-1]]
        while waiting:
            span, searching, lost = waiting.pop()
            kind = span.error.args[0] if isinstance(span.error, SpanError) else ""
            lost = lost or (span.error is not None and kind not in _STEERING)
            self.open, self.waits = self.open or span.open, self.waits or kind == _WAITING
            texts = None if lost or not isinstance(span, Span) else _found_by(span, tools)
            search = span.kind in _SEARCHING or (span.kind == "tool" and texts is not None)
            waiting += [(each, searching or search, lost) for each in span.inside[::-1]]
            if not lost:
                self.calls += () if span.call is None else [span.call]
                self.given += [span.inputs] if span.kind == "chain" else []
                if texts is not None and not searching and isinstance(span, Span):
                    self._add(span, texts, search=search)
                elif span.kind == "chain" and not searching and (chosen := self._named_in(span.output)):
                    self._choose(self._named_in(as_dict(span.inputs).get("nodes")), chosen)

    def _add(self, span: Span, texts: Sequence[str], *, search: bool) -> None:
        self.searched = self.searched or search
        self.by_id |= span.by_id
        if search:
            self._choose(span.given, texts)
            return
        # A step that returns some of those before has chosen.
        if texts and self.passed.keys() >= {*texts}:
            self.passed.clear()
        self.passed |= dict.fromkeys(texts)
        self.on_the_way += texts

    def _choose(self, given: Sequence[str], chosen: Sequence[str]) -> None:
        for text in given:
            self.found.pop(text, None)
        self.found |= dict.fromkeys(chosen)

    def _named_in(self, nodes: object) -> list[str]:
        """The texts of found documents in a list that names them by their ids, as a step that chooses returns it."""
        ids = [match[1] for each in as_list(nodes) if isinstance(each, str) and (match := _NODE.match(each))]
        return [self.by_id[one] for one in ids if one in self.by_id]


def _found_by(span: Span, tools: Collection[str]) -> Sequence[str] | None:
    """The texts that a span has found, or passed on; None where it is none that does."""
    if span.found is not None or span.output is None:
        return span.found
    if span.kind in _SEARCHING:
        whole = {"documents": span.output} if is_list(span.output) else span.output
        return cast("list[str]", read_whole(whole, ["retrieved_contexts"]).value("retrieved_contexts") or [])
    if span.kind not in ("chain", "tool"):
        return None
    message = message_in(span.output)
    kept = span.output if message is None else as_dict(span.output).get("artifact")
    if (texts := _documents_in(kept)) or span.kind == "chain" or span.name not in tools:
        return texts or None
    if any(each.kind == "retriever" for each in span.walk()):
        return None
    content = parsed(span.output if message is None else message.content)
    hits = read({"documents": content} if is_list(content) else content, FORMS, ["retrieved_contexts"])
    said = hits.value("retrieved_contexts") or [content if isinstance(content, str) else to_json(content)]
    return cast("list[str]", said)


def _documents_in(value: object) -> list[str] | None:
    """The texts of documents, or of those under a usual name in a state; None where neither is there."""
    found = read_whole(value, ["retrieved_contexts"]).found.get("retrieved_contexts")
    return None if found is None or isinstance(found.raw, str) else cast("list[str]", found.value)


def read_whole(value: object, fields: Sequence[FieldName]) -> Read:
    """What a span was given, or gave: a state, or what is a field itself, first of all the first one."""
    if FORMS.entries(value) is not None:
        return read(value, FORMS, fields)
    are_documents = any("page_content" in dumped(each) for each in (value if is_list(value) else [value]))
    found: dict[FieldName, Found] = {}
    for name in fields:
        of_contexts = name == "retrieved_contexts"
        fits = are_documents if of_contexts else name == fields[0] or (is_list(value) and bool(conversation(value)))
        if fits and (read_as := FORMS.value(name, value)) is not None:
            found[name] = Found(read_as, _ITSELF, value)
    return Read(found)


# --- the sample --------------------------------------------------------------------------------------------------


def _question(asked: Read, answered: Read) -> Found | None:
    """The question: in the inputs, or in the outputs where the inputs have none."""
    if (found := asked.found.get("user_input")) is not None:
        return found._replace(name="the input itself" if found.name == _ITSELF else f"inputs.{found.name}")
    return None if "user_input" in asked.conflicts else answered.found.get("user_input")


def _contexts(asked: Read, answered: Read, inside: _Inside) -> Found | None:
    """The contexts: stated in the output, found by searches, passed on by steps, or given; the first that are there."""
    stated, given = answered.found.get("retrieved_contexts"), asked.found.get("retrieved_contexts")
    repeated = stated is not None and given is not None and stated.value == given.value
    if stated is not None and not repeated and not isinstance(stated.raw, str):
        return stated
    if names := answered.conflicts.get("retrieved_contexts"):
        raise Unreadable(f"retrieved_contexts: {name_list(names)} differ")
    if inside.found:
        size = sum(len(text) for call in inside.calls for text in call.prompt)
        calls = inside.calls if size <= MOST_IN_PROMPTS else []
        found = [*inside.found]
        return Found(found, f"searches ({len(found)})", Searched(found, calls, inside.on_the_way))
    if inside.passed:
        return Found([*inside.passed], "steps")
    return stated or given or (Found([], "searches (0)") if inside.searched else None)


def _history(span: Span, question: object, inside: _Inside) -> Sequence[Turn]:
    """The turns before the question, in a conversation that the span or a step in it was given."""
    for value in (span.inputs, span.output, *inside.given):
        entries = {"messages": value} if is_list(value) else FORMS.entries(value) or {}
        for name, held in entries.items():
            said = conversation(held) if name == "messages" or "history" in strongly(name) else ()
            spoken = [each for each in said if each.role in ("user", "assistant") and each.text.strip()]
            asked = [i for i, each in enumerate(spoken) if each.role == "user" and each.text == question]
            end = asked[-1] if asked else 0 if name == "messages" else len(spoken)
            if turns := spoken[:end][-_LONGEST:]:
                return [Turn.model_validate({"role": each.role, "content": each.text}) for each in turns]
    return ()


@dataclass(frozen=True, slots=True)
class TraceReader:
    """Makes stored traces rows of samples.

    Attributes:
        said: Names that the user gives fields.
        naming: How the user names a field's key, for messages.
        retriever_tools: Names of tools whose texts are contexts.
    """

    said: Mapping[FieldName, str]
    naming: str
    retriever_tools: Collection[str]

    def rows(self, items: Iterable[tuple[int, object]], *, whole: bool = False) -> Iterator[Row | BadLine]:
        """Yield the rows of traces, in the order in which they begin, counted from 1.

        Args:
            items: What the lines hold, or the items of a list, each with its number.
            whole: Whether all items are in memory, so that a trace's spans may be anywhere among them.
        """
        numbers = count(1)
        kept: dict[str, list[Span]] = {}
        over: dict[str, None] = {}
        for line, item in items:
            try:
                spans = [*spans_in(item)]
                problem = item.problem if isinstance(item, BadLine) else "is no span of a trace"
            except Exception as error:
                # A damaged record may have anything anywhere.
                spans, problem = [], describe(error, most=200)
            if not spans:
                yield BadLine(next(numbers), f"line {line}: {problem}")
            for span in spans:
                if span.trace not in over:
                    kept.setdefault(span.trace, []).append(span)
            while len(kept) > MOST_OPEN and not whole:
                trace = next(iter(kept))
                over[trace] = None
                if len(over) > _MOST_KNOWN:
                    del over[next(iter(over))]
                yield from self._rows_of(trace, kept.pop(trace), numbers)
        for trace, spans in kept.items():
            yield from self._rows_of(trace, spans, numbers)

    def _rows_of(self, trace: str, spans: Sequence[Span], numbers: Iterator[int]) -> Iterator[Row | BadLine]:
        entries, problem = _entries(spans)
        for nth, span in enumerate(entries, 1):
            number, key = next(numbers), trace if nth == 1 else f"{trace}/{nth}"
            row = self._row(number, key, span)
            yield row if isinstance(row, Row) else BadLine(number, f"trace {key[:100]}: {row}")
        if not entries:
            yield BadLine(next(numbers), f"trace {trace[:100]}: {problem}")

    def _row(self, number: int, key: str, span: Span) -> Row | str:
        """The row of a span; or why it is none."""
        try:
            inside = _Inside()
            inside.note(span, self.retriever_tools)
            draft = self._draft(span, inside, key)
        except Unreadable as problem:
            return str(problem)
        except Exception as error:
            # A damaged trace may have anything anywhere.
            return describe(error, most=200)
        if isinstance(draft, Skipped):
            ways = [naming_of(self.naming, "response" if draft.reason == "no_answer" else "user_input", draft.likely)]
            there = f"; it has {name_list(draft.names)}" if draft.names else ""
            return f"{_WHY[draft.reason]}{there}{f': {ways[0]}' if draft.likely else ''}"
        draft = narrowed(draft)
        values = dict(draft.sample)
        found: Any = {field: Found(values[field], name) for field, name in draft.read_from.items()}
        likely: Any = draft.likely
        why = None if span.error is None else str(span.error.args[-1])[:500]
        return Row(number, draft.sample, why, FirstRow(found, dict.fromkeys(draft.names), likely, self.naming))

    def _draft(self, span: Span, inside: _Inside, key: str) -> Draft | Skipped:
        """Read a span as a live run is read."""
        asked, answered = read_whole(span.inputs, _ASKED), read_whole(span.output, _ANSWERED)
        if isinstance(span.error, CANCELLED):
            return Skipped("cancelled")
        if inside.waits or (span.error is not None and span.error.args[0] == _WAITING):
            return Skipped("interrupted")
        if span.open or (inside.open and span.error is None):
            return Skipped("never_ended")
        found: dict[str, Found | None] = {
            "user_input": _question(asked, answered),
            "retrieved_contexts": _contexts(asked, answered, inside),
            "response": None if span.error is not None else answered.found.get("response"),
        }
        places = {
            "outputs": span.output,
            "inputs": span.inputs,
            "trace": {"inputs": span.inputs, "outputs": span.output},
        }
        for wanted, name in self.said.items():
            found[wanted] = by_name(cast("SampleField", wanted), name, places, FORMS)
        there = {name: each for name, each in found.items() if each is not None}
        wanted_fields: Sequence[tuple[FieldName, Read, str]] = (
            ("user_input", asked, "no_question"),
            ("response", answered, "no_answer"),
        )
        for name, reading, reason in wanted_fields:
            if name not in there and (name == "user_input" or span.error is None):
                names = reading.conflicts.get(name) or [*reading.unread]
                return Skipped(reason, tuple(names), likely(reading, name, FORMS) or "")
        error = {} if span.error is None else {"error": str(span.error.args[-1])[:200]}
        there = {"id": Found(key, ""), "metadata": Found({**span.metadata, **error}, ""), **there}
        if "history" not in there and (turns := _history(span, there["user_input"].value, inside)):
            there["history"] = Found(turns, "earlier turns")
        return draft_of(there, answered, FORMS)
