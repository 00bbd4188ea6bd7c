"""What LlamaIndex reports of an app's calls, kept as trees of runs: its spans, and what rerankers say in events.

LlamaIndex calls handlers on the app's own thread, and swallows whatever they raise.
"""

import asyncio
import inspect
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.tools import BaseTool
from llama_index.core.workflow import StopEvent, Workflow
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from ragstone.adapters.answering import ModelCall, texts_in
from ragstone.adapters.open_runs import OpenRuns
from ragstone.adapters.runs import Run
from ragstone.plain import as_dict, is_list, to_json
from ragstone_llama_index.forms import FORMS, nodes_in
from ragstone_llama_index.inside import ENTRIES, CallKind
from ragstone_llama_index.read import Reading, is_conversation, named
from ragstone_llama_index.shared_model import JUDGE_TAG

_KINDS: tuple[tuple[CallKind, type, tuple[str, ...]], ...] = (
    ("query", BaseQueryEngine, ("query", "aquery")),
    ("chat", BaseChatEngine, ("chat", "achat", "stream_chat", "astream_chat")),
    # All agents are workflows. One may try a step again, so that each is a run.
    ("workflow", Workflow, ("run",)),
    ("step", Workflow, ()),
    ("retrieval", BaseRetriever, ("retrieve", "aretrieve")),
    ("synthesis", BaseSynthesizer, ("synthesize", "asynthesize")),
    ("text", BaseSynthesizer, ("get_response", "aget_response")),
    ("writing", StreamingAgentChatResponse, ("write_response_to_history", "awrite_response_to_history")),
    ("model", BaseLLM, ()),
    ("tool", BaseTool, ()),
)
"""What a call of a class is, by the method; without methods, whichever it is."""
_PARTS: tuple[CallKind, ...] = ("", "text", "writing")
"""Kinds of which an inner call is nothing but a part of the one around it."""
TOPMOST: tuple[CallKind, ...] = (*ENTRIES, "retrieval", "synthesis", "text", "model")
"""Kinds of which an outermost call is a run of the app."""
EVALUATION_TAG = "ragstone:evaluation"
"""Stands in the tags of what an evaluation asks an app."""
EVALUATIONS = ("llama_index.core.evaluation", "llama_index.core.llama_dataset")
CallEvent = LLMChatStartEvent | LLMChatEndEvent | LLMCompletionStartEvent | LLMCompletionEndEvent
"""What LlamaIndex says of a model's call: what it was given, and what it said."""
_READING = ("ragstone_llama_index.streaming", "llama_index.core.response_synthesizers")
_REPORTING = (__name__, "llama_index_instrumentation")
_STEPS = 500
# Characters: a span's id is "RetrieverQueryEngine.query-" and a UUID.
UUID = 36


