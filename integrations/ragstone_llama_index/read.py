"""What a run becomes: question, contexts and answer where LlamaIndex' apps say them, or why it is no sample.

`sample_of` reads live runs, those of `evaluate_query_engine` and what evaluators are given alike. docs/llama_index.md
has its order.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import GeneratorType, UnionType
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, PydanticResponse, Response, StreamingResponse
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import Event
from pydantic import ValidationError

from ragstone.adapters.narrowing import narrowed
from ragstone.adapters.runs import Draft, Fields, Run, Searched, Skipped, Unreadable
from ragstone.errors import describe
from ragstone.options import checked
from ragstone.plain import as_dict, as_list, fields_of, is_list, is_mapping
from ragstone.sample import Sample, SampleField, Turn, first_problem

if TYPE_CHECKING:
    from ragstone.adapters.answering import ModelCall

Streamed = StreamingResponse | AsyncStreamingResponse
Streams = Streamed | StreamingAgentChatResponse
"""What is answered piece by piece, as the app reads it."""
_WithNodes = Response | PydanticResponse | AgentChatResponse | StreamingAgentChatResponse | Streamed
AnyResponse = _WithNodes | AgentOutput
"""What query engines, chat engines and agents return."""

Mode = MetadataMode | Literal["all", "embed", "llm", "none"]
"""Which metadata of a node stand before its text in a context."""

NamedFields = Fields[Mapping[str, object]]
"""Names, or a user's function of what a run was asked, by name, and what it returned."""

Node = NodeWithScore | BaseNode
NodeOrText = Node | str
Asked = Literal["query", "chat", "workflow", "step"]
Finding = Literal["retrieval", "objects", "rerank", "tool", "named"]
Writing = Literal["synthesis", "text", "model", "writing"]
CallKind = Asked | Finding | Writing | Literal[""]
"""What a run is. "step": a function; "objects": a retrieval of tools or tables, whose descriptions are no sources;
"named": a `contexts(...)`; "text": a synthesis of texts."""

ENTRIES: tuple[CallKind, ...] = ("query", "chat", "workflow")
# Names in a workflow's start event, in this order.
QUESTIONS = (
    *("user_msg", "query", "question", "message", "input", "prompt", "user_input", "user_message"),
    *("user_query", "user_question", "query_str", "request", "topic"),
)
_ANSWERS = ("response", "answer", "result", "output", "final_answer", "final_response", "answer_text", "reply")
_CHOOSING: tuple[CallKind, ...] = ("synthesis", "rerank")
_GIVING: tuple[CallKind, ...] = ("retrieval", "tool", *_CHOOSING, *ENTRIES)
_ANSWERING: tuple[CallKind, ...] = ("synthesis", *ENTRIES)
# What gives nothing before it ends.
_WAITED: tuple[CallKind, ...] = ("query", "chat", "tool")
_CONTEXTS = ("retrieved_contexts", "contexts", "source_nodes", "nodes", "documents")
# Nodes are contexts there; texts may be citations.
_SOURCES = "sources"
_MESSAGES = ("chat_history", "messages")
_TEXTS: Sequence[tuple[type | UnionType, Callable[[Any], object]]] = (
    (QueryBundle, attrgetter("query_str")),
    (ChatMessage, attrgetter("content")),
    (ChatResponse, attrgetter("message.content")),
    (CompletionResponse, attrgetter("text")),
    (Response | AgentChatResponse, attrgetter("response")),
    (PydanticResponse, lambda each: each.response and each.response.model_dump_json()),
    (AsyncStreamingResponse, lambda each: None if getattr(each.response_gen, "ag_frame", None) else each.response_txt),
    (StreamingResponse, attrgetter("response_txt")),
    (StreamingAgentChatResponse, lambda each: each.response or None),
    (AgentOutput, attrgetter("response.content")),
)
_ABSENT = object()
# LlamaIndex' synthesizers say so where there is no answer.
_EMPTY = "Empty Response"
# CitationQueryEngine writes it before a text.
_LABEL = re.compile(r"\ASource \d+:\n")
_COMPOSED = re.compile(r"Sub question: .*?\nResponse: |\nQuestion: .*?\nAnswer: |Query: .*?\nResponse: ", re.DOTALL)
"""How a node begins into which one of LlamaIndex' engines or retrievers has put an answer of an inner engine."""
_TURN = re.compile(r"(?:\A|\n)(user|assistant|system|tool): ")
# ReActAgent remembers it before an answer.
_THOUGHTS = re.compile(r"\AThought: .*\nAnswer: ", re.DOTALL)
CALLED_OFF = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


