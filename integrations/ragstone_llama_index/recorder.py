"""From what happens in an app to samples: used by the handler of spans and by that of legacy callbacks alike."""

import asyncio
import inspect
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks.base import global_stack_trace
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode
from llama_index_instrumentation.span import active_span_id

from ragstone.errors import describe
from ragstone.monitor.run_tree import MOST_COLLECTED, OpenSample, Run, RunTree
from ragstone.monitor.trace import TRACE_KEY, current_trace, own_id
from ragstone.plain import as_dict, is_list, is_mapping
from ragstone.sample import Sample, Turn
from ragstone_llama_index.responses import (
    Mode,
    Node,
    check_mode,
    contexts_of,
    is_generated,
    nodes_in,
    spoken,
    text_of,
    texts_of,
)
from ragstone_llama_index.streaming import alisten, known_text, listen

if TYPE_CHECKING:
    from ragstone.monitor import Monitor

_SOURCE = "llama_index"  # under which the monitor counts what fails in here
_CALLED_OFF = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
_PIECES = "_ragstone_pieces"  # the attribute by which a chat's response remembers what was streamed
_WAITING = "_ragstone_waiting"  # and the one with what waits for its end, by the recorder
_Streamed = StreamingResponse | AsyncStreamingResponse | StreamingAgentChatResponse
_Contexts = tuple[str, ...]
_T = TypeVar("_T")
EVALUATING = ("llama_index.core.evaluation", "llama_index.core.llama_dataset", "ragstone_llama_index.query_engine")
_LIVE: "weakref.WeakSet[Recorder]" = weakref.WeakSet()
_TAG_TYPES = (str, int, float, bool)
_PERSONAL = ("user_id", "thread_id", "session_id", "conversation_id")  # tags that an outcome keeps under their names
_ROLES = {"chatbot": "assistant", "model": "assistant"}
_BEGUN: ContextVar[tuple[str, str | None, list[str]] | None] = ContextVar("ragstone_begun", default=None)
"""Of the sample that began last: its run's id, the app's id and the contexts named before, alike for all monitors."""


@dataclass(slots=True, eq=False)
class AppSample(OpenSample):
    """What is known of a sample in the making.

    Beneath its root two things are collected. "seen": the nodes that a response synthesizer was given, whose texts are
    taken when they are asked for. "retrieved": the texts that retrievers or inner engines returned since.
    """

    id: str = ""
    error: BaseException | None = None  # what was raised last beneath the root
    named: list[str] = field(default_factory=list[str])  # by `contexts`
    history: tuple[Turn, ...] = ()
    converses: bool = False  # whether what its model or its synthesizer is shown tells of earlier turns
    given: dict[str, object] = field(default_factory=dict[str, object])  # fields of the sample, by the app's `extract`


class _Guard:
    """A context out of which nothing is raised into the app. Not `contextmanager`: it is entered for each span."""

    def __init__(self, monitor: "Monitor") -> None:
        self._monitor = monitor

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._monitor.failed(_SOURCE, error)
        return True