class CallRecorder:
    """Keeps the calls of an app as trees of runs. By itself it begins no tree."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.trees = OpenRuns(self.given_up)
        self.handler = Handler(self)
        # Of a call that is nothing but a step: the run that it is part of.
        self._within: dict[str | None, Hashable] = {}
        self._most_within = _STEPS

    def __deepcopy__(self, memo: object) -> "CallRecorder":
        # Apps may be copied with all that they hold; the runs under way are the same.
        return self

    def get(self, span_id: str | None) -> Run | None:
        """Return the open run that a call is, or is part of."""
        return self.trees.get(self._within.get(span_id, span_id))

    def begins(self, run: Run, instance: object, tags: Mapping[str, object]) -> bool:  # noqa: ARG002
        """Whether to keep the tree of a topmost run that begins."""
        return False

    def ended(self, run: Run) -> None:
        """Read the tree of a topmost run that has ended."""

    def given_up(self, run: Run, reason: str) -> None:
        """Count the tree of a topmost run that will not end."""

    def writing(self, response: StreamingAgentChatResponse) -> None:
        """Note the pieces of a chat's stream that LlamaIndex is about to read into its memory."""

    def failed(self, error: Exception) -> None:
        """Count an error of the handler's own."""

    def safely(self, step: Callable[..., object], *args: object) -> None:
        """Call a function of the recorder; its error never reaches the app."""
        try:
            step(*args)
        except Exception as error:
            self.failed(error)

    def install(self) -> None:
        """Have LlamaIndex call the handler, before all others: a tracer's span of a call that ends is still there."""
        root_dispatcher.span_handlers = [self.handler, *_all_handlers()]
        root_dispatcher.event_handlers = [*root_dispatcher.event_handlers, self.handler]

    def remove(self) -> None:
        """Have LlamaIndex call the handler no longer."""
        # New lists: another thread may be walking the old ones. Handlers are equal by their fields.
        root_dispatcher.span_handlers = [each for each in _all_handlers() if each is not self.handler]
        root_dispatcher.event_handlers = [each for each in root_dispatcher.event_handlers if each is not self.handler]

    def begin(
        self, id_: str, call: Mapping[str, Any], instance: object, parent_id: str | None, tags: Mapping[str, Any] | None
    ) -> None:
        """Open a run below another one, or a tree."""
        name = id_[: -UUID - 1]
        cls: Any = type(instance)
        kind = "step" if instance is None else _kind(cls, name.rpartition(".")[2])
        parent = self.trees.get(self._within.get(parent_id, parent_id))
        if kind == "retrieval" and _is_called_by("llama_index.core.objects"):
            kind = "objects"
        elif isinstance(instance, StreamingAgentChatResponse):
            self.writing(instance)
        if parent is not None and kind in _PARTS:
            self._within[id_] = parent.id
            if len(self._within) > self._most_within:
                self._forget_steps()
            return
        # The run above it has ended.
        if parent is None and kind in ENTRIES:
            parent_id = None
        if parent is None and (kind not in TOPMOST or _is_read(kind, parent_id)):
            return
        run = Run(id_, kind, name)
        if kind in ENTRIES or parent is None or (kind in ("model", "synthesis") and is_conversation(parent)):
            run.inputs = _inputs(kind, instance, call, topmost=parent is None)
        # Workflows do not pass their tags.
        tags = active_instrument_tags.get() if tags is None else tags
        if JUDGE_TAG in tags or (parent is not None and kind in ENTRIES and caller_among(EVALUATIONS)):
            # Its sources are the evaluator's, not the app's.
            parent, parent_id, run.kind = None, None, ""
        elif parent is None and not self.begins(run, instance, tags):
            return
        self.trees.begin(run, parent_id if parent is None else parent.id)

    def _forget_steps(self) -> None:
        """Forget the steps that never ended of runs that did."""
        for step, run_id in tuple(self._within.items()):
            if self.trees.get(run_id) is None:
                self._within.pop(step, None)
        self._most_within = max(_STEPS, 2 * len(self._within))

    def end(self, id_: str, result: object, error: BaseException | None = None) -> None:
        """Close a run; with the topmost one its tree is whole."""
        if self._within.pop(id_, None) is not None or (run := self.trees.get(id_)) is None:
            return
        output = result.result if type(result) is StopEvent else result
        # Without even a stop event the run was cancelled.
        if run.kind == "workflow" and result is None and error is None:
            error = asyncio.CancelledError()
        elif run.kind == "retrieval":
            output = tuple(nodes_in(result)) if error is None else None
        elif run.kind in ("model", "step", "objects", ""):
            output = None
        if self.trees.end(id_, output, error) is not None and run.parent is None:
            self.ended(run)

    def rerank(self, event: ReRankStartEvent | ReRankEndEvent) -> None:
        """Keep what a reranker was given, and what it chose."""
        run = self.get(event.span_id)
        if run is None:
            return
        if isinstance(event, ReRankStartEvent):
            self.trees.begin(Run(event.id_, "rerank", inputs=tuple(event.nodes)), run.id)
            return
        for each in run.inside:
            if each.kind == "rerank" and each.open:
                self.trees.end(each.id, tuple(event.nodes))

    def note_call(self, event: CallEvent) -> None:
        """Keep what a model was given, and what it said."""
        run, top = self.trees.with_top(event.span_id)
        if run is None or run.kind != "model" or top is None or not top.kind:
            return
        if isinstance(event, LLMCompletionStartEvent | LLMCompletionEndEvent):
            prompt = [event.prompt]
        else:
            prompt = [text for message in event.messages for text in texts_in(message.blocks)]
        self.trees.note_call(run.id, ModelCall(prompt, said_by(getattr(event, "response", None))))

    def name_contexts(self, run: Run, nodes: object) -> None:
        """Keep contexts that the app names in a run. TypeError: they are none."""
        texts = named(nodes, self.reading)
        # As inputs too, so that their characters are counted.
        self.trees.begin(Run(object(), "named", inputs=texts, output=texts, open=False), run.id)


