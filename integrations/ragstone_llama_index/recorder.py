"""From what happens in an app to samples: used by the handler of spans and by that of legacy callbacks alike."""

import asyncio
import inspect
import re
import weakref
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.callbacks.base import global_stack_trace
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode
from llama_index_instrumentation.span import active_span_id
from pydantic import ValidationError

from ragstone.errors import describe
from ragstone.live import Monitor
from ragstone.live.run_tree import MOST_COLLECTED, OpenSample, Run, RunTree
from ragstone.live.trace import TRACE_KEY, current_trace, own_id
from ragstone.metrics.models import check_members
from ragstone.plain import as_dict, is_list, is_mapping
from ragstone.sample import Sample, Turn, first_problem
from ragstone_llama_index.responses import Mode, Node, check_mode, contexts_of, nodes_in, said, text_of, texts_of
from ragstone_llama_index.streaming import Ended, Streamed, alisten, known_text, listen

_CALLED_OFF = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_PIECES = "_ragstone_pieces"  # the attribute by which a chat's response remembers what was streamed
_WAITING = "_ragstone_waiting"  # and the one with what waits for its end, by the recorder
_T = TypeVar("_T")
_THOUGHTS = re.compile(r"\AThought: .*\nAnswer: ", re.DOTALL)  # what ReActAgent remembers before an answer
EVALUATIONS = ("llama_index.core.evaluation", "llama_index.core.llama_dataset", "ragstone_llama_index.evaluator")
_LIVE: "list[weakref.ref[Recorder]]" = []
_TAG_TYPES = (str, int, float, bool)
_PERSONAL = ("user_id", "thread_id", "session_id", "conversation_id")  # tags that an outcome keeps under their names
_BEGUN: ContextVar[tuple[str, str, list[str]]] = ContextVar("ragstone_begun", default=("", "", []))
"""Of the sample that began last: its run's id, its own, and the contexts named before, alike for all monitors."""


ADVICE = {
    "abandoned": "the app stopped reading the stream before its end: the answer is incomplete",
    "cancelled": "the app or its user cancelled the run",
    "declined": "your extract= returned None",
    "excluded": "your where= rejected it",
    "extract_failed": "your extract= raised, or did not return a sample: see errors and the log",
    "never_ended": "no event came for an hour: exclude what never ends with where=",
    "no_question": "return the question from extract=",
    "only_model": "a model was called outside of any engine: call monitor.submit(Sample(...)) there",
    "only_retrieval": "no answer followed the retrieval: call monitor.submit(Sample(...)) where the app answers",
    "own_run": "an evaluation asked the app, not a user",
    "where_failed": "your where= raised: see errors and the log",
}
"""What to do about runs that gave no sample, by reason."""


@dataclass(slots=True, eq=False)
class AppSample(OpenSample):
    """What is known of a sample in the making.

    Beneath its root two things are collected. "seen": the nodes that a response synthesizer was given, whose texts are
    taken when they are asked for. "retrieved": the texts that retrievers or inner engines returned since.
    """

    id: str = ""
    error: BaseException | None = None  # what was raised last beneath the root
    contexts: list[str] = field(default_factory=list[str])  # those that `contexts` named; at the end, all
    history: tuple[Turn, ...] = ()
    converses: bool = False  # whether earlier turns show in what a model or synthesizer is given
    extracted: dict[str, object] = field(default_factory=dict[str, object])  # by the app's `extract`


@dataclass(frozen=True, slots=True)
class _Guard:
    """A context out of which nothing is raised into the app. Not `contextmanager`: it is entered for each span."""

    monitor: Monitor

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self.monitor.failed("llama_index", error)
        return True


