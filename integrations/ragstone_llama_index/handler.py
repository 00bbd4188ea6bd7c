"""`instrument` and `uninstrument`: every query, chat and agent run of this process becomes a sample of a monitor."""

import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import StopEvent

from ragstone.errors import describe
from ragstone.live import Monitor
from ragstone.live.sampling import check_function
from ragstone.live.trace import TRACE_KEY, current_trace, own_id
from ragstone.metrics.models import check_members
from ragstone.open_runs import ADVICE_FOR_ALL, OpenRuns
from ragstone.plain import as_dict
from ragstone.run import Run, Skipped
from ragstone.sample import Sample
from ragstone_llama_index.read import (
    CALLED_OFF,
    Fields,
    Mode,
    Node,
    Reading,
    Streamed,
    Streams,
    Unreadable,
    draft_of,
    entries_of,
    named,
    nodes_in,
    question_of,
    said,
)
from ragstone_llama_index.record import EVALUATION_TAG, EVALUATIONS, UUID, AppRun, Recorder, is_called_in, recorders
from ragstone_llama_index.streaming import Ended, alisten, known_text, listen

Where = Callable[[object, str], bool]
"""Whether calls of an object, by a name such as "RetrieverQueryEngine.query", are to be scored."""

_T = TypeVar("_T")
_INDEXING = ("llama_index.core.indices",)
_TAG_TYPES = (str, int, float, bool)
_PERSONAL = ("user_id", "thread_id", "session_id", "conversation_id")  # tags that an outcome keeps under their names
_MOST_UNANSWERED = 1_000
_CHANGING = threading.Lock()
_BEGUN: ContextVar[tuple[str, str, Sequence[str]]] = ContextVar("ragstone_begun", default=("", "", ()))
"""Of the sample that began last: its run's id, its own, and the contexts named before, alike for all monitors."""

ADVICE = ADVICE_FOR_ALL | {
    "indexing": "an index was built: its questions are LlamaIndex' own",
    "never_ended": "no event came for an hour: exclude what never ends with where=",
    "no_answer": 'Name it: instrument(monitor, fields={"response": "NAME"})',
    "no_question": 'name it: instrument(monitor, fields={"user_input": "NAME"})',
    "only_model": "a model was called outside of any engine: call monitor.submit(Sample(...)) there",
    "own_run": "an evaluation asked the app, not a user",
    "too_large": "its calls hold more than 10,000,000 characters",
}
"""What to do about runs that gave no sample, by reason."""


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


@dataclass(slots=True, eq=False)
class _Pieces:
    """What has come of a stream so far, and who waits for its end."""

    of_chat: bool = False
    came: list[object] = field(default_factory=list[object])
    over: bool = False
    error: BaseException | None = None
    waiting: Ended | None = None

    @property
    def text(self) -> str | None:
        """The pieces' text; None where one of them is none."""
        text = ""
        for piece in self.came:
            words = (piece.delta or "") if isinstance(piece, ChatResponse | CompletionResponse) else piece
            if not isinstance(words, str):
                return None
            text += words
        return text.strip() if self.of_chat else text

    def end(self, error: BaseException | None) -> None:
        """Note the end, once, and tell who waits."""
        if not self.over:
            self.over, self.error = True, error
            if self.waiting is not None:
                self.waiting(error)
                self.waiting = None


