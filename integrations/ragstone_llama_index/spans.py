"""`instrument` and `uninstrument`: every query, chat and agent run of this process becomes a sample of a monitor.

LlamaIndex calls the handler of spans on the app's own thread, and swallows whatever it raises, so everything is
caught here and counted by the monitor.
"""

import inspect
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.workflow import StartEvent, Workflow
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import BaseModel

from ragstone.monitor.run_tree import Run
from ragstone.plain import as_dict
from ragstone_llama_index.recorder import AppSample, Recorder
from ragstone_llama_index.responses import Mode, answer_in, contexts_of, nodes_in, texts_of
from ragstone_llama_index.shared_model import JUDGE_TAG

if TYPE_CHECKING:
    from ragstone.monitor import Monitor

Where = Callable[[object, str], bool]
"""Whether calls of an object, by a name such as "RetrieverQueryEngine.query", are to be scored."""

_Kind = Literal["entry", "retrieval", "synthesis", "writing"]
_KINDS: tuple[tuple[_Kind, type, str], ...] = (
    ("entry", BaseQueryEngine, "query aquery"),
    ("entry", BaseChatEngine, "chat achat stream_chat astream_chat"),
    ("entry", Workflow, "run"),  # all agents are workflows
    ("retrieval", BaseRetriever, "retrieve aretrieve"),
    ("synthesis", BaseSynthesizer, "synthesize asynthesize"),
    ("writing", StreamingAgentChatResponse, "write_response_to_history awrite_response_to_history"),
)
_BY_NAME: dict[str, tuple[_Kind, type]] = {name: (kind, cls) for kind, cls, names in _KINDS for name in names.split()}
_UUID = 36  # characters: a span's id is "RetrieverQueryEngine.query-" and a UUID
_TAG_TYPES = (str, int, float, bool)
_QUESTIONS = ("user_msg", "query", "question", "message", "input")  # of a workflow's start event, in this order
_CHANGING = threading.Lock()


def instrument(monitor: "Monitor", *, where: Where | None = None, metadata_mode: Mode = MetadataMode.NONE) -> None:
    """Have a monitor score what query engines, chat engines, agents and workflows of this process answer.

    A sample is made of each outermost call, whatever happens beneath it; docs/llama_index.md says of which, and where
    question, contexts and answer are taken from. What makes no sample is counted by `monitor.skip`: "no_question",
    "abandoned" (a stream left half-read), "cancelled", or "never_ended" (no event for an hour, or the oldest of more
    than 2,000 under way). Nothing ever raises into the app: what fails in here is counted as
    `stats().errors["llama_index"]`.

    Args:
        monitor: Takes the samples. A second call with the same monitor only changes the options.
        where: Says by an object and a name ("RetrieverQueryEngine.query") whether its calls are to be scored, together
            with all beneath them; None: all. Called on the app's thread; where it raises, the call is left alone.
        metadata_mode: Which metadata of nodes stand in the contexts; see `MetricEvaluator`.

    Raises:
        TypeError: `monitor` is no monitor, or `where` is no function.
        ValueError: There is no such `metadata_mode`.

    Example:
        >>> from llama_index.core import MockEmbedding, VectorStoreIndex
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.schema import TextNode
        >>> class Printing:  # in place of a ragstone.Monitor
        ...     def submit(self, sample):
        ...         print(sample.user_input, sample.retrieved_contexts)
        >>> monitor = Printing()
        >>> instrument(monitor)
        >>> index = VectorStoreIndex([TextNode(text="Jane Austen did.")], embed_model=MockEmbedding(embed_dim=2))
        >>> response = index.as_query_engine(llm=MockLLM()).query("Who wrote Emma?")
        Who wrote Emma? ('Jane Austen did.',)
        >>> uninstrument(monitor)
    """
    if not callable(where or bool):
        raise TypeError(f"where: is {type(where).__name__}; pass a function of an object and a name, or None")
    handler = MonitorSpanHandler(Recorder(monitor, metadata_mode), where)
    with _CHANGING:
        for placed in _handlers_of(monitor):
            placed.where = where
            placed.recorder.mode = handler.recorder.mode
            return
        # First, so that a tracer's span of the same call is still the current one when a sample is made: sinks note it.
        root_dispatcher.span_handlers = [handler, *_all_handlers()]