@dataclass(frozen=True, slots=True)
class Reading:
    """The options of reading: see `MetricEvaluator` and `instrument`."""

    mode: MetadataMode = MetadataMode.NONE
    tools: Collection[str] = frozenset()
    fields: NamedFields | None = None

    @classmethod
    def of(cls, metadata_mode: Mode, context_tools: Collection[str], fields: NamedFields | None) -> "Reading":
        """Check the options. ValueError: one is out of range."""
        mode = checked("metadata_mode", metadata_mode, MetadataMode)
        tools = checked("context_tools", context_tools, frozenset[str])
        if not callable(fields):
            fields = checked("fields", fields, dict[SampleField, str] | None)
        return cls(mode, tools, fields)


_AS_USUAL = Reading()


def sample_of(run: Run, reading: Reading = _AS_USUAL) -> Sample | Skipped:
    """Read a run that has ended. `Unreadable`: the user's function failed.

    Example:
        >>> sample_of(Run("1", "workflow", inputs={"query": "Who wrote Emma?"}, output={"answer": "Jane Austen."}))
        Sample(user_input='Who wrote Emma?', retrieved_contexts=(), response='Jane Austen.', ...)
        >>> sample_of(Run("1", "workflow", inputs={"query": "Who wrote Emma?"}, output={"told": "Jane Austen."}))
        Skipped(reason='no_answer', names=('told',))
    """
    draft = draft_of(run, reading)
    if isinstance(draft, Draft):
        streamed = isinstance(draft.answer, Streams) and draft.sample.response is None
        return Skipped("abandoned") if streamed and run.error is None else narrowed(draft).sample
    return draft


def draft_of(run: Run, reading: Reading = _AS_USUAL) -> Draft | Skipped:
    """Read a run that has ended, and whose answer may be a stream."""
    if isinstance(run.error, CALLED_OFF):
        return Skipped("cancelled")
    draft = read(run, reading)
    if isinstance(draft, Skipped):
        return draft
    if draft.sample.user_input is None:
        return Skipped("no_question")
    if draft.sample.response is None and isinstance(draft.answer, Streamed) and is_begun(draft.answer):
        return Skipped("abandoned")
    if draft.sample.response is None and run.error is None and not isinstance(draft.answer, Streams):
        return Skipped("no_answer", _names_in(run.output))
    return draft


def read(run: Run, reading: Reading = _AS_USUAL) -> Draft | Skipped:
    """Read what a run says, little as it may be."""
    fields = _by_user(run, reading)
    if fields is None:
        return Skipped("declined")
    answer = fields["response"] if "response" in fields else None if run.error else find_answer(run.output)
    contexts = fields.get("retrieved_contexts")
    error = {"error": describe(run.error, most=200)} if run.error else {}
    about = {**run.metadata, **error}
    fields = {"id": about.pop("sample_id", None), "user_input": question_of(run)} | fields
    fields |= {"response": text_or_none(answer), "metadata": {**about, **as_dict(fields.get("metadata"))}}
    searched: Searched | None = None
    if contexts is None:
        fields["retrieved_contexts"], searched = _contexts_of_run(run, answer, reading)
    else:
        fields["retrieved_contexts"] = named(contexts, reading)
    try:
        sample = Sample.model_validate(fields)
    except ValidationError as problem:
        raise Unreadable(f"fields: {first_problem(problem)}") from None
    if not sample.history and (turns := _turns_before_question(run, sample.user_input)):
        sample = sample.model_copy(update={"history": tuple(turns)})
    return Draft(sample, answer=answer, searched=searched)


