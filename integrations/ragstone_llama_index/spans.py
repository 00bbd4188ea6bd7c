"""The handler of spans: which calls begin a run, and what of the calls beneath them is looked at.

LlamaIndex calls it on the app's own thread, and swallows whatever it raises, so everything is caught, counted and
passed on to the monitor in here.
"""

import inspect
from collections.abc import Callable
from typing import Any, Literal, cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import Workflow
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import BaseModel

from ragstone_llama_index.answered import answer_in, nodes_in, own_contexts
from ragstone_llama_index.asked import question_of, question_of_run
from ragstone_llama_index.recorder import Recorder
from ragstone_llama_index.responses import texts_of
from ragstone_llama_index.runs import Asked, Span
from ragstone_llama_index.tracing import JUDGE_TAG

Where = Callable[[object, str], bool]
"""Whether calls of an object, by a name such as "RetrieverQueryEngine.query", are to be scored."""

_Kind = Literal["entry", "retrieval", "synthesis", "writing"]
_KINDS: dict[str, tuple[type, _Kind]] = {
    "query": (BaseQueryEngine, "entry"),
    "aquery": (BaseQueryEngine, "entry"),
    "chat": (BaseChatEngine, "entry"),
    "achat": (BaseChatEngine, "entry"),
    "stream_chat": (BaseChatEngine, "entry"),
    "astream_chat": (BaseChatEngine, "entry"),
    "run": (Workflow, "entry"),  # all agents are workflows
    "retrieve": (BaseRetriever, "retrieval"),
    "aretrieve": (BaseRetriever, "retrieval"),
    "synthesize": (BaseSynthesizer, "synthesis"),
    "asynthesize": (BaseSynthesizer, "synthesis"),
    "write_response_to_history": (StreamingAgentChatResponse, "writing"),
    "awrite_response_to_history": (StreamingAgentChatResponse, "writing"),
}
_UUID = 36  # characters: a span's id is "RetrieverQueryEngine.query-" and a UUID
_TAG_KINDS = (str, int, float, bool)


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
        instance: Any | None = None,  # noqa: ANN401 - here and below as BaseSpanHandler has it
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Open a span of a run under way, or begin one."""
        try:
            runs = self.recorder.runs
            if tags is None:  # workflows do not pass them
                tags = active_instrument_tags.get()
            if JUDGE_TAG in tags:
                runs.begin(id_, None)
                return
            parent = runs.get(parent_id)
            kind = _kind(id_, instance)
            if kind == "writing":
                self.recorder.writing(cast("StreamingAgentChatResponse", instance))
            if parent is not None and not (kind == "entry" and _is_beside(parent, parent_id)):
                runs.enter(id_, parent, plain=kind is None)
            elif kind == "entry":
                runs.begin(id_, self._asked(id_, bound_args, instance, tags))
        except Exception as error:
            self.recorder.broke(error)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002
        instance: Any | None = None,  # noqa: ANN401
        result: Any | None = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Close a span, and take the answer if it began a run."""
        try:
            span = self.recorder.runs.leave(id_)
            kind = _kind(id_, instance)
            if kind is None:
                return
            if kind == "writing":
                self.recorder.written(cast("StreamingAgentChatResponse", instance))
            if span is None or (asked := span.run.asked) is None:
                return
            if span.parent is not None:
                _take(kind, result, span, self.recorder.mode)
            elif result is None and isinstance(instance, Workflow):
                self._ended_without(asked, span)
            else:
                self.recorder.answered(asked, answer_in(result), lambda: span.found(self.recorder.mode))
        except Exception as error:
            self.recorder.broke(error)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002
        instance: Any | None = None,  # noqa: ANN401
        err: BaseException | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Close a span that was left by an exception."""
        try:
            span = self.recorder.runs.leave(id_)
            kind = _kind(id_, instance)
            if kind == "writing" and err is not None:
                self.recorder.written(cast("StreamingAgentChatResponse", instance), err)
            if span is None or (asked := span.run.asked) is None:
                return
            if kind is None:
                span.run.error = err  # that of a workflow's step comes last
            elif span.parent is None:
                self.recorder.failed(asked, span.found(self.recorder.mode), err)
            else:
                span.pass_on()
        except Exception as error:
            self.recorder.broke(error)

    def _asked(
        self, id_: str, bound_args: inspect.BoundArguments, instance: object, tags: dict[str, Any]
    ) -> Asked | None:
        name = id_[: -_UUID - 1]
        if self.where is not None:
            try:
                if not self.where(instance, name):
                    return None
            except Exception as error:  # the user's function; what it cannot decide is left alone
                self.recorder.broke(error)
                return None
        question = (question_of_run if isinstance(instance, Workflow) else question_of)(bound_args)
        kept = {
            key: value for key, value in tags.items() if isinstance(value, _TAG_KINDS) and key[:11] != "llamaindex."
        }
        return Asked(id_[-_UUID:], question, {"name": name, "tags": kept})

    def _ended_without(self, asked: Asked, span: Span) -> None:
        """Take a workflow's end without a result: it was cancelled, or is one of LlamaIndex 0.13's.

        There a failed run ends so too, and one that answered None; both show in the last step.
        """
        if type(span.run.error).__name__ == "WorkflowDone":
            self.recorder.answered(asked, None, lambda: span.found(self.recorder.mode))
        else:
            self.recorder.failed(asked, span.found(self.recorder.mode), span.run.error)

    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Not called: `span_enter` and the others are replaced as a whole."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Not called."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Not called."""


def _kind(id_: str, instance: object) -> _Kind | None:
    """Return what a call is to us; the name first, for most are nothing and instances take longer to look at."""
    known = _KINDS.get(id_[id_.rfind(".") + 1 : -_UUID - 1])
    return known[1] if known is not None and isinstance(instance, known[0]) else None


def _is_beside(parent: Span, parent_id: str | None) -> bool:
    """Return whether a call that could begin a run only seems to be part of its parent, a workflow's run.

    In LlamaIndex 0.13 whatever a task does after it started a workflow has the workflow's span for a parent. What
    really belongs to the workflow is called by one of its steps, and has that step's span.
    """
    return parent.run.id == parent_id and parent.run.id[-_UUID - 5 : -_UUID - 1] == ".run"


def _take(kind: _Kind, result: object, span: Span, mode: MetadataMode) -> None:
    """Take what a call within a run found: the outermost retriever, an inner engine after its reranking."""
    if kind == "retrieval":
        span.retrieve(texts_of(nodes_in(result), mode))
    elif kind == "synthesis":
        span.synthesize(nodes_in(result))
    elif kind == "entry":
        span.retrieve(own_contexts(answer_in(result), lambda: span.found(mode), mode))
    else:
        span.pass_on()