def uninstrument(monitor: "Monitor | None" = None) -> None:
    """Undo `instrument`; other handlers stay. Streams that are being read are still scored.

    Args:
        monitor: Whose; None: all monitors.
    """
    with _CHANGING:
        ours = [id(handler) for handler in _handlers_of(monitor)]  # handlers are equal by their fields
        # A new list: another thread may be walking the old one.
        root_dispatcher.span_handlers = [handler for handler in _all_handlers() if id(handler) not in ours]


def is_instrumented(monitor: "Monitor") -> bool:
    """Return whether a monitor sees this process' spans."""
    return bool(_handlers_of(monitor))


def _handlers_of(monitor: "Monitor | None") -> "list[MonitorSpanHandler]":
    ours = [handler for handler in _all_handlers() if isinstance(handler, MonitorSpanHandler)]
    return [handler for handler in ours if monitor is None or handler.recorder.monitor is monitor]


def _all_handlers() -> list[BaseSpanHandler[BaseSpan]]:
    return cast("list[BaseSpanHandler[BaseSpan]]", root_dispatcher.span_handlers)  # pyright: ignore[reportUnknownMemberType]


class MonitorSpanHandler(BaseSpanHandler[BaseSpan]):
    """Tells a monitor of every run; keeps no spans in `open_spans`, `completed_spans` or `dropped_spans`.

    Made by `instrument`.
    """

    recorder: Recorder
    where: Where | None = None

    def __init__(self, recorder: Recorder, where: Where | None) -> None:
        BaseModel.__init__(self, recorder=recorder, where=where)  # that of BaseSpanHandler knows no fields but its own
        self._lock = None

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,  # noqa: ANN401 - here and below as BaseSpanHandler has it
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Open a span of a run under way, or begin one."""
        with self.recorder.guard:
            if tags is None:  # workflows do not pass them
                tags = active_instrument_tags.get()
            if JUDGE_TAG in tags:
                self.recorder.begin(id_, None)
                return
            runs = self.recorder.runs
            parent = runs.get(parent_id)
            kind = _kind(id_, instance)
            if kind == "writing":
                self.recorder.writing(instance)
            if parent is not None and not (kind == "entry" and _is_beside(parent, parent_id)):
                runs.start(id_, parent, kind=kind or "")
            elif kind == "entry":
                self.recorder.begin(id_, self._sample(id_, bound_args, instance, tags))

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002
        instance: Any = None,  # noqa: ANN401
        result: Any = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Close a span, and take the answer if it began a run."""
        with self.recorder.guard:
            run, sample = self.recorder.runs.end(id_)
            kind = _kind(id_, instance) if run is None else run.kind
            if kind == "writing":
                self.recorder.written(instance)
            elif sample is not None:
                self._take_answer(sample, instance, result)
            elif kind and run is not None and run.root.sample is not None:
                self._take_contexts(run.root.sample, run, result)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002
        instance: Any = None,  # noqa: ANN401
        err: BaseException | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Close a span that was left by an exception. What a call retrieved before it failed still counts."""
        with self.recorder.guard:
            run, sample = self.recorder.runs.end(id_)
            kind = _kind(id_, instance) if run is None else run.kind
            if kind == "writing" and err is not None:
                self.recorder.written(instance, err)
            elif sample is not None:
                self.recorder.failed(sample, err)
            elif not kind and run is not None and run.root.sample is not None:
                run.root.sample.error = err  # that of a workflow's step comes last

    def _sample(
        self, id_: str, bound_args: inspect.BoundArguments, instance: object, tags: dict[str, Any]
    ) -> AppSample | None:
        name = id_[: -_UUID - 1]
        wanted = self.where is None
        if self.where is not None:
            with self.recorder.guard:  # the user's function; what it cannot decide is left alone
                wanted = self.where(instance, name)
        if not wanted:
            return None
        kept = {
            key: value for key, value in tags.items() if isinstance(value, _TAG_TYPES) and key[:11] != "llamaindex."
        }
        question = (question_of_run if isinstance(instance, Workflow) else question_of)(bound_args)
        return AppSample(question, {"name": name, "tags": kept}, id=id_[-_UUID:])

    def _take_answer(self, sample: AppSample, instance: object, result: object) -> None:
        if result is not None or not isinstance(instance, Workflow):
            self.recorder.answered(sample, answer_in(result))
        # A workflow's end without a result: it was cancelled, or is one of LlamaIndex 0.13's. There a failed run ends
        # so too, and one that answered None; both show in the last step.
        elif type(sample.error).__name__ == "WorkflowDone":
            self.recorder.answered(sample, None)
        else:
            self.recorder.failed(sample, sample.error)

    def _take_contexts(self, sample: AppSample, run: Run[AppSample], result: object) -> None:
        """Take what a call within a run returned: the outermost retriever, an inner engine after its reranking."""
        mode = self.recorder.mode
        if run.kind == "retrieval":
            self.recorder.retrieve(run, texts_of(nodes_in(result), mode))
        elif run.kind == "synthesis":
            self.recorder.synthesize(run, nodes_in(result))
        elif run.kind == "entry":
            contexts = contexts_of(answer_in(result), lambda: self.recorder.contexts(sample, run), mode)
            self.recorder.retrieve(run, contexts)

    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Not called: `span_enter` and the others are replaced as a whole."""

    prepare_to_exit_span = prepare_to_drop_span = new_span