def _by_user(run: Run, reading: Reading) -> dict[str, object] | None:
    """Return the fields that the user's names or function give."""
    inputs = as_dict(run.inputs)
    if reading.fields is None or run.error is not None:
        return {}
    if not callable(reading.fields):
        found: dict[str, object] = {}
        for field, name in reading.fields.items():
            for holder in (inputs, run.output):
                if (value := _under(name, holder)) is not _ABSENT:
                    found[field] = value
        return found
    try:
        given: object = reading.fields(inputs, run.output)
    except Exception as error:
        raise Unreadable(f"fields: the function raised {describe(error, most=300)}") from error
    if isinstance(given, Sample):
        given = {name: getattr(given, name) for name in given.model_fields_set}
    if given is not None and not is_mapping(given):
        raise Unreadable(
            f"fields: the function returned {type(given).__name__}; return a Sample or a mapping of fields"
        )
    return None if given is None else {str(name): value for name, value in given.items() if value is not None}


def _under(name: str, value: object) -> object:
    """The value under a dotted name."""
    for part in name.split("."):
        value = named_values(value).get(part, _ABSENT)
    return value


def named_values(value: object) -> Mapping[str, object]:
    """Return the names and values of a mapping, an event, a pydantic model or a dataclass; none of anything else."""
    if isinstance(value, Event):
        # A stop event of the app's own need not have one.
        result = getattr(value, "result", None)
        return {**({} if result is None else {"result": result}), **(fields_of(value) or {}), **dict(value.items())}
    if is_mapping(value):
        return {str(name): each for name, each in value.items()}
    return fields_of(value) or {}


def _names_in(output: object) -> tuple[str, ...]:
    """Return the names that stand in what was returned, those of texts last."""
    entries = named_values(output)
    return tuple(sorted(entries, key=lambda name: isinstance(entries[name], str))) or (type(output).__name__,)


# --- question and answer --------------------------------------------------------------------------


def question_of(run: Run) -> str | None:
    """Return a run's question: its call's first argument, or what stands under a usual name in a start event."""
    inputs = named_values(run.inputs)
    if run.kind != "workflow":
        return next((text_or_none(value) for value in inputs.values()), None)
    for entries in (inputs, *_only_one(inputs, QUESTIONS)):
        for name in QUESTIONS:
            if (text := text_or_none(entries.get(name))) is not None:
                return text
    return _last_said(inputs, "user")


def _only_one(entries: Mapping[str, object], names: Sequence[str]) -> Sequence[Mapping[str, object]]:
    """Return the inner mapping that has one of some names, where it is the only one."""
    inner = [named_values(value) for value in entries.values() if not isinstance(value, AnyResponse)]
    having = [each for each in inner if any(name in each for name in names)]
    return having if len(having) == 1 else ()


def _last_said(entries: Mapping[str, object], role: str) -> str | None:
    for name in _MESSAGES:
        if texts := [text for said_by, text in _spoken_lines(entries.get(name)) if said_by == role]:
            return texts[-1]
    return None


def find_answer(output: object) -> object:
    """The answer: a text, a response, a message or a stream, by itself or under a usual name."""
    if isinstance(output, str | AnyResponse | ChatMessage | ChatResponse | CompletionResponse):
        return output
    entries = named_values(output)
    for level in (entries, *_only_one(entries, _ANSWERS)):
        for name in _ANSWERS:
            if name in level:
                value = level[name]
                return value if value is None or not named_values(value) or text_or_none(value) else find_answer(value)
    return _last_said({"messages": output, **entries}, "assistant")


def text_or_none(value: object) -> str | None:
    """Return a question's or an answer's text; None where there is none, or not yet."""
    text = next((get(value) for kinds, get in _TEXTS if isinstance(value, kinds)), value)
    return said(text) if isinstance(text, str) else None