class Live:
    """Hands the sample of each run to a monitor, or tells it why there is none. A `Follower`.

    What it does on the app's thread is not slow.
    """

    def __init__(self, monitor: Monitor, reading: Reading, where: Where | None) -> None:
        check_members("monitor", monitor, ("submit",), "pass a ragstone.Monitor")
        self.monitor = monitor
        monitor.advise(ADVICE)
        self.reading = reading
        self.where = where
        self.guard = _Guard(monitor)
        self.trees = OpenRuns(lambda run, reason: monitor.skip(reason) if run.kind else None)
        self.recorder = Recorder(self)
        self.leaving = False
        self._chats: dict[int, _Pieces] = {}  # by the id of their response, which is no key
        self._unanswered = deque[set[str | None]](maxlen=_MOST_UNANSWERED)  # questions and nodes of mere retrievals

    def __deepcopy__(self, memo: object) -> "Live":
        return self  # LlamaIndex' objects may be copied with all that they hold; the runs under way are the same

    def __reduce__(self) -> tuple[object, ...]:
        return Live, (self.monitor, self.reading, self.where)

    def leave(self) -> None:
        """Begin no sample any more, and go once those under way are over."""
        self.leaving = True
        self._remove_if_done()

    def _remove_if_done(self) -> None:
        awaited = [each for each in tuple(self._chats.values()) if each.waiting is not None and not each.over]
        if self.leaving and not (len(self.trees) or awaited):
            self.recorder.remove()

    def begins(self, run: AppRun, instance: object, tags: Mapping[str, object]) -> bool:
        """Begin a run of the app, or count it with the reason why it is none."""
        if self.leaving:
            return False
        if reason := self._why_none(run, instance, tags):
            self.monitor.skip(reason)
            run.kind = ""
            return True
        inputs, question = as_dict(run.inputs), question_of(run)
        if run.kind == "synthesis":
            self._take_back(question, nodes_in(inputs.get("nodes")))
        if run.kind not in ("model", "retrieval"):
            run.converses = isinstance(instance, BaseChatEngine) or inputs.get("memory") is not None
            self._name(run, tags)
        return True

    def _why_none(self, run: AppRun, instance: object, tags: Mapping[str, object]) -> str:
        if EVALUATION_TAG in tags or is_called_in(EVALUATIONS):
            return "own_run"
        if run.kind == "synthesis" and is_called_in(_INDEXING):
            return "indexing"
        if run.kind in ("model", "retrieval"):
            return ""
        with self.guard:  # the user's function
            return "" if self.where is None or self.where(instance, run.name) else "excluded"
        return "where_failed"

    def _name(self, run: AppRun, tags: Mapping[str, object]) -> None:
        """Give a run its sample's id, which is the app's if that gives one, and what the sample says of it."""
        if _BEGUN.get()[0] != run.id:
            trace = current_trace()
            block = [] if trace is None else trace.contexts
            _BEGUN.set((str(run.id), own_id(tags) or str(run.id)[-UUID:], block[:]))
            block.clear()
        kept = {
            key: value for key, value in tags.items() if isinstance(value, _TAG_TYPES) and key[:11] != "llamaindex."
        }
        kept.pop(TRACE_KEY, None)
        personal = {key: kept.pop(key) for key in _PERSONAL if key in kept}
        run.metadata = {"run_id": run.id, "name": run.name, "tags": kept, **personal}
        _, run.sample_id, before = _BEGUN.get()
        if before:
            run.inside.append(Run("", "named", output=[*before], open=False))

    def _take_back(self, question: str | None, nodes: Sequence[Node]) -> None:
        """Count no longer as mere retrievals those that a synthesis answers: of its question or its nodes."""
        wanted = {question, *(node.node_id for node in nodes)}
        for retrieval in reversed(tuple(self._unanswered)):
            if wanted & retrieval:
                self._unanswered.remove(retrieval)
                self.monitor.skip("only_retrieval", -1)
                wanted -= retrieval

    def ended(self, run: AppRun) -> None:
        """Take the tree of a run that has ended: its sample follows, for a stream once that has been read."""
        if run.kind == "model":
            self.monitor.skip("only_model")
        elif run.kind == "retrieval":
            self.monitor.skip("only_retrieval")
            if run.error is None:
                self._unanswered.append({question_of(run), *(each.node_id for each in nodes_in(run.output))})
        elif run.kind:
            try:
                self._take(run)
            except Unreadable:
                self.monitor.skip("fields_failed")
                raise
        for each in run.walk():
            each.parent = None  # lest what the app returned, such as a stream that it left, waits for the collector
        self._remove_if_done()

    def _take(self, run: AppRun) -> None:
        draft = draft_of(run, self.reading)
        if isinstance(draft, Skipped):
            self.monitor.skip(draft.reason, names=draft.names)
            return
        sample = draft.sample.model_copy(update={"id": draft.sample.id or run.sample_id})
        answer = draft.answer
        if run.error is not None or not isinstance(answer, Streams):
            self.monitor.submit(sample)
        elif isinstance(answer, StreamingAgentChatResponse):
            self._follow_chat(answer, sample)
        elif not isinstance(answer, Streamed):
            self._follow_result(run, cast("object", answer), sample)
        elif (known := known_text(answer)) is None:
            self._follow(answer, sample)
        elif isinstance(known.text, str):
            self.monitor.submit(sample.model_copy(update={"response": said(known.text)}))
        else:  # the engine itself has begun to read it
            self.monitor.skip("abandoned")

    def _follow(self, response: Streamed | StreamingAgentChatResponse, sample: Sample) -> None:
        """Submit a sample once the app has read a response's stream."""
        pieces = _Pieces(isinstance(response, StreamingAgentChatResponse))
        pieces.waiting = partial(self._read, sample, pieces)
        _listen_to(response, pieces)

    def _follow_chat(self, response: StreamingAgentChatResponse, sample: Sample) -> None:
        if not response.is_writing_to_memory:  # some chat engines leave the reading to the app
            self._follow(response, sample)
            return
        pieces = self._pieces_of(response)
        pieces.waiting = partial(self._read, sample, pieces)
        if pieces.over:
            pieces.waiting(pieces.error)

    def _follow_result(self, run: AppRun, answer: object, sample: Sample) -> None:
        """Submit a sample once the app has read the stream that a workflow returned, by itself or under a name."""
        pieces = _Pieces()
        pieces.waiting = partial(self._read, sample, pieces)
        heard = _heard(answer, pieces, awaited=isinstance(answer, AsyncGenerator))
        if not _replace(run.returned, answer, heard):
            pieces.waiting = None
            self.monitor.skip("no_answer", names=(type(answer).__name__,))

    def _pieces_of(self, response: StreamingAgentChatResponse) -> _Pieces:
        """Return what has come of a chat's stream that LlamaIndex reads into its memory."""
        key = id(response)
        if key not in self._chats:
            self._chats[key] = _Pieces(of_chat=True)
            weakref.finalize(response, self._chats.pop, key, None).atexit = False
        return self._chats[key]

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Listen to a chat's stream that LlamaIndex is about to read: early versions keep no text."""
        _listen_to(response, self._pieces_of(response))

    def _read(self, sample: Sample, pieces: _Pieces, error: BaseException | None) -> None:
        """Submit the sample of a stream that has ended."""
        text = pieces.text
        with self.guard:
            if isinstance(error, GeneratorExit):
                self.monitor.skip("abandoned")
            elif isinstance(error, CALLED_OFF):
                self.monitor.skip("cancelled")
            elif error is not None:
                metadata = {**sample.metadata, "error": describe(error, most=200)}
                self.monitor.submit(sample.model_copy(update={"metadata": metadata}))
            elif text is None:
                self.monitor.skip("no_answer", names=(type(pieces.came[0]).__name__,))
            else:
                self.monitor.submit(sample.model_copy(update={"response": said(text)}))
        self._remove_if_done()