def _kind(id_: str, instance: object) -> _Kind | None:
    """Return what a call is to us; the name first, for most are nothing and instances take longer to look at."""
    known = _BY_NAME.get(id_[id_.rfind(".") + 1 : -_UUID - 1])
    return known[0] if known is not None and isinstance(instance, known[1]) else None


def _is_beside(parent: Run[AppSample], parent_id: str | None) -> bool:
    """Return whether a call that could begin a run only seems to be part of its parent, a workflow's run.

    In LlamaIndex 0.13 whatever a task does after it started a workflow has the workflow's span for a parent. What
    really belongs to the workflow is called by one of its steps, and has that step's span.
    """
    return parent.root.key == parent_id and parent_id is not None and parent_id[-_UUID - 5 : -_UUID - 1] == ".run"


def question_of(arguments: inspect.BoundArguments) -> str | None:
    """Return the question of a call to a query or chat engine: its first argument."""
    return next((question_text(value) for value in arguments.arguments.values()), None)


def question_of_run(arguments: inspect.BoundArguments) -> str | None:
    """Return the question of a workflow's run: by its usual names, the user's last message, or the only text."""
    start: object = arguments.arguments.get("start_event")
    fields: object = arguments.arguments.get("kwargs")
    if isinstance(start, StartEvent):  # the fields that its class declares, and those given to it besides
        declared: dict[str, object] = {name: getattr(start, name, None) for name in type(start).model_fields}
        fields = {**declared, **dict(start.items())}
    values = as_dict(fields)
    for name in _QUESTIONS:
        if (text := question_text(values.get(name))) is not None:
            return text
    history = values.get("chat_history")
    for message in reversed(cast("Sequence[object]", history)) if isinstance(history, Sequence) else ():
        if isinstance(message, ChatMessage) and message.role == MessageRole.USER and message.content is not None:
            return message.content
    texts = [value for value in values.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def question_text(value: object) -> str | None:
    """Return a question's text; None: it has none."""
    if isinstance(value, QueryBundle):
        value = value.query_str
    elif isinstance(value, ChatMessage):
        value = value.content
    return value if isinstance(value, str) else None