def is_begun(response: Streamed) -> bool:
    """Whether some of a stream was read, so that the rest is not the answer.

    An iterator that is no generator does not tell, nor an asynchronous generator before Python 3.12.
    """
    stream: object = response.response_gen
    if isinstance(stream, GeneratorType):
        return inspect.getgeneratorstate(stream) != inspect.GEN_CREATED
    ended = getattr(stream, "ag_frame", stream) is None
    return ended or getattr(stream, "ag_suspended", False) or response.response_txt is not None


def said(text: str) -> str:
    """Return an answer's text, which is empty where LlamaIndex says in its own words that there is none."""
    return "" if text.strip() == _EMPTY else text


# --- contexts -------------------------------------------------------------------------------------


class _Inside:
    """The sources that the calls inside of a run gave.

    A node that a retriever returned is a source, whatever it says. Any other may hold what an inner engine answered:
    then that engine's sources stand in its place. What failed or was cancelled, and what lies below it, gave none:
    where the app survived that, its answer rests on others.
    """

    def __init__(self, run: Run, reading: Reading) -> None:
        self._reading = reading
        # What the app has named as contexts, the ids of nodes that retrievers returned, and what models were asked.
        self.named: list[str] = []
        self.calls: list[ModelCall] = []
        self._retrieved: set[str] = set()
        self._note(run)

    def _note(self, run: Run) -> None:
        for each in _counting(run):
            if each.kind == "named":
                self.named += map(str, as_list(each.output))
            elif each.kind == "retrieval" and not (each.inside and any(one.kind in _ANSWERING for one in each.walk())):
                self._retrieved.update(map(_id_of, nodes_in(each.output)))
            if each.call is not None:
                self.calls.append(each.call)
            if each.inside:
                self._note(each)

    def stated(self, run: Run, answer: object) -> Sequence[NodeOrText]:
        """The sources that a run returned."""
        if run.kind == "text":
            return [text for text in as_list(as_dict(run.inputs).get("text_chunks")) if isinstance(text, str)]
        nodes = nodes_in(answer)
        entries: Mapping[str, object] = {} if nodes or isinstance(run.output, AnyResponse) else named_values(run.output)
        for name in _CONTEXTS:
            if texts := [each for each in as_list(entries.get(name)) if isinstance(each, NodeOrText)]:
                return texts
        nodes = nodes or nodes_in(entries.get(_SOURCES))
        if run.inside:
            return self._without_answers(nodes, run)
        return [node for node in nodes if not _is_composed(node)] or _of_tools(answer, self._reading)

    def sources(self, run: Run) -> Sequence[NodeOrText]:
        """The sources that the calls inside of a run gave; a synthesizer's or reranker's are chosen from the rest."""
        chosen: list[NodeOrText] = []
        found: list[NodeOrText] = []
        for each in _giving_calls(run):
            given = self._given(each, run)
            if each.kind in _CHOOSING and each.output is None:
                continue
            if each.kind == "rerank":
                found = _without_nodes(found, each.inputs)
            elif each.kind == "synthesis" and (given or not nodes_in(each.output)):
                # Where all of its nodes were written on the way, what was found before stays.
                chosen, found, given = [*chosen, *given], [], ()
            found += given
        return chosen + found

    def _given(self, run: Run, around: Run) -> Sequence[NodeOrText]:
        """The sources that a call gave, in place of what the calls inside of it gave."""
        if run.kind in _CHOOSING:
            return self._without_answers(nodes_in(run.output), around, before=run)
        if run.kind == "retrieval" and run.output is not None:
            return self._without_answers(nodes_in(run.output), run)
        if run.kind in ENTRIES:
            return self.stated(run, find_answer(run.output)) or self.sources(run)
        own = tool_sources(run.output, self._reading.tools) if isinstance(run.output, ToolOutput) else ()
        return self._without_answers(own, run) or self.sources(run)

    def _without_answers(
        self, sources: Sequence[NodeOrText], run: Run, before: Run | None = None
    ) -> Sequence[NodeOrText]:
        """Sources, but in place of a node that holds what calls inside of a run answered, what that rests on."""
        found: list[NodeOrText] = []
        answers: Sequence[tuple[Run, str, str]] | None = None
        for source in sources:
            if isinstance(source, str) or _id_of(source) in self._retrieved:
                found.append(source)
                continue
            answers = _answers(run, before) if answers is None else answers
            text = source.get_content().strip() if answers else ""
            written = [each for each, asked, said in answers if text == said or (text.endswith(said) and asked in text)]
            found += [one for each in written for one in self._given(each, run)] if written else [source]
        return found


