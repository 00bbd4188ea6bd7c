"""What a run becomes: question, contexts and answer where LlamaIndex' apps say them, or why it is no sample.

`sample_of` reads live runs, those of `evaluate_query_engine` and what evaluators are given alike. docs/llama_index.md
has its order.
"""

import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Literal

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import MetadataMode, NodeWithScore

from ragstone.adapters.fields_by_user import BY_USER, SAMPLE_FIELDS, by_function, check_fields, names_of, strictly
from ragstone.adapters.fields_by_user import draft_of as drafted
from ragstone.adapters.narrowing import narrowed
from ragstone.adapters.runs import CANCELLED, Draft, Fields, Run, Searched, Skipped
from ragstone.errors import describe
from ragstone.fields.names import WEAKLY, bare
from ragstone.fields.read import Found, Read, likely, read, under
from ragstone.options import checked
from ragstone.plain import as_dict, as_list, is_list
from ragstone.sample import Sample, Turn
from ragstone_llama_index.forms import (
    FORMS,
    Answers,
    Node,
    NodeOrText,
    Streamed,
    Streams,
    nodes_in,
    read_output,
    sources_in,
    spoken_lines,
    text_or_none,
)
from ragstone_llama_index.inside import Inside, first_argument

Mode = MetadataMode | Literal["all", "embed", "llm", "none"]
"""Which metadata of a node stand before its text in a context."""

NamedFields = Fields[Mapping[str, object]]
"""Names, or a user's function of what a run was asked, by name, and what it returned."""

