"""`instrument` and `uninstrument`: every query, chat and agent run of this process becomes a sample of a monitor."""

import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TypeVar

from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import MetadataMode
from llama_index_instrumentation.span import active_span_id

from ragstone.adapters.narrowing import submit, with_answer
from ragstone.adapters.open_runs import ADVICE_FOR_ALL
from ragstone.adapters.runs import CANCELLED, PERSONAL, UNDER_WAY, Draft, Run, Skipped, Unreadable
from ragstone.errors import describe
from ragstone.live import Monitor
from ragstone.live.sampling import check_function
from ragstone.live.trace import TRACE_KEY, current_trace, own_id
from ragstone.metrics.models import check_members
from ragstone_llama_index.forms import Streams, said
from ragstone_llama_index.inside import first_argument
from ragstone_llama_index.read import Mode, NamedFields, Reading, draft_of, named
from ragstone_llama_index.record import EVALUATION_TAG, EVALUATIONS, UUID, CallRecorder, caller_among, recorders
from ragstone_llama_index.streaming import Pieces, noting, text_in

CallFilter = Callable[[object, str], bool]
"""Whether calls of an object, by a name such as "RetrieverQueryEngine.query", are to be scored."""

_T = TypeVar("_T")
_INDEXING = ("llama_index.core.indices",)
_TAG_TYPES = (str, int, float, bool)
_MOST_UNANSWERED = 1_000
_CHANGING = threading.Lock()
_BEGUN: ContextVar[tuple[str, str, Sequence[str]]] = ContextVar("ragstone_begun", default=("", "", ()))
"""Of the sample that began last: its run's id, its own, and the contexts named before, alike for all monitors."""

ADVICE = ADVICE_FOR_ALL | {
    "indexing": "an index was built: its questions are LlamaIndex' own",
    "never_ended": "no event came for an hour: exclude what never ends with where=",
    "no_answer": 'Name it: instrument(monitor, fields={"response": "NAME"})',
    "no_contexts": 'Name them: instrument(monitor, fields={"retrieved_contexts": "NAME"}), or contexts(...) in the app',
    "no_question": 'name it: instrument(monitor, fields={"user_input": "NAME"})',
    "only_model": "a model was called outside of any engine: call monitor.submit(Sample(...)) there",
    "own_run": "an evaluation or a preview asked the app, not a user",
    "too_large": "its calls hold more than 10,000,000 characters",
}
"""Advice on runs that gave no sample, by reason."""


class Live(CallRecorder):
    """Hands the sample of each run to a monitor, or the reason why there is none."""

    def __init__(self, monitor: Monitor, reading: Reading, where: CallFilter | None) -> None:
        check_members("monitor", monitor, ("submit",), "pass a ragstone.Monitor")
        super().__init__(reading)
        self.monitor = monitor
        self.where = where
        self.leaving = False
        # By the id of the response, which has no hash.
        self._chats: dict[int, Pieces] = {}
        # Hashes of the questions of mere retrievals.
        self._unanswered = deque[int](maxlen=_MOST_UNANSWERED)
        monitor.advise(ADVICE)

    def leave(self) -> None:
        """Begin no sample any more, and go once those under way are over."""
        self.leaving = True
        self._remove_if_done()

    def _remove_if_done(self) -> None:
        if self.leaving and not len(self.trees) and all(pieces.done() for pieces in tuple(self._chats.values())):
            self.remove()

    def failed(self, error: Exception) -> None:
        """Count an error of the handler's own."""
        if isinstance(error, Unreadable):
            self.monitor.skip("fields_failed")
        self.monitor.failed("llama_index", error)

    def given_up(self, run: Run, reason: str) -> None:
        """Count a run that will not end."""
        if run.kind:
            self.monitor.skip(reason)

    def begins(self, run: Run, instance: object, tags: Mapping[str, object]) -> bool:
        """Begin a run of the app, or count it with the reason why it is none."""
        if self.leaving:
            return False
        previewed = UNDER_WAY.get() not in (None, self.monitor)
        if reason := "own_run" if previewed else self._why_none(run, instance, tags):
            self.monitor.skip(reason)
            run.kind = ""
        elif run.kind not in ("model", "retrieval"):
            self._name(run, tags)
        if run.kind == "synthesis" and hash(first_argument(run)) in self._unanswered:
            self._unanswered.remove(hash(first_argument(run)))
            self.monitor.skip("only_retrieval", -1)
        return True

    def _why_none(self, run: Run, instance: object, tags: Mapping[str, object]) -> str:
        modules = (*EVALUATIONS, *_INDEXING) if run.kind == "synthesis" else EVALUATIONS
        caller = EVALUATIONS[0] if EVALUATION_TAG in tags else caller_among(modules)
        if caller:
            return "indexing" if caller.startswith(_INDEXING) else "own_run"
        if run.kind in ("model", "retrieval") or self.where is None:
            return ""
        try:
            return "" if self.where(instance, run.name) else "excluded"
        except Exception as error:
            self.failed(error)
            return "where_failed"

    def _name(self, run: Run, tags: Mapping[str, object]) -> None:
        """Give a run its sample's id, which is the app's if that gives one, and what the sample says of it."""
        if _BEGUN.get()[0] != run.id:
            trace = current_trace()
            block = [] if trace is None else trace.contexts
            _BEGUN.set((str(run.id), own_id(tags) or str(run.id)[-UUID:], block[:]))
            block.clear()
        _, sample_id, before = _BEGUN.get()
        kept = {
            key: value for key, value in tags.items() if isinstance(value, _TAG_TYPES) and key[:11] != "llamaindex."
        }
        kept.pop(TRACE_KEY, None)
        personal = {key: kept.pop(key) for key in PERSONAL if key in kept}
        run.metadata = {"sample_id": sample_id, "run_id": run.id, "name": run.name, "tags": kept, **personal}
        if before:
            run.inside.append(Run("", "named", output=[*before], open=False))

    def ended(self, run: Run) -> None:
        """Submit the sample of a run that has ended; where that answers by a stream, once it has been read."""
        if run.kind in ("model", "retrieval"):
            self.monitor.skip(f"only_{run.kind}")
            if run.output is not None:
                self._unanswered.append(hash(first_argument(run)))
        elif run.kind:
            self._take(run)
        runs = [run]
        for each in runs:
            runs += each.inside
            # Else what the app returned, such as a stream that it left, waits for the garbage collector.
            each.parent = None
        self._remove_if_done()

    def _take(self, run: Run) -> None:
        draft = draft_of(run, self.reading)
        if isinstance(draft, Skipped):
            self.monitor.skip(draft.reason, names=draft.names, likely=draft.likely)
            return
        answer = draft.answer
        if run.error is not None or draft.sample.response is not None or not isinstance(answer, Streams):
            submit(self.monitor, draft)
            return
        writing = isinstance(answer, StreamingAgentChatResponse) and answer.is_writing_to_memory
        pieces = self._pieces_of(answer) if writing else Pieces()
        if not writing:
            _note(answer, pieces)
        # Only now: what cannot be noted counts once, as an error. Without the response, which has the stream.
        pieces.add_done_callback(partial(self.safely, self._take_pieces, replace(draft, answer=None)))

    def _pieces_of(self, response: object) -> Pieces:
        """Return the pieces of a chat's stream that LlamaIndex reads into its memory."""
        key = id(response)
        if key not in self._chats:
            self._chats[key] = Pieces()
            weakref.finalize(response, self._chats.pop, key, None).atexit = False
        return self._chats[key]

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Note the pieces of a chat's stream that LlamaIndex is about to read: early versions keep no text."""
        _note(response, self._pieces_of(response))

    def _take_pieces(self, draft: Draft, pieces: Pieces) -> None:
        """Submit the sample of a stream that has ended."""
        self._remove_if_done()
        error = pieces.exception()
        if error is None:
            came = pieces.result()
            if (text := text_in(came)) is None:
                self.monitor.skip("no_answer", names=tuple({type(piece).__name__ for piece in came}))
            else:
                submit(self.monitor, with_answer(draft, said(text)))
        elif isinstance(error, CANCELLED):
            self.monitor.skip("abandoned" if isinstance(error, GeneratorExit) else "cancelled")
        else:
            metadata = {**draft.sample.metadata, "error": describe(error, most=200)}
            submit(self.monitor, replace(draft, sample=draft.sample.model_copy(update={"metadata": metadata})))