def _counting(run: Run) -> Iterator[Run]:
    """Yield the calls inside of a run that count: all of them where it failed itself, else those that did not."""
    for each in run.inside:
        # A step may have sent on what it found before it was cancelled.
        failed = each.error is not None and not (each.kind == "step" and isinstance(each.error, CALLED_OFF))
        waited = each.kind in _WAITED and each.open and each.output is None
        if each.kind != "objects" and (run.error is not None or not (failed or waited)):
            yield each


def _answers(run: Run, before: Run | None) -> Sequence[tuple[Run, str, str]]:
    """The calls inside of a run that answered before another one began, with question and answer."""
    answers: list[tuple[Run, str, str]] = []
    for each in run.walk():
        if each is before:
            break
        if each.kind in _ANSWERING and each.output is not run.output:
            answer, question = text_or_none(find_answer(each.output)), question_of(each)
            # Without a question the answer alone is it.
            answers += [] if answer is None else [(each, question or _EMPTY, answer.strip() or _EMPTY)]
    return answers


def _id_of(node: Node) -> str:
    inner = node.node if isinstance(node, NodeWithScore) else node
    return inner.id_


def _without_nodes(sources: Iterable[NodeOrText], nodes: object) -> list[NodeOrText]:
    # Two indexes may name their nodes alike, so texts are compared.
    texts = {node.get_content() for node in nodes_in(nodes)}
    return [each for each in sources if isinstance(each, str) or each.get_content() not in texts]


def _giving_calls(run: Run) -> Iterator[Run]:
    """Yield the outermost calls inside of a run that may give sources."""
    for each in _counting(run):
        if each.kind in _GIVING:
            yield each
        else:
            yield from _giving_calls(each)


def _is_composed(node: Node) -> bool:
    """Whether a node looks like an inner engine's answer. What was read from a source has metadata or relations."""
    inner = node.node if isinstance(node, NodeWithScore) else node
    return not (inner.metadata or inner.relationships) and _COMPOSED.match(inner.get_content()) is not None


def _of_tools(answer: object, reading: Reading) -> Sequence[NodeOrText]:
    # Declared as the choice of a tool; what an agent puts there is the call with its result.
    calls: Sequence[object] = answer.tool_calls if isinstance(answer, AgentOutput) else ()
    outputs = [call.tool_output for call in calls if isinstance(call, ToolCallResult)]
    return [source for output in outputs for source in tool_sources(output, reading.tools)]


def tool_sources(output: ToolOutput, tools: Collection[str]) -> Sequence[NodeOrText]:
    """Return the sources in what a tool returned: its nodes, or the texts of one whose name is among those given."""
    nodes = nodes_in(output.raw_output)
    if nodes or output.is_error or output.tool_name not in tools:
        return nodes
    return [each for each in as_list(output.raw_output) if isinstance(each, str)] or [output.content]


def nodes_in(result: object) -> Sequence[Node]:
    """Return the nodes of a response, or those in a list."""
    nodes = result.source_nodes if isinstance(result, _WithNodes) else result
    return [node for node in nodes if isinstance(node, Node)] if is_list(nodes) else []