class Recorder:
    """Makes one sample of each run, or tells the monitor why there is none.

    `answered` and `failed` are called once for a run, on the app's thread; nothing that they do is slow.
    """

    def __init__(self, monitor: Monitor, mode: Mode = MetadataMode.NONE, tools: Collection[str] = ()) -> None:
        check_members("monitor", monitor, ("submit",), "pass a ragstone.Monitor")
        self.monitor = monitor
        monitor.advise(ADVICE)
        self.mode = check_mode(mode)
        self.tools = tools
        self.runs = RunTree[AppSample]()
        self.guard = _Guard(monitor)
        self.unanswered = deque[set[str | None]](maxlen=MOST_COLLECTED)  # questions and nodes of mere retrievals
        _LIVE.append(weakref.ref(self, _LIVE.remove))

    def __deepcopy__(self, memo: object) -> "Recorder":
        return self  # LlamaIndex' objects may be copied with all that they hold; the runs under way are the same

    def __reduce__(self) -> tuple[object, ...]:
        return Recorder, (self.monitor, self.mode, self.tools)

    def begin(self, id_: str, sample: AppSample | None, kind: str = "entry") -> None:
        """Open a root; None: what happens beneath it is of no interest."""
        for _ in self.runs.start(id_, kind=kind, sample=sample):
            self.monitor.skip("never_ended")

    def take_back(self, question: str | None, nodes: Sequence[Node]) -> None:
        """Count no longer as mere retrievals those that a synthesis answers: of its question or its nodes."""
        wanted = {question, *(node.node_id for node in nodes)}
        for retrieval in reversed(tuple(self.unanswered)):
            if wanted & retrieval:
                self.unanswered.remove(retrieval)
                self.monitor.skip("only_retrieval", -1)
                wanted -= retrieval

    def retrieve(self, run: Run[AppSample], contexts: Sequence[str]) -> None:
        """Take what a call retrieved, in place of what was retrieved within it."""
        self.runs.discard(run, "seen", "retrieved")
        self.runs.collect(run, "retrieved", contexts)

    def synthesize(self, run: Run[AppSample], nodes: Sequence[Node]) -> None:
        """Take the nodes that a call was given; they were chosen from what was retrieved before."""
        outer = next(one for one in run.lineage() if one.kind and one is not run)
        self.runs.discard(run, "seen")
        if not nodes or texts_of(nodes, self.mode):  # else they were all generated from what was retrieved
            self.runs.discard(outer, "retrieved")
        self.runs.collect(run, "seen", nodes)

    def contexts(self, sample: AppSample, within: Run[AppSample] | None = None) -> list[str]:
        """Return the texts that were collected for a sample so far, inside of a call or anywhere."""
        seen: list[Node] = [node for _, nodes in sample.items("seen", within) for node in nodes]
        retrieved: list[str] = [text for _, texts in sample.items("retrieved", within) for text in texts]
        return [*texts_of(seen, self.mode), *retrieved]

    def take(self, sample: AppSample, fields: Sample | Mapping[str, object], answer: object) -> None:
        """Take what an app answered, and the fields that its `extract` returned. ValueError: they are no sample's."""
        if isinstance(fields, Sample):
            fields = {name: getattr(fields, name) for name in fields.model_fields_set}
        known: dict[str, object] = {name: value for name, value in fields.items() if value is not None}
        answer = known.pop("response", answer)
        if "retrieved_contexts" in known:
            known["retrieved_contexts"] = _texts_in(known["retrieved_contexts"], self.mode)
        try:
            Sample.model_validate(known)
        except ValidationError as error:
            raise ValueError(f"extract: {first_problem(error)}") from None
        sample.metadata |= as_dict(known.pop("metadata", None))
        sample.extracted = known
        self.answered(sample, answer)

    def answered(self, sample: AppSample, answer: object) -> None:
        """Take what a run answered; where that is a stream, when it has been read."""
        self._settle_contexts(sample, answer)
        if isinstance(answer, Streamed):
            known = known_text(answer)
            if known is None:
                self._listen(answer, sample)
            elif known.text is None:  # the engine itself has begun to read it
                self.monitor.skip("abandoned")
            else:
                self._submit(sample, known.text)
        elif not isinstance(answer, StreamingAgentChatResponse):
            self._submit(sample, text_of(answer))
        elif not answer.is_writing_to_memory:  # some chat engines of 0.13 and 0.14 leave the reading to the app
            self._listen(answer, sample)
        else:
            vars(answer).setdefault(_WAITING, {})[self] = sample
            if answer.is_done or answer.exception is not None:  # the thread that writes had ended before
                self.written(answer, answer.exception)

    def failed(self, sample: AppSample, error: BaseException | None) -> None:
        """Take what a run raised: its failure is a sample, unless it was called off."""
        if error is None or isinstance(error, _CALLED_OFF):
            self.monitor.skip("cancelled")
            return
        sample.metadata["error"] = describe(error, most=200)
        self._settle_contexts(sample)
        self._submit(sample, None)

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Listen to a chat's stream that LlamaIndex is about to read into its memory: early versions keep no text."""
        if _PIECES not in vars(response):
            pieces = vars(response)[_PIECES] = list[Any]()
            _listen_to(response, pieces, lambda _: None)

    def written(self, response: StreamingAgentChatResponse, error: BaseException | None = None) -> None:
        """Take a chat's answer that was streamed into its history, whether the app reads it or not."""
        waiting: dict[Recorder, AppSample] = vars(response).get(_WAITING, {})
        sample = waiting.pop(self, None)
        if sample is not None and error is not None:
            self.failed(sample, error)
        elif sample is not None:
            self._submit(sample, "".join(vars(response).get(_PIECES, ())).strip() or response.response)

    def _settle_contexts(self, sample: AppSample, answer: object = None) -> None:
        """Leave the contexts that the app has named; without any, take those of the answer or of what was retrieved."""
        if not sample.contexts:
            sample.contexts += contexts_of(answer, lambda: self.contexts(sample), self.mode, self.tools)
        sample.contexts = [*dict.fromkeys(sample.contexts)]

    def _submit(self, sample: AppSample, response: object) -> None:
        if sample.question is None and "user_input" not in sample.extracted:
            self.monitor.skip("no_question")
            return
        text = said(response, sample.contexts) if isinstance(response, str) else None
        fields: dict[str, object] = {"id": sample.id, "user_input": sample.question, "response": text}
        fields |= {"retrieved_contexts": sample.contexts, "history": sample.history, "metadata": sample.metadata}
        self.monitor.submit(Sample.model_validate(fields | sample.extracted))

    def _listen(self, response: Streamed | StreamingAgentChatResponse, sample: AppSample) -> None:
        """Submit what the app reads of a stream, and let nothing out into it."""
        pieces: list[Any] = []
        is_chat = isinstance(response, StreamingAgentChatResponse)
        over = False

        def ended(error: BaseException | None) -> None:
            nonlocal over
            if over:
                return
            over = True
            with self.guard:
                if error is None:
                    text = "".join(pieces)
                    self._submit(sample, text.strip() if is_chat else text)
                elif isinstance(error, GeneratorExit):
                    self.monitor.skip("abandoned")
                else:
                    self.failed(sample, error)

        _listen_to(response, pieces, ended)