def _listen_to(response: Streamed | StreamingAgentChatResponse, pieces: _Pieces) -> None:
    """Replace a response's stream by one that notes each piece that is read."""
    for name in ("response_gen", "chat_stream", "achat_stream"):
        stream = vars(response).get(name)
        if stream is not None:  # by its class, as a tracer's stream may be read in both ways
            awaited = name == "achat_stream" or isinstance(response, AsyncStreamingResponse)
            setattr(response, name, _heard(stream, pieces, awaited=awaited))
            return


def _replace(returned: object, stream: object, heard: object) -> bool:
    """Put another stream where the one stands that a workflow returned; False: there it cannot be replaced."""
    if type(returned) is StopEvent and returned.result is stream:
        StopEvent.__init__(returned, heard)
        return True
    result = returned.result if type(returned) is StopEvent else returned
    for name, value in entries_of(result).items():
        if value is stream and isinstance(result, dict):
            cast("dict[object, object]", result)[name] = heard
        elif value is stream:
            setattr(cast("object", result), name, heard)
        if value is stream:
            return True
    return False


def _heard(stream: Any, pieces: _Pieces, *, awaited: bool) -> object:  # noqa: ANN401
    heard = (alisten if awaited else listen)(stream, pieces.came.append, pieces.end)
    weakref.finalize(heard, pieces.end, GeneratorExit()).atexit = False  # one that nobody begins to read
    return heard