def _note(response: Streams, pieces: Pieces) -> None:
    """Put another stream, which notes its pieces, into a response."""
    if isinstance(response, StreamingAgentChatResponse):
        name, awaited = ("chat_stream", False) if response.achat_stream is None else ("achat_stream", True)
    else:
        # The class decides, because a tracer's stream may be read in both ways.
        name, awaited = "response_gen", isinstance(response, AsyncStreamingResponse)
    setattr(response, name, noting(getattr(response, name), pieces, awaited=awaited))


def instrument(
    monitor: Monitor,
    *,
    where: CallFilter | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
    fields: NamedFields | None = None,
    context_tools: Collection[str] = (),
    id_key: str | None = None,
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
            returned, else in what it was asked; a name that is not there changes nothing. Or a function of a run's
            arguments by name, and its result. It returns a `Sample`, a mapping of some of its fields (the
            others are read as usual), or None for no sample. A "response" may be one of LlamaIndex' responses,
            "retrieved_contexts" may be nodes.
        context_tools: Names of tools whose texts are contexts; nodes that tools return are contexts anyway.
        id_key: The key of a node's metadata that is its id in `retrieved_ids`, such as "file_name"; of one without it
            its own id counts, "" says so of all. None: samples have no ids.

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
    reading = Reading.of(metadata_mode, context_tools, fields, id_key)
    live = Live(monitor, reading, where)
    with _CHANGING:
        installed = [each for each in _live() if each.monitor is monitor and not each.leaving]
        for each in installed:
            each.where, each.reading = where, reading
        if not installed:
            live.install()


def uninstrument(monitor: Monitor | None = None) -> None:
    """Undo `instrument`; other handlers stay. Runs under way, and streams that are being read, are still scored.

    Args:
        monitor: Whose; None: all monitors.
    """
    with _CHANGING:
        for each in _live():
            if monitor is None or each.monitor is monitor:
                each.leave()


def _live() -> list[Live]:
    return [each for each in recorders() if isinstance(each, Live)]


def contexts(nodes: _T) -> _T:
    """Name the contexts of the app's current run, and return them.

    Call it anywhere in a run: in an engine of your own, in a step of a workflow, in a tool, in a plain function. The
    sample of the run then has these contexts, and none of its retrievers. Outside of any run, but within
    `with ragstone.trace_id(...)`, the sample that begins next in that block has them. It never raises;
    `stats().errors["llama_index"]` counts unreadable values.

    Args:
        nodes: Nodes or texts, or one of them; or a response, for its source nodes.

    Example:
        >>> contexts(["Emma is a novel by Jane Austen."])
        ['Emma is a novel by Jane Austen.']
    """
    inside = False
    for recorder in recorders():
        if (run := recorder.get(active_span_id.get())) is not None:
            inside = True
            recorder.safely(recorder.name_contexts, run, nodes)
    if not inside and (trace := current_trace()) is not None:
        with suppress(TypeError):
            trace.contexts += named(nodes)
    return nodes
