"""Stored traces become rows of samples: their spans are read as the runs of a live app are."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, cast

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.fields_by_user import by_name, draft_of
from ragstone.adapters.narrowing import narrowed
from ragstone.adapters.open_runs import MOST_IN_PROMPTS
from ragstone.adapters.runs import CANCELLED, Run, Searched, Unreadable
from ragstone.errors import describe
from ragstone.fields.names import FieldName
from ragstone.fields.read import Found, Read, likely, read
from ragstone.plain import as_dict, as_list, is_list, to_json
from ragstone.sample import BadLine, FirstRow, Row, SampleField, name_list, naming_of
from ragstone.sources.trace_spans import Span, spans_in
from ragstone.sources.trace_values import FORMS
from ragstone.sources.turns import dumped, message_in
from ragstone.sources.written import parsed

MOST_OPEN = 1_000
"""So many other traces may begin before the last span of a trace comes."""
_WAITING = "GraphInterrupt"
# An app steers itself by these.
_STEERING = ("GeneratorExit", _WAITING, "ParentCommand")
_SEARCHING = ("retriever", "reranker")
# How a tracer writes a node.
_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=([\w-]+)\)")
_INPUT = "the input itself"
_ASKED: Sequence[FieldName] = ("user_input", "retrieved_contexts")
_ANSWERED: Sequence[FieldName] = ("response", "retrieved_contexts", "user_input")
_ALONE = {
    "model": "a model was called outside of any chain, and its prompt need not be the question",
    "retriever": "no answer followed the retrieval",
}
_MISSING: Mapping[SampleField, str] = {
    "user_input": "its inputs have no question under a known name",
    "response": "its outputs have no answer under a known name",
}


# --- the tree -----------------------------------------------------------------------------------------------------


def _entries(spans: Sequence[Span]) -> Sequence[Span]:
    """The outermost spans of a trace that may be samples; `Unreadable` where there are none."""
    by_id = {span.id: span for span in spans}
    texts = {key: text for span in spans for text, key in (span.found or {}).items()}
    tops: dict[str, list[Run]] = {}
    for span in sorted(by_id.values(), key=lambda span: span.began):
        _note_choice(span, texts)
        above = by_id.get(span.above)
        if above is None:
            tops.setdefault(span.above, []).append(span)
        else:
            above.inside.append(span)
    if not tops:
        raise Unreadable("its spans are below each other")
    for name, below in tops.items():
        if name and len(below) > 1:
            raise Unreadable(f"{len(below)} spans are below {name[:50]!r}, which is not there")
    return _outermost([run for below in tops.values() for run in below])


def _note_choice(span: Span, texts: Mapping[str, str]) -> None:
    """Note what a step chose that was given nodes and returned some, of which the span has but the ids."""
    chosen, given = (_named_in(each, texts) for each in (span.output, as_dict(span.inputs).get("nodes")))
    if span.kind == "chain" and chosen and given:
        span.kind, span.found, span.given = "reranker", chosen, given


def _named_in(nodes: object, texts: Mapping[str, str]) -> dict[str, str]:
    ids = [match[1] for each in as_list(nodes) if isinstance(each, str) and (match := _NODE.match(each))]
    return {texts[key]: key for key in ids if key in texts}


def _outermost(tops: Sequence[Run]) -> Sequence[Span]:
    entries: list[Span] = []
    others: list[str] = []
    waiting = [*tops[::-1]]
    while waiting:
        run = waiting.pop()
        if isinstance(run, Span) and run.kind == "chain":
            entries.append(run)
        elif run.kind in ("", "tool", "chain"):
            waiting += run.inside[::-1]
        else:
            others.append(run.kind)
    if not entries:
        whys = [_ALONE[kind] for kind in others if kind in _ALONE]
        raise Unreadable(whys[0] if whys else "no span says what was asked and answered")
    return entries


@dataclass(slots=True, eq=False)
class _Inside:
    """What the spans inside of one have come to: what searches found, what steps passed on, the calls of models."""

    found: dict[str, None] = field(default_factory=dict[str, None])
    passed: dict[str, None] = field(default_factory=dict[str, None])
    on_the_way: list[str] = field(default_factory=list[str])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    searched: bool = False
    waits: bool = False

    def note(self, root: Span, tools: Collection[str]) -> "_Inside":
        """Note the spans inside of one: a search is an outermost retriever or tool; what failed has found nothing."""
        waiting = [(each, False) for each in root.inside[::-1]]
        while waiting:
            span, searching = waiting.pop()
            kind = _kind_of_error(span)
            self.waits = self.waits or kind == _WAITING
            if not isinstance(span, Span) or (kind is not None and kind not in _STEERING):
                continue
            texts = _found_by(span, tools)
            self.ids |= {text: key for text, key in (span.found or {}).items() if key}
            search = span.kind in _SEARCHING or (span.kind == "tool" and texts is not None)
            waiting += [(each, searching or search) for each in span.inside[::-1]]
            self.calls += () if span.call is None else [span.call]
            if search and not searching:
                self._add_search(span.given, texts or ())
            elif texts is not None and not searching:
                self._add_step(texts)
        return self

    def _add_search(self, given: Iterable[str], texts: Sequence[str]) -> None:
        self.searched = True
        for text in given:
            self.found.pop(text, None)
        self.found |= dict.fromkeys(texts)

    def _add_step(self, texts: Sequence[str]) -> None:
        # A step that returns some of those before has chosen.
        if self.passed.keys() >= {*texts}:
            self.passed.clear()
        self.passed |= dict.fromkeys(texts)
        self.on_the_way += texts


def _kind_of_error(span: Run) -> str | None:
    return None if span.error is None else str(span.error.args[0])


def _found_by(span: Span, tools: Collection[str]) -> Sequence[str] | None:
    """The texts that a span has found, or passed on; None where it is none that does."""
    if span.found is not None:
        return [*span.found]
    if span.kind in _SEARCHING:
        return _documents_in(_listed(span.output)) or []
    if span.kind not in ("chain", "tool"):
        return None
    message = message_in(span.output)
    texts = _documents_in(span.output if message is None else dumped(span.output).get("artifact"))
    searches = (each for each in span.walk() if each.kind == "retriever")
    if texts or span.kind == "chain" or span.output is None or span.name not in tools or any(searches):
        return texts or None
    content = parsed(span.output if message is None else message.content)
    return _documents_in(_listed(content)) or [content if isinstance(content, str) else to_json(content)]


def _listed(value: object) -> object:
    return {"documents": value} if is_list(value) else value


def _documents_in(value: object) -> list[str] | None:
    """The texts of documents, or of those under a usual name in a state; None where neither is there."""
    found = read_whole(value, ["retrieved_contexts"]).found.get("retrieved_contexts")
    return None if found is None or isinstance(found.raw, str) else cast("list[str]", found.value)


def read_whole(value: object, fields: Sequence[FieldName], itself: str = "") -> Read:
    """What a span was given, or gave: a state, or what is a field itself, a text the first one."""
    if FORMS.entries(value) is not None:
        return read(value, FORMS, fields)
    are_documents = any("page_content" in dumped(each) for each in (value if is_list(value) else [value]))
    name = fields[0] if isinstance(value, str) else "documents" if are_documents else "messages"
    found = read({name: value}, FORMS, fields).found
    return Read({field: each._replace(name=itself) for field, each in found.items()})


# --- the sample --------------------------------------------------------------------------------------------------


def _question(asked: Read, answered: Read) -> Found | None:
    """The question: in the inputs, or in the outputs where the inputs have none."""
    if (found := asked.found.get("user_input")) is not None:
        return found if found.name == _INPUT else found._replace(name=f"inputs.{found.name}")
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
        over: set[str] = set()
        tools: set[str] = set()
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
                tools |= {span.name} if span.kind == "tool" else set()
                if span.trace not in over:
                    kept.setdefault(span.trace, []).append(span)
            while len(kept) > MOST_OPEN and not whole:
                trace = next(iter(kept))
                over.add(trace)
                yield from self._rows_of(trace, kept.pop(trace), numbers)
        for trace, spans in kept.items():
            yield from self._rows_of(trace, spans, numbers)
        if unknown := sorted({*self.retriever_tools} - tools):
            there = f"there are {name_list(sorted(tools))}" if tools else "there are no tools"
            yield BadLine(next(numbers), f"retriever_tools: no tool is called {name_list(unknown)}; {there}")

    def _rows_of(self, trace: str, spans: Sequence[Span], numbers: Iterator[int]) -> Iterator[Row | BadLine]:
        try:
            entries = _entries(spans)
        except Unreadable as problem:
            yield BadLine(next(numbers), f"trace {trace[:100]}: {problem}")
            return
        for nth, span in enumerate(entries, 1):
            number, key = next(numbers), trace if nth == 1 else f"{trace}/{nth}"
            try:
                yield self._row(number, key, span)
            except Exception as error:
                # A damaged trace may have anything anywhere.
                why = str(error) if isinstance(error, Unreadable) else describe(error, most=200)
                yield BadLine(number, f"trace {key[:100]}: {why}")

    def _row(self, number: int, key: str, span: Span) -> Row:
        """The row of a span, which is read as a live run is."""
        inside = _Inside().note(span, self.retriever_tools)
        if isinstance(span.error, CANCELLED):
            raise Unreadable("the app or its user cancelled the run")
        if inside.waits or _kind_of_error(span) == _WAITING:
            raise Unreadable("the run waits for a person")
        if span.open:
            raise Unreadable("it has not ended")
        asked = read_whole(span.inputs, _ASKED, _INPUT)
        answered = read_whole(span.output, _ANSWERED, "the output itself")
        why = None if span.error is None else str(span.error.args[-1])[:500]
        found = self._fields(span, asked, answered, inside)
        if "user_input" not in found:
            raise self._missing("user_input", asked)
        if why is None and "response" not in found:
            raise self._missing("response", answered)
        about = {"name": span.name} if why is None else {"name": span.name, "error": why[:200]}
        found = {"id": Found(key, ""), "metadata": Found(about, ""), **found}
        draft = narrowed(replace(draft_of(found, answered, FORMS), ids=inside.ids))
        first: Any = {name: Found(getattr(draft.sample, name), at) for name, at in draft.read_from.items()}
        meant: Any = draft.likely
        return Row(number, draft.sample, why, FirstRow(first, dict.fromkeys(draft.names), meant, self.naming))

    def _fields(self, span: Span, asked: Read, answered: Read, inside: _Inside) -> dict[str, Found]:
        """What the user names, and what stands under usual names; a run that failed has no answer."""
        found: dict[str, Found | None] = {
            "user_input": _question(asked, answered),
            "retrieved_contexts": _contexts(asked, answered, inside),
            "response": None if span.error is not None else answered.found.get("response"),
        }
        whole = {"inputs": span.inputs, "outputs": span.output}
        for wanted, name in self.said.items():
            places = {"outputs": span.output, "inputs": span.inputs, "trace": whole}
            found[wanted] = by_name(cast("SampleField", wanted), name, places, FORMS)
        return {name: each for name, each in found.items() if each is not None}

    def _missing(self, name: SampleField, reading: Read) -> Unreadable:
        names = reading.conflicts.get(name) or [*reading.unread]
        there = f"; it has {name_list(names)}" if names else ""
        meant = likely(reading, name, FORMS)
        return Unreadable(f"{_MISSING[name]}{there}{f': {naming_of(self.naming, name, meant)}' if meant else ''}")
