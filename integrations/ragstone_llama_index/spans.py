"""`instrument` and `uninstrument`: every query, chat and agent run of this process becomes a sample of a monitor.

LlamaIndex calls the handler of spans on the app's own thread, and swallows whatever it raises, so everything is
caught here and counted by the monitor.
"""

import inspect
import re
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from llama_index.core.agent.workflow.workflow_events import AgentInput
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.tools import BaseTool, ToolOutput
from llama_index.core.workflow import StartEvent, StopEvent, Workflow
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import BaseModel

from ragstone.live import Monitor
from ragstone.live.run_tree import Run
from ragstone.live.sampling import check_function
from ragstone.plain import as_dict, is_list
from ragstone.sample import Sample, Turn
from ragstone_llama_index.recorder import EVALUATIONS, AppSample, Recorder, is_called_in, sample_of, turns_before
from ragstone_llama_index.responses import Mode, answer_in, check_tools, contexts_of, nodes_in, texts_of, tool_contexts
from ragstone_llama_index.shared_model import JUDGE_TAG

Where = Callable[[object, str], bool]
"""Whether calls of an object, by a name such as "RetrieverQueryEngine.query", are to be scored."""

Extract = Callable[[Workflow, StartEvent, object], Sample | Mapping[str, object] | None]
"""A user's own reading of a workflow's run: the workflow, its start event, and what it returned."""

_KINDS: tuple[tuple[str, type, str], ...] = (
    ("entry", BaseQueryEngine, "query aquery"),
    ("entry", BaseChatEngine, "chat achat stream_chat astream_chat"),
    ("entry", Workflow, "run"),  # all agents are workflows
    ("retrieval", BaseRetriever, "retrieve aretrieve"),
    ("synthesis", BaseSynthesizer, "synthesize asynthesize"),
    ("writing", StreamingAgentChatResponse, "write_response_to_history awrite_response_to_history"),
)
_BY_NAME = {name: (kind, cls) for kind, cls, names in _KINDS for name in names.split()}
_ROOTS = ("entry", "retrieval", "synthesis", "model")  # kinds of which an outermost call is a run of the app
_READING = ("ragstone_llama_index.streaming", "llama_index.core.response_synthesizers")
_UUID = 36  # characters: a span's id is "RetrieverQueryEngine.query-" and a UUID
_QUESTIONS = (  # of a workflow's start event, in this order
    *("user_msg", "query", "question", "message", "input", "prompt"),
    *("user_input", "user_message", "user_query", "user_question", "request", "topic"),
)
_PLACE = re.compile(r"(\w+:)?[~.]{0,2}[/\\]\S.*|\w+://\S+|\S+\.[A-Za-z]\w{1,4}")  # a path or an address: no question
_TURN = re.compile(r"(?:\A|\n)(user|assistant|system|tool): ")
_CHANGING = threading.Lock()