def _source_texts(sources: Iterable[NodeOrText], reading: Reading) -> Sequence[str]:
    """Return the texts of sources, with the metadata of a mode before each: no text twice, and none empty."""
    texts = (each if isinstance(each, str) else _LABEL.sub("", each.get_content(reading.mode)) for each in sources)
    return [*dict.fromkeys(text for text in texts if text.strip())]


def named(sources: object, reading: Reading = _AS_USUAL) -> Sequence[str]:
    """Return the texts of what an app names as contexts. TypeError: it is neither nodes nor texts."""
    items: Sequence[object] = sources if is_list(sources) else nodes_in(sources) or [sources]
    for item in items:
        if not isinstance(item, NodeOrText):
            raise TypeError(f"contexts: has {type(item).__name__}; pass nodes or texts")
    return _source_texts([item for item in items if isinstance(item, NodeOrText)], reading)


def _contexts_of_run(run: Run, answer: object, reading: Reading) -> tuple[Sequence[str], Searched | None]:
    """Return a run's contexts: named by the app, else stated in what it returned, else retrieved on the way to it.

    What was retrieved is to be narrowed to what the answering call read.
    """
    inside = _Inside(run, reading)
    if inside.named:
        return [*dict.fromkeys(inside.named)], None
    if stated := inside.stated(run, answer):
        return _source_texts(stated, reading), None
    compared: dict[str, str] = {}
    for source in inside.sources(run):
        for text in _source_texts([source], reading):
            compared[text] = next(iter(_source_texts([source], _AS_USUAL)), text)
    return [*compared], Searched([*compared], inside.calls, compared=[*compared.values()])


# --- history --------------------------------------------------------------------------------------


def converses(run: Run) -> bool:
    """Whether earlier turns show in what a model or synthesizer is given."""
    return run.kind == "chat" or as_dict(run.inputs).get("memory") is not None


def _turns_before_question(run: Run, question: str | None) -> Sequence[Turn]:
    """Return the turns before a question: those given with it, else those that a model or synthesizer was shown."""
    given = as_dict(run.inputs).get("chat_history")
    if is_list(given) and (turns := turns_before([*given, ChatMessage(question)], question)):
        return turns
    for each in run.walk() if converses(run) else ():
        if turns := _shown(each, question):
            return turns
    return ()


def _shown(run: Run, question: str | None) -> Sequence[Turn]:
    inputs = as_dict(run.inputs)
    if run.kind == "synthesis":
        return turns_before(inputs.get("messages"), "{query_str}")
    condensed = as_dict(inputs.get("prompt_args")).get("chat_history")
    # It stands so in a prompt that condenses the question.
    if isinstance(condensed, str):
        _, *parts = _TURN.split(condensed)
        turns = [{"role": role, "content": text} for role, text in zip(parts[::2], parts[1::2], strict=True)]
        return turns_before([*turns, {"role": "user", "content": question}], question)
    return turns_before(inputs.get("messages"), question) if run.kind == "model" else ()


def _spoken_lines(messages: object) -> list[tuple[str, str]]:
    """The messages of users and assistants: who said it, and the text."""
    lines: list[tuple[str, str]] = []
    for one in messages if is_list(messages) else ():
        message = {"role": one.role.value, "content": one.content} if isinstance(one, ChatMessage) else as_dict(one)
        role, text = message.get("role"), message.get("content")
        if role in ("user", "assistant") and isinstance(text, str) and text:
            lines.append((str(role), text))
    return lines


def turns_before(messages: object, question: str | None) -> Sequence[Turn]:
    """The turns before the user's last message that asks a question, or is a prompt around it."""
    lines = _spoken_lines(messages)
    asks = [i for i, (role, text) in enumerate(lines) if role == "user" and question and question in text]
    exactly = [i for i in asks if lines[i][1] == question]
    at = max(exactly or asks, default=0)
    # The question may be given with the history, and added to it.
    while at and lines[at - 1] == lines[at]:
        at -= 1
    return [Turn.model_validate({"role": role, "content": _THOUGHTS.sub("", text)}) for role, text in lines[:at]]