class Handler(BaseSpanHandler[BaseSpan], BaseEventHandler):
    """Passes LlamaIndex' spans and events to a recorder; keeps none in `open_spans` or `completed_spans`."""

    recorder: Any = None

    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__()
        self.recorder = recorder

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,  # noqa: ANN401 - here and below as BaseSpanHandler has it
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Begin a call."""
        # Here and below without `safely`: there are dozens of these calls in a query.
        try:
            self.recorder.begin(id_, bound_args.arguments, instance, parent_id, tags)
        except Exception as error:
            self.recorder.failed(error)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002
        instance: Any = None,  # noqa: ANN401, ARG002
        result: Any = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """End a call."""
        try:
            self.recorder.end(id_, result)
        except Exception as error:
            self.recorder.failed(error)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002
        instance: Any = None,  # noqa: ANN401, ARG002
        err: BaseException | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """End a call that was left by an exception."""
        self.recorder.safely(self.recorder.end, id_, None, err or asyncio.CancelledError())

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Keep what a reranker did, and what a model was given and said."""
        if isinstance(event, ReRankStartEvent | ReRankEndEvent):
            self.recorder.safely(self.recorder.rerank, event)
        elif isinstance(event, CallEvent):
            self.recorder.safely(self.recorder.note_call, event)

    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Not called: `span_enter` and the others are replaced as a whole."""

    prepare_to_exit_span = prepare_to_drop_span = new_span


def said_by(response: ChatResponse | CompletionResponse | None) -> list[str]:
    """What a model said, and what it passes to tools, which may be an answer."""
    if not isinstance(response, ChatResponse):
        return [] if response is None else [response.text]
    message = response.message
    calls = [getattr(block, "tool_kwargs", None) for block in message.blocks]
    calls.append(message.additional_kwargs.get("tool_calls"))
    return [message.content or "", *(each if isinstance(each, str) else to_json(each) for each in calls if each)]


def recorders() -> list[CallRecorder]:
    """The recorders whose handlers LlamaIndex calls."""
    return [each.recorder for each in _all_handlers() if isinstance(each, Handler)]


def _all_handlers() -> list[BaseSpanHandler[BaseSpan]]:
    return cast("list[BaseSpanHandler[BaseSpan]]", root_dispatcher.span_handlers)  # pyright: ignore[reportUnknownMemberType]


@lru_cache(1_000)
def _kind(cls: type, method: str) -> CallKind:
    """The kind of a call; remembered, because most are of none and it takes long to look at their classes."""
    for kind, base, methods in _KINDS:
        if issubclass(cls, base) and (method in methods or not methods):
            return kind
    return ""


def _is_read(kind: CallKind, parent_id: str | None) -> bool:
    """Whether a call is part of a run that has ended with a stream, as the app reads that."""
    return kind in ("model", "text") and (parent_id is not None or bool(caller_among(_READING)))


def caller_among(modules: tuple[str, ...]) -> str:
    """The module whose code has called what runs now, or awaits it: the nearest of some; "" where it is none."""
    frame = inspect.currentframe()
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if name.startswith(modules):
            return name
        frame = frame.f_back
    return ""


def _is_called_by(module: str) -> bool:
    """Whether code of a module has made the call that is reported now."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_REPORTING):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").startswith(module)


def _inputs(kind: CallKind, instance: object, call: Mapping[str, Any], *, topmost: bool) -> Mapping[str, object]:
    """The arguments of a call, as far as they are read."""
    if kind == "workflow":
        # A run that goes on has neither.
        start, fields = call.get("start_event"), as_dict(call.get("kwargs"))
        event = cast("Workflow", instance).start_event_class(**fields) if start is None and fields else start
        given = FORMS.entries(event) or {}
    elif kind == "synthesis" and not topmost and isinstance(instance, BaseSynthesizer):
        template = instance.get_prompts().get("text_qa_template")
        return {"messages": getattr(template, "message_templates", ())}
    elif kind == "model":
        given = {name: call.get(name) for name in ("messages", "prompt_args")}
    else:
        given = call
    return {name: [*value] if is_list(value) else value for name, value in given.items()}