def _listen_to(response: Streamed | StreamingAgentChatResponse, pieces: list[Any], ended: Ended) -> None:
    """Replace a response's stream by one that adds the text of each piece to a list."""

    def take(piece: object) -> None:
        pieces.append((piece.delta or "") if isinstance(piece, ChatResponse) else piece)

    for name in ("response_gen", "chat_stream", "achat_stream"):
        stream: Any = vars(response).get(name)
        if stream is not None:  # by its class, as a tracer's stream may be read in both ways
            awaited = name == "achat_stream" or isinstance(response, AsyncStreamingResponse)
            heard = alisten(stream, take, ended) if awaited else listen(stream, take, ended)
            vars(response)[name] = heard
            weakref.finalize(heard, ended, GeneratorExit()).atexit = False  # one that nobody begins to read
            return


def sample_of(question: str | None, run_id: str, name: str, tags: Mapping[str, object], id_: str) -> AppSample:
    """Return the sample of a run that begins: its id is the app's, if that gives one."""
    if _BEGUN.get()[0] != run_id:
        trace = current_trace()
        named = [] if trace is None else trace.contexts
        _BEGUN.set((run_id, own_id(tags) or id_, named[:]))
        named.clear()
    kept = {key: value for key, value in tags.items() if isinstance(value, _TAG_TYPES) and key[:11] != "llamaindex."}
    kept.pop(TRACE_KEY, None)
    personal = {key: kept.pop(key) for key in _PERSONAL if key in kept}
    _, id_, named = _BEGUN.get()
    return AppSample(question, {"run_id": run_id, "name": name, "tags": kept, **personal}, id=id_, contexts=named[:])


def contexts(nodes: _T) -> _T:
    """Name what the run of the app that is under way was given as contexts, and return it.

    Call it anywhere in a run: in an engine of your own, in a step of a workflow, in a tool, in a plain function. The
    sample of the run then has these contexts, and none of those that retrievers gave. Outside of any run, but within
    `with ragstone.trace_id(...)`, the sample that begins next in that block has them. Nothing is ever raised: what
    cannot be read is counted as `stats().errors["llama_index"]`.

    Args:
        nodes: Nodes or texts, or one of them; or a response, for its source nodes.

    Example:
        >>> contexts(["Emma is a novel by Jane Austen."])
        ['Emma is a novel by Jane Austen.']
    """
    inside = False
    for recorder in filter(None, [live() for live in _LIVE]):
        with recorder.guard:
            run = recorder.runs.get(active_span_id.get()) or recorder.runs.get(global_stack_trace.get()[-1])
            inside |= run is not None
            if run is not None and run.root.sample is not None:
                run.root.sample.contexts += _texts_in(nodes, recorder.mode)
    if not inside and (trace := current_trace()) is not None:
        with suppress(TypeError):
            trace.contexts += _texts_in(nodes, MetadataMode.NONE)
    return nodes


def _texts_in(nodes: object, mode: MetadataMode) -> list[str]:
    texts: list[str] = []
    items: Sequence[object] = nodes if is_list(nodes) else nodes_in(nodes) or [nodes]
    for item in items:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, Node):
            texts += texts_of([item], mode)
        else:
            raise TypeError(f"contexts: has {type(item).__name__}; pass nodes or texts")
    return [text for text in texts if text.strip()]


def turns_before(messages: object, question: str | None) -> tuple[Turn, ...]:
    """Return what was said before the last message in which the user asks a question."""
    lines: list[tuple[object, object]] = []
    for one in messages if is_list(messages) else ():
        if isinstance(one, ChatMessage):
            lines.append((one.role.value, one.content))
        elif is_mapping(one):
            lines.append((one.get("role"), one.get("content")))
    at = max((i for i, (role, text) in enumerate(lines) if role == "user" and text == question), default=0)
    while at and lines[at - 1] == lines[at]:  # given with the history, and added to it
        at -= 1
    return tuple(
        Turn.model_validate({"role": role, "content": _THOUGHTS.sub("", text)})
        for role, text in lines[:at]
        if role in ("user", "assistant") and isinstance(text, str) and text
    )


def is_called_in(modules: tuple[str, ...]) -> bool:
    """Return whether code of one of some modules has called what runs now, or awaits it."""
    frame = inspect.currentframe()
    while frame is not None and not frame.f_globals.get("__name__", "").startswith(modules):
        frame = frame.f_back
    return frame is not None