def instrument(
    monitor: Monitor,
    *,
    where: Where | None = None,
    metadata_mode: Mode = MetadataMode.NONE,
    extract: Extract | None = None,
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
        extract: Reads a workflow's run. It gets the workflow, its start event and its result, and returns a `Sample`, a
            mapping of some of its fields (the others are read as usual), or None for no sample.
            A "response" may be one of LlamaIndex' responses, "retrieved_contexts" may be nodes.
        context_tools: Names of tools whose texts are contexts; nodes that tools return are contexts anyway.

    Raises:
        TypeError: `monitor` is not a monitor, `where` or `extract` not a plain function.
        ValueError: `metadata_mode` is unknown, or `context_tools` is one text.

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
    check_function("extract", extract)
    handler = MonitorSpanHandler(Recorder(monitor, metadata_mode, check_tools(context_tools)), where, extract)
    with _CHANGING:
        for placed in handlers_of(monitor):
            placed.where, placed.extract = where, extract
            placed.recorder.mode, placed.recorder.tools = handler.recorder.mode, handler.recorder.tools
            return
        # First, so that a tracer's span of the same call is still the current one when a sample is made: sinks note it.
        root_dispatcher.span_handlers = [handler, *_all_handlers()]


def uninstrument(monitor: Monitor | None = None) -> None:
    """Undo `instrument`; other handlers stay. Streams that are being read are still scored.

    Args:
        monitor: Whose; None: all monitors.
    """
    with _CHANGING:
        ours = [id(handler) for handler in handlers_of(monitor)]  # handlers are equal by their fields
        # A new list: another thread may be walking the old one.
        root_dispatcher.span_handlers = [handler for handler in _all_handlers() if id(handler) not in ours]


def handlers_of(monitor: Monitor | None) -> "list[MonitorSpanHandler]":
    """Return the handlers in place that tell a monitor, or any."""
    ours = [handler for handler in _all_handlers() if isinstance(handler, MonitorSpanHandler)]
    return [handler for handler in ours if monitor is None or handler.recorder.monitor is monitor]


def _all_handlers() -> list[BaseSpanHandler[BaseSpan]]:
    return cast("list[BaseSpanHandler[BaseSpan]]", root_dispatcher.span_handlers)  # pyright: ignore[reportUnknownMemberType]


class MonitorSpanHandler(BaseSpanHandler[BaseSpan]):
    """Tells a monitor of every run; keeps no spans in `open_spans`, `completed_spans` or `dropped_spans`."""

    recorder: Recorder
    where: Where | None = None
    extract: Extract | None = None

    def __init__(self, recorder: Recorder, where: Where | None, extract: Extract | None = None) -> None:
        # Not by BaseSpanHandler's, which knows no fields but its own.
        BaseModel.__init__(self, recorder=recorder, where=where, extract=extract)
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
            tags = active_instrument_tags.get() if tags is None else tags  # workflows do not pass them
            if JUDGE_TAG in tags:
                self.recorder.begin(id_, None)
                return
            runs = self.recorder.runs
            parent = runs.get(parent_id)
            kind = _kind(id_, instance)
            if kind == "writing":
                self.recorder.writing(instance)
            if parent is not None and kind in _ROOTS and _is_beside(parent, parent_id):
                parent = None
            if kind == "entry" and parent is not None and is_called_in(EVALUATIONS):
                self.recorder.begin(id_, None)  # its sources are the evaluator's, not the app's
            elif parent is not None:
                runs.start(id_, parent, kind=kind)
                sample = parent.root.sample
                if sample is not None and sample.converses and not sample.history:
                    sample.history = _history_shown(sample.question, bound_args.arguments, instance, kind)
            elif kind == "model" and (parent_id is not None or is_called_in(_READING)):
                pass  # part of what is no run of ours, or of one that has ended with a stream
            elif kind in _ROOTS:
                self._begin(kind, id_, bound_args, instance, tags)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,  # noqa: ANN401
        result: Any = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Close a span, and take the answer if it began a run."""
        with self.recorder.guard:
            run, sample = self.recorder.runs.end(id_)
            if isinstance(instance, StreamingAgentChatResponse):
                self.recorder.written(instance)
            elif sample is not None:
                self._take_answer(sample, bound_args, instance, result)
            elif run is not None and run.root.sample is not None:
                self._take_contexts(run.root.sample, run, result)
            elif run is not None and run.kind == "only_retrieval":
                self.recorder.unanswered.append({question_of(bound_args), *(each.node_id for each in nodes_in(result))})

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
            if isinstance(instance, StreamingAgentChatResponse):
                self.recorder.written(instance, err)
            elif sample is not None:
                self.recorder.failed(sample, err)
            elif run is not None and not run.kind and run.root.sample is not None:
                run.root.sample.error = err  # that of a workflow's step comes last

    def _begin(self, kind: str, id_: str, call: inspect.BoundArguments, instance: object, tags: dict[str, Any]) -> None:
        """Begin a run of the app: as a sample in the making, or as none, which is counted with its reason."""
        name = id_[: -_UUID - 1]
        if reason := self._why_none(kind, name, instance):
            self.recorder.monitor.skip(reason)
            self.recorder.begin(id_, None, reason)
            return
        asked, question = call.arguments, question_of(call)
        if isinstance(instance, Workflow):
            start = start_of(call, instance)
            declared = {name: getattr(start, name, None) for name in type(start).model_fields}
            asked = {**declared, **dict(start.items())}
            question = question_in(asked)
        sample = sample_of(question, id_, name, tags, id_[-_UUID:])
        sample.converses = isinstance(instance, BaseChatEngine) or asked.get("memory") is not None
        if question is not None and is_list(history := asked.get("chat_history")):
            sample.history = turns_before([*history, ChatMessage(question)], question)
        if kind == "synthesis":
            self.recorder.take_back(question, nodes_in(asked.get("nodes")))
        self.recorder.begin(id_, sample, kind)

    def _why_none(self, kind: str, name: str, instance: object) -> str:
        """Return why a call that could begin a run of the app begins none, or ""."""
        if is_called_in(EVALUATIONS):
            return "own_run"
        if kind in ("model", "retrieval"):
            return f"only_{kind}"
        with self.recorder.guard:  # the user's function
            return "" if self.where is None or self.where(instance, name) else "excluded"
        return "where_failed"

    def _take_answer(
        self, sample: AppSample, bound_args: inspect.BoundArguments, instance: object, result: object
    ) -> None:
        # A workflow's end without a result: it was cancelled, or is one of LlamaIndex 0.13's. There a failed run ends
        # so too, and one that answered None; both show in the last step.
        if result is None and isinstance(instance, Workflow) and type(sample.error).__name__ != "WorkflowDone":
            self.recorder.failed(sample, sample.error)
        elif self.extract is None or not isinstance(instance, Workflow):
            self.recorder.answered(sample, answer_in(result))
        else:
            with self.recorder.guard:  # the user's function
                returned = result.result if type(result) is StopEvent else result
                fields = self.extract(instance, start_of(bound_args, instance), returned)
                if fields is None:
                    self.recorder.monitor.skip("declined")
                else:
                    self.recorder.take(sample, fields, answer_in(result))
                return
            self.recorder.monitor.skip("extract_failed")

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
        elif run.kind == "tool" and isinstance(result, ToolOutput):
            if contexts := tool_contexts(result, mode, self.recorder.tools):
                self.recorder.retrieve(run, contexts)
        elif isinstance(result, AgentInput) and not sample.history:
            sample.history = turns_before(result.input, sample.question)

    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Not called: `span_enter` and the others are replaced as a whole."""

    prepare_to_exit_span = prepare_to_drop_span = new_span


def _kind(id_: str, instance: object) -> str:
    """Return what a call is to us; the name first, for most are nothing and instances take longer to look at."""
    known = _BY_NAME.get(id_[id_.rfind(".") + 1 : -_UUID - 1])
    if known is not None and isinstance(instance, known[1]):
        return known[0]
    return "model" if isinstance(instance, BaseLLM) else "tool" if isinstance(instance, BaseTool) else ""


def _is_beside(parent: Run[AppSample], parent_id: str | None) -> bool:
    """Return whether a call that could begin a run only seems to be part of its parent, a workflow's run.

    In LlamaIndex 0.13 whatever a task does after it started a workflow has the workflow's span for a parent. What
    really belongs to the workflow is called by one of its steps, and has that step's span.
    """
    return parent.root.key == parent_id and parent_id is not None and parent_id[-_UUID - 5 : -_UUID - 1] == ".run"


def question_of(arguments: inspect.BoundArguments) -> str | None:
    """Return the question of a call to a query or chat engine: its first argument."""
    return next((question_text(value) for value in arguments.arguments.values()), None)


def start_of(arguments: inspect.BoundArguments, workflow: Workflow) -> StartEvent:
    """Return the start event of a workflow's run, which may be given by its fields."""
    start: object = arguments.arguments.get("start_event")
    fields = as_dict(arguments.arguments.get("kwargs"))
    return start if isinstance(start, StartEvent) else workflow.start_event_class(**fields)


def question_in(fields: Mapping[str, object]) -> str | None:
    """Return the question of a workflow's run: by its usual names, or the user's last message.

    A path or an address is no question, but what a workflow is to take in; so is a text by any other name.
    """
    for name in _QUESTIONS:
        text = question_text(fields.get(name))
        if text is not None and (name == "user_msg" or not _PLACE.fullmatch(text.strip())):
            return text
    history = fields.get("chat_history")
    for message in reversed(history) if is_list(history) else ():
        if isinstance(message, ChatMessage) and message.role == MessageRole.USER and message.content is not None:
            return message.content
    return None


def _history_shown(
    question: str | None, arguments: Mapping[str, object], instance: object, kind: str
) -> tuple[Turn, ...]:
    """Return the earlier turns that a chat's synthesizer or model is shown: a memory cannot be read from here."""
    if kind == "synthesis" and isinstance(instance, BaseSynthesizer):
        template = instance.get_prompts().get("text_qa_template")
        return turns_before(getattr(template, "message_templates", ()), "{query_str}")
    condensed = as_dict(arguments.get("prompt_args")).get("chat_history")
    if isinstance(condensed, str):  # in a prompt that condenses the question
        _, *parts = _TURN.split(condensed)
        turns = [{"role": role, "content": text} for role, text in zip(parts[::2], parts[1::2], strict=True)]
        return turns_before([*turns, {"role": "user", "content": question}], question)
    return turns_before(arguments.get("messages"), question) if kind == "model" else ()


def question_text(value: object) -> str | None:
    """Return a question's text; None: it has none."""
    if isinstance(value, QueryBundle):
        value = value.query_str
    elif isinstance(value, ChatMessage):
        value = value.content
    return value if isinstance(value, str) else None