_ABSENT = object()
# CitationQueryEngine writes it before a text.
_LABEL = re.compile(r"\ASource \d+:\n")
_TURN = re.compile(r"(?:\A|\n)(user|assistant|system|tool): ")
# ReActAgent remembers it before an answer.
_THOUGHTS = re.compile(r"\AThought: .*\nAnswer: ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """The options of reading: see `MetricEvaluator` and `instrument`."""

    mode: MetadataMode = MetadataMode.NONE
    tools: Collection[str] = frozenset()
    fields: NamedFields | None = None
    id_key: str | None = None

    @classmethod
    def of(
        cls,
        metadata_mode: Mode,
        context_tools: Collection[str],
        fields: NamedFields | None,
        id_key: str | None = None,
    ) -> "Reading":
        """Check the options. ValueError: one is out of range."""
        check_fields(fields)
        mode = checked("metadata_mode", metadata_mode, MetadataMode)
        return cls(mode, checked("context_tools", context_tools, frozenset[str]), fields, id_key)


_AS_USUAL = Reading()


def sample_of(run: Run, reading: Reading = _AS_USUAL) -> Sample | Skipped:
    """Read a run that has ended. `Unreadable`: the user's function failed.

    Example:
        >>> sample_of(Run("1", "workflow", inputs={"query": "Who wrote Emma?"}, output={"answer": "Jane Austen."}))
        Sample(user_input='Who wrote Emma?', retrieved_contexts=(), response='Jane Austen.', ...)
        >>> sample_of(Run("1", "workflow", inputs={"query": "Who wrote Emma?"}, output={"told": "Jane Austen."}))
        Skipped(reason='no_answer', names=('told',), likely='told')
    """
    draft = draft_of(run, reading)
    if isinstance(draft, Draft):
        streamed = draft.answer is not None and draft.sample.response is None
        return Skipped("abandoned") if streamed and run.error is None else narrowed(draft).sample
    return draft


def draft_of(run: Run, reading: Reading = _AS_USUAL) -> Draft | Skipped:
    """Read a run that has ended, and whose answer may be a stream."""
    if isinstance(run.error, CANCELLED):
        return Skipped("cancelled")
    draft = read_run(run, reading)
    if isinstance(draft, Skipped):
        return draft
    if draft.sample.user_input is None:
        asked = read(run.inputs, FORMS, ("user_input",))
        names = asked.conflicts.get("user_input", tuple(asked.unread))
        return Skipped("no_question", tuple(names), likely(asked, "user_input", FORMS) or "")
    if draft.sample.response is None and run.error is None and not isinstance(draft.answer, Streams):
        return Skipped("no_answer", names_unanswered(run), draft.likely.get("response", ""))
    if draft.sample.response is None and isinstance(draft.answer, Streamed) and is_begun(draft.answer):
        return Skipped("abandoned")
    return draft


def read_run(run: Run, reading: Reading = _AS_USUAL) -> Draft | Skipped:
    """Read what a run says, little as it may be."""
    given = _by_user(run, reading)
    if given is None:
        return Skipped("declined")
    output = read_output(run.output)
    answer = given.get("response") or output.found.get("response")
    stream = answer.raw if answer is not None and isinstance(answer.raw, Streams) else None
    if answer is not None and (answer.value if stream is None else text_or_none(stream)) is None:
        answer = None
    ids: dict[str, str] = {}
    found = {
        "user_input": given.get("user_input") or _question(run, output),
        "retrieved_contexts": _contexts(run, output, given, reading, ids),
        "response": answer,
    }
    error = {"error": describe(run.error, most=200)} if run.error else {}
    about = {**run.metadata, **error}
    fields = {"id": Found(about.pop("sample_id", None), ""), **given}
    fields["metadata"] = Found({**about, **as_dict(given["metadata"].value if "metadata" in given else {})}, "")
    fields = {name: each for name, each in {**fields, **found}.items() if each is not None}
    draft = drafted(fields, output, FORMS)
    sample, read_from = draft.sample, {**draft.read_from}
    if stream is not None:
        read_from.setdefault("response", (given.get("response") or output.found["response"]).name)
    if not sample.history and (turns := _turns_before_question(run, sample.user_input)):
        sample = sample.model_copy(update={"history": tuple(turns)})
    known = None if reading.id_key is None else ids
    return replace(draft, sample=sample, read_from=read_from, answer=stream, ids=known)


def _by_user(run: Run, reading: Reading) -> Mapping[str, Found] | None:
    """The fields that the user's names or function give; None where that wants no sample."""
    if reading.fields is None or run.error is not None:
        return {}
    inputs = as_dict(run.inputs)
    if callable(reading.fields):
        given = by_function(reading.fields, inputs, run.output)
        if isinstance(given, Sample):
            given = {name: getattr(given, name) for name in given.model_fields_set}
        if given is None:
            return None
        return {name: _as_given(name, value, f"fields: the function's {name!r}") for name, value in given.items()}
    found: dict[str, Found] = {}
    for field, name in names_of(reading.fields).items():
        there = [under(value, name, FORMS, _ABSENT) for value in (run.output, inputs)]
        values = [value for value in there if value is not _ABSENT]
        if values:
            found[field] = _as_given(field, values[0], f"fields: {name!r}")
    return found


def _as_given(field: str, value: object, where: str) -> Found:
    """What the user says is a field; `Unreadable` if it cannot be."""
    if field not in SAMPLE_FIELDS or value is None:
        return Found(value, BY_USER, value)
    return Found(strictly(field, value, where, FORMS), BY_USER, value)


def names_unanswered(run: Run) -> tuple[str, ...]:
    """The names that a run returned and that hold no field, or those whose answers differ; else all, or what it was."""
    output = read_output(run.output)
    entries = None if isinstance(run.output, Answers) else FORMS.entries(run.output)
    return tuple(output.conflicts.get("response") or output.unread or entries or (type(run.output).__name__,))


def _question(run: Run, output: Read) -> Found | None:
    """What a call was given first; of a workflow what its start event says is a question, else what it returned."""
    if run.kind != "workflow":
        text = first_argument(run)
        return None if text is None else Found(text, "the input itself")
    asked = read(run.inputs, FORMS, ("user_input",))
    found = asked.found.get("user_input")
    if found is not None:
        return found._replace(name=f"inputs.{found.name}")
    returned = None if "user_input" in asked.conflicts else output.found.get("user_input")
    # A name that may mean something else means the answer's parts there.
    is_weak = returned is not None and bare(returned.name.rpartition(".")[2]) in WEAKLY
    return None if is_weak else returned


def is_begun(response: Streamed) -> bool:
    """Whether some of a stream was read, so that the rest is not the answer.

    An iterator that is no generator does not tell, nor an asynchronous generator before Python 3.12.
    """
    stream: object = response.response_gen
    if isinstance(stream, GeneratorType):
        return inspect.getgeneratorstate(stream) != inspect.GEN_CREATED
    ended = getattr(stream, "ag_frame", stream) is None
    return ended or getattr(stream, "ag_suspended", False) or response.response_txt is not None


# --- contexts -------------------------------------------------------------------------------------


def _contexts(
    run: Run, output: Read, given: Mapping[str, Found], reading: Reading, ids: dict[str, str]
) -> Found | None:
    """A run's contexts: the user's, named by the app, stated in what it returned, retrieved, else what it was given.

    The ids of their nodes are noted by their texts, where they are wanted.
    """
    if (said := given.get("retrieved_contexts")) is not None:
        return said._replace(value=_texts(sources_in(said.raw) or as_list(said.value), reading))
    inside = Inside(run, reading.tools)
    if inside.named:
        return Found([*dict.fromkeys(inside.named)], "contexts(...)")
    stated, name = inside.stated(run, output, given.get("response"))
    _note_ids(stated, reading, ids)
    there = None
    if run.kind == "workflow":
        there = read(run.inputs, FORMS, ("retrieved_contexts",)).found.get("retrieved_contexts")
    # What was handed in may be handed back, whatever was searched.
    handed_back = there is not None and there.value == output.value("retrieved_contexts")
    if (texts := _texts(stated, reading)) and not handed_back:
        return Found(texts, name)
    if "retrieved_contexts" in output.conflicts:
        return None
    sources = inside.sources(run)
    _note_ids(sources, reading, ids)
    # By its text alone, because a prompt need not have its metadata.
    compared = {
        text: next(iter(_texts([each], _AS_USUAL)), text) for each in sources for text in _texts([each], reading)
    }
    if compared:
        searched = Searched([*compared], inside.calls, compared=[*compared.values()])
        return Found([*compared], f"searches ({len(compared)})", searched)
    if (lone := output.found.get("retrieved_contexts")) is not None and not stated:
        return lone
    if there is not None and (texts := _texts(sources_in(there.raw) or (), reading)):
        return Found(texts, f"inputs.{there.name}")
    # What it has, such as images, has no text.
    empty = name if stated else "searches (0)" if inside.searched else ""
    return Found([], empty) if empty else None


def _note_ids(sources: Iterable[object], reading: Reading, ids: dict[str, str]) -> None:
    """Note the ids of nodes by their texts: what their metadata has under a key, else their own."""
    if reading.id_key is None:
        return
    for each in sources:
        if isinstance(each, Node):
            inner = each.node if isinstance(each, NodeWithScore) else each
            own = inner.metadata.get(reading.id_key, inner.id_)
            ids |= dict.fromkeys(_texts([each], reading), str(own))


def _texts(sources: Iterable[object], reading: Reading) -> Sequence[str]:
    """The texts of sources, with the metadata of a mode before each: no text twice, and none empty."""
    texts: dict[str, None] = {}
    for each in sources:
        text = _LABEL.sub("", each.get_content(reading.mode)) if isinstance(each, Node) else str(each)
        if text.strip():
            texts[text] = None
    return [*texts]


def named(sources: object, reading: Reading = _AS_USUAL) -> Sequence[str]:
    """The texts of what an app names as contexts. TypeError: it is neither nodes nor texts."""
    items: Sequence[object] = sources if is_list(sources) else nodes_in(sources) or [sources]
    for item in items:
        if not isinstance(item, NodeOrText):
            raise TypeError(f"contexts: has {type(item).__name__}; pass nodes or texts")
    return _texts(items, reading)


# --- history --------------------------------------------------------------------------------------


def is_conversation(run: Run | None) -> bool:
    """Whether earlier turns show in what a model or synthesizer is given, because of a run or one around it."""
    while run is not None:
        given = run.inputs
        if run.kind == "chat" or (isinstance(given, dict) and "memory" in given and given["memory"] is not None):
            return True
        run = run.parent
    return False


def _turns_before_question(run: Run, question: str | None) -> Sequence[Turn]:
    """The turns before a question: those given with it, else those that a model or synthesizer was shown."""
    inputs = as_dict(run.inputs)
    for given in (inputs.get("chat_history"), inputs.get("messages")):
        if is_list(given) and (turns := turns_before([*given, ChatMessage(question)], question)):
            return turns
    for each in run.walk() if is_conversation(run) else ():
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


def turns_before(messages: object, question: str | None) -> Sequence[Turn]:
    """The turns before the user's last message that asks a question, or is a prompt around it."""
    lines = spoken_lines(messages)
    asks = [i for i, (role, text) in enumerate(lines) if role == "user" and question and question in text]
    exactly = [i for i in asks if lines[i][1] == question]
    at = max(exactly or asks, default=0)
    # The question may be given with the history, and added to it.
    while at and lines[at - 1] == lines[at]:
        at -= 1
    return [Turn.model_validate({"role": role, "content": _THOUGHTS.sub("", text)}) for role, text in lines[:at]]