class Recorder:
    """Makes one sample of each run, or tells the monitor why there is none.

    `answered` and `failed` are called once for a run, on the app's thread; nothing that they do is slow.
    """

    def __init__(self, monitor: "Monitor", mode: Mode = MetadataMode.NONE, context_tools: Collection[str] = ()) -> None:
        if not callable(getattr(monitor, "submit", None)):
            raise TypeError(f"monitor: is {type(monitor).__name__}; pass a ragstone.Monitor")
        self.monitor = monitor
        self.mode = check_mode(mode)
        self.context_tools = context_tools
        self.runs = RunTree[AppSample]()
        self.guard = _Guard(monitor)
        self._unanswered = deque[tuple[object, set[str]]](maxlen=MOST_COLLECTED)
        _LIVE.add(self)

    def __deepcopy__(self, memo: object) -> "Recorder":
        return self  # LlamaIndex' objects may be copied with all that they hold; the runs under way are the same

    def __reduce__(self) -> tuple[object, ...]:
        return Recorder, (self.monitor, self.mode, self.context_tools)

    def begin(self, id_: str, sample: AppSample | None, kind: str = "entry") -> None:
        """Open a root; None: what happens beneath it is of no interest."""
        for _ in self.runs.start(id_, kind=kind, sample=sample):
            self.monitor.skip("never_ended")

    def unanswered(self, question: object, nodes: Sequence[Node]) -> None:
        """Remember a retrieval that was counted as one without an answer."""
        self._unanswered.append((question, {node.node_id for node in nodes}))

    def take_back(self, question: object, nodes: Sequence[Node]) -> None:
        """Count no longer the retrievals that a synthesis answers: those of its nodes, or of its question."""
        wanted = {node.node_id for node in nodes}
        for retrieval in reversed(tuple(self._unanswered)):
            asked, found = retrieval
            if wanted & found or (asked == question and asked is not None):
                self._unanswered.remove(retrieval)
                self.monitor.skip("only_retrieval", -1)
                wanted -= found
                if not wanted:
                    return

    def retrieve(self, run: Run[AppSample], contexts: Sequence[str]) -> None:
        """Take what a call retrieved, in place of what was retrieved within it."""
        self.runs.discard(run, "seen", "retrieved")
        self.runs.collect(run, "retrieved", contexts)

    def synthesize(self, run: Run[AppSample], nodes: Sequence[Node]) -> None:
        """Take the nodes that a call was given; they were chosen from what was retrieved before."""
        outer = next(one for one in run.lineage() if one.kind and one is not run)
        self.runs.discard(run, "seen")
        if not any(map(is_generated, nodes)):
            self.runs.discard(outer, "retrieved")
        self.runs.collect(run, "seen", nodes)

    def contexts(self, sample: AppSample, within: Run[AppSample] | None = None) -> list[str]:
        """Return the texts that were collected for a sample so far, inside of a call or anywhere."""
        seen: list[Node] = [node for _, nodes in sample.items("seen", within) for node in nodes]
        retrieved: list[str] = [text for _, texts in sample.items("retrieved", within) for text in texts]
        return [*texts_of(seen, self.mode), *retrieved]

    def take(self, sample: AppSample, given: Sample | Mapping[str, object], answer: object) -> object:
        """Take the fields that an app's `extract` gives; return the answer, which is among them or as found.

        Raises:
            ValueError: They are no fields of a sample, or no values of them.
        """
        fields = {name: getattr(given, name) for name in given.model_fields_set} if isinstance(given, Sample) else given
        known: dict[str, object] = {name: value for name, value in fields.items() if value is not None}
        answer = known.pop("response", answer)
        if "retrieved_contexts" in known:
            known["retrieved_contexts"] = texts_in(known["retrieved_contexts"], self.mode)
        Sample.model_validate(known)
        sample.given = known
        return answer

    def answered(self, sample: AppSample, answer: object) -> None:
        """Take what a run answered; where that is a stream, when it has been read."""
        contexts = tuple(dict.fromkeys(sample.named)) or contexts_of(
            answer, lambda: self.contexts(sample), self.mode, self.context_tools
        )
        if not isinstance(answer, _Streamed):
            self._submit(sample, contexts, text_of(answer))
        elif not isinstance(answer, StreamingAgentChatResponse):
            known = known_text(answer)
            if known is None:
                self._listen(answer, sample, contexts, "".join)
            elif known.text is None:  # the engine itself has begun to read it
                self.monitor.skip("abandoned")
            else:
                self._submit(sample, contexts, known.text)
        elif not answer.is_writing_to_memory:  # some chat engines of 0.13 and 0.14 leave the reading to the app
            self._listen(answer, sample, contexts, lambda pieces: "".join(pieces).strip())
        else:
            vars(answer).setdefault(_WAITING, {})[self] = sample, contexts
            if answer.is_done or answer.exception is not None:  # the thread that writes had ended before
                self.written(answer, answer.exception)

    def failed(self, sample: AppSample, error: BaseException | None, contexts: Iterable[str] | None = None) -> None:
        """Take what a run raised: its failure is a sample, unless it was called off."""
        if error is None or isinstance(error, _CALLED_OFF):
            self.monitor.skip("cancelled")
            return
        sample.metadata["error"] = describe(error, most=200)
        if contexts is None:
            contexts = sample.named or self.contexts(sample)
        self._submit(sample, tuple(dict.fromkeys(contexts)), None)

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Listen to a chat's stream that LlamaIndex is about to read into its memory: early versions keep no text."""
        if _PIECES not in vars(response):
            pieces = vars(response)[_PIECES] = list[Any]()
            _listen_to(response, pieces, lambda _: None)

    def written(self, response: StreamingAgentChatResponse, error: BaseException | None = None) -> None:
        """Take a chat's answer that was streamed into its history, whether the app reads it or not."""
        waiting: dict[Recorder, tuple[AppSample, _Contexts]] = vars(response).get(_WAITING, {})
        if self not in waiting:
            return
        sample, contexts = waiting.pop(self)
        if error is not None:
            self.failed(sample, error, contexts)
        else:
            self._submit(sample, contexts, "".join(vars(response).get(_PIECES, ())).strip() or response.response)

    def _submit(self, sample: AppSample, contexts: _Contexts, response: object) -> None:
        given = dict(sample.given)
        if sample.question is None and "user_input" not in given:
            self.monitor.skip("no_question")
            return
        metadata = {**sample.metadata, **as_dict(given.pop("metadata", None))}
        fields: dict[str, object] = {
            "id": sample.id,
            "user_input": sample.question,
            "retrieved_contexts": contexts,
            "response": spoken(response, contexts) if isinstance(response, str) else None,
            "history": sample.history,
        }
        self.monitor.submit(Sample.model_validate({**fields, **given, "metadata": metadata}))

    def _listen(
        self, response: _Streamed, sample: AppSample, contexts: _Contexts, join: Callable[[list[Any]], str]
    ) -> None:
        """Submit what the app reads of a stream, and let nothing out into it."""
        pieces: list[Any] = []
        over: list[bool] = []

        def ended(error: BaseException | None) -> None:
            if over:
                return
            over.append(True)
            with self.guard:
                if error is None:
                    self._submit(sample, contexts, join(pieces))
                elif isinstance(error, GeneratorExit):
                    self.monitor.skip("abandoned")
                else:
                    self.failed(sample, error, contexts)

        stream = _listen_to(response, pieces, ended)
        weakref.finalize(stream, ended, GeneratorExit()).atexit = False  # one that nobody begins to read ends unheard