def instrument(
    monitor: Monitor,
    *,
    where: Where | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
    fields: Fields | None = None,
    context_tools: Collection[str] = (),
) -> None:
    """Score the answers of this process's query engines, chat engines, agents and workflows with a monitor.

    Each outermost call gives one sample. docs/llama_index.md shows which calls count, and the sources of question,
    contexts, history and answer. `stats().skipped` counts all other calls by reason. Nothing raises into the app:
    `stats().errors["llama_index"]` counts failures here.

    Args:
        monitor: Takes the samples. A second call with the same monitor only changes the options.
        where: A function of an object and a name ("RetrieverQueryEngine.query"). If false, its calls and all beneath
            them are left out; None: all. Runs on the app's thread; if it raises, the call is
            left out.
        metadata_mode: The nodes' metadata in the contexts; see `MetricEvaluator`.
        fields: Where a sample's fields stand: by dotted names, as in {"response": "data.final_text"}, in what a run
            returned, else in what it was asked; a name that is not there changes nothing. Or a function of what a run
            was asked, by name, and what it returned, which returns a `Sample`, a mapping of some of its fields (the
            others are read as usual), or None for no sample. A "response" may be one of LlamaIndex' responses,
            "retrieved_contexts" may be nodes.
        context_tools: Names of tools whose texts are contexts; nodes that tools return are contexts anyway.

    Raises:
        TypeError: `monitor` is not a monitor, `where` or `fields` not a plain function.
        ValueError: `metadata_mode` is unknown, `fields` names no field, or `context_tools` is one text.

    Example:
        >>> from llama_index.core import MockEmbedding, VectorStoreIndex
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.schema import TextNode
        >>> class Printing:  # in place of a ragstone.Monitor
        ...     def advise(self, advice): ...
        ...     def submit(self, sample):
        ...         print(sample.user_input, sample.retrieved_contexts)
        >>> monitor = Printing()
        >>> instrument(monitor)
        >>> index = VectorStoreIndex([TextNode(text="Jane Austen did.")], embed_model=MockEmbedding(embed_dim=2))
        >>> response = index.as_query_engine(llm=MockLLM()).query("Who wrote Emma?")
        Who wrote Emma? ('Jane Austen did.',)
        >>> uninstrument(monitor)
    """
    check_function("where", where)
    reading = Reading.of(metadata_mode, context_tools, fields)
    live = Live(monitor, reading, where)
    with _CHANGING:
        placed = [each for each in _live() if each.monitor is monitor and not each.leaving]
        for each in placed:
            each.where, each.reading = where, reading
        if not placed:
            live.recorder.place()


def uninstrument(monitor: Monitor | None = None) -> None:
    """Undo `instrument`; other handlers stay. Runs under way, and streams that are being read, are still scored.

    Args:
        monitor: Whose; None: all monitors.
    """
    with _CHANGING:
        for each in _live():
            if monitor is None or each.monitor is monitor:
                each.leave()


class MonitorCallbackHandler(BaseCallbackHandler):
    """LlamaIndex' older callbacks for `instrument`, which sees all that they show and more.

    Making one is `instrument(monitor, metadata_mode=...)`; wherever it is put, it does nothing further.
    """

    def __init__(self, monitor: Monitor, *, metadata_mode: Mode = MetadataMode.NONE) -> None:
        super().__init__([], [])
        instrument(monitor, metadata_mode=metadata_mode)

    def on_event_start(self, *args: Any, event_id: str = "", **kwargs: Any) -> str:  # noqa: ANN401, ARG002
        """Do nothing."""
        return event_id

    def on_event_end(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Do nothing."""

    start_trace = end_trace = on_event_end


def _live() -> list[Live]:
    followers: list[object] = [each.follower for each in recorders()]
    return [each for each in followers if isinstance(each, Live)]


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
    for recorder in recorders():
        with recorder.follower.guard:
            inside |= recorder.name_contexts(nodes)
    if not inside and (trace := current_trace()) is not None:
        with suppress(TypeError):
            trace.contexts += named(nodes)
    return nodes