def _listen_to(response: _Streamed, pieces: list[Any], ended: Callable[[BaseException | None], object]) -> object:
    """Replace a response's stream by one that adds the text of each piece to a list; return that one."""

    def take(piece: object) -> None:
        pieces.append((piece.delta or "") if isinstance(piece, ChatResponse) else piece)

    if isinstance(response, StreamingResponse):
        response.response_gen = listen(response.response_gen, take, ended)
        return response.response_gen
    if isinstance(response, AsyncStreamingResponse):
        response.response_gen = alisten(response.response_gen, take, ended)
        return response.response_gen
    if response.chat_stream is not None:
        response.chat_stream = listen(response.chat_stream, take, ended)
    elif response.achat_stream is not None:
        response.achat_stream = alisten(response.achat_stream, take, ended)
    return response.chat_stream or response.achat_stream


def sample_of(question: str | None, run_id: str, name: str, tags: Mapping[str, object], id_: str) -> AppSample:
    """Return the sample of a run that begins: its id is the app's, if that gives one."""
    begun = _BEGUN.get()
    if begun is None or begun[0] != run_id:
        trace = current_trace()
        named = [] if trace is None else trace.contexts[:]
        if trace is not None:
            trace.contexts.clear()
        _BEGUN.set(begun := (run_id, own_id(tags), named))
    told = {key: value for key, value in tags.items() if isinstance(value, _TAG_TYPES) and key[:11] != "llamaindex."}
    personal = {key: told.pop(key) for key in _PERSONAL if key in told}
    told.pop(TRACE_KEY, None)
    metadata: dict[str, object] = {"run_id": run_id, "name": name, "tags": told, **personal}
    return AppSample(question, metadata, id=begun[1] or id_, named=begun[2][:])


def contexts(found: _T) -> _T:
    """Name what the run of the app that is under way was given as contexts, and return it.

    Call it anywhere in a run: in an engine of your own, in a step of a workflow, in a tool, in a plain function. The
    sample of the run then has these contexts, and none of those that retrievers gave. Outside of any run, but within
    `with ragstone.trace_id(...)`, the sample that begins next in that block has them. Nothing is ever raised: what
    cannot be read is counted as `stats().errors["llama_index"]`.

    Args:
        found: Nodes or texts, or one of them; or a response, for its source nodes.

    Example:
        >>> contexts(["Emma is a novel by Jane Austen."])
        ['Emma is a novel by Jane Austen.']
    """
    heard = False
    for recorder in list(_LIVE):
        with recorder.guard:
            run = recorder.runs.get(active_span_id.get()) or recorder.runs.get(global_stack_trace.get()[-1])
            if run is not None:
                heard = True
                if run.root.sample is not None:
                    run.root.sample.named += texts_in(found, recorder.mode)
    trace = current_trace()
    if not heard and trace is not None:
        with suppress(Exception):
            trace.contexts += texts_in(found, MetadataMode.NONE)
    return found


def texts_in(found: object, mode: MetadataMode) -> Sequence[str]:
    if isinstance(found, str):
        return [found] if found.strip() else []
    items: Sequence[object] = found if is_list(found) else nodes_in(found) or [found]
    texts: list[str] = []
    for item in items:
        if not isinstance(item, str | Node):
            raise TypeError(f"contexts: has {type(item).__name__}; pass nodes or texts")
        texts += [item] if isinstance(item, str) else texts_of([item], mode)
    return [text for text in texts if text.strip()]


def turns_before(messages: object, question: str | None, *also: str) -> tuple[Turn, ...] | None:
    """Return what was said before the last message in which the user asks a question; None: there is no such one."""
    said: list[tuple[object, object]] = []
    for one in messages if is_list(messages) else ():
        if isinstance(one, ChatMessage):
            said.append((_ROLES.get(one.role.value, one.role.value), one.content))
        elif is_mapping(one):
            said.append((one.get("role"), one.get("content")))
    asked = [at for at, (role, text) in enumerate(said) if role == "user" and text in (question, *also)]
    if not asked:
        return None
    earlier = [{"role": role, "content": text} for role, text in said[: asked[-1]]]
    return tuple(
        Turn.model_validate(turn) for turn in earlier if turn["role"] in ("user", "assistant") and turn["content"]
    )


def is_called_in(*modules: str) -> bool:
    """Return whether code of one of some modules has called what runs now, or awaits it."""
    frame = inspect.currentframe()
    while frame is not None and not frame.f_globals.get("__name__", "").startswith(modules):
        frame = frame.f_back
    return frame is not None
