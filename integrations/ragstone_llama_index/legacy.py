"""`MonitorCallbackHandler`: live scoring for apps that use LlamaIndex' older callbacks."""

from typing import Any

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.schema import MetadataMode
from llama_index_instrumentation.dispatcher import active_instrument_tags

from ragstone.live import Monitor
from ragstone_llama_index.recorder import EVALUATIONS, Recorder, is_called_in, sample_of, turns_before
from ragstone_llama_index.responses import Mode, nodes_in, texts_of
from ragstone_llama_index.spans import handlers_of, question_text

_ENTRIES = (CBEventType.QUERY, CBEventType.SYNTHESIZE)


class MonitorCallbackHandler(BaseCallbackHandler):
    """Has a monitor score what an app answers, as a handler of a `CallbackManager`.

    Prefer `instrument`: LlamaIndex means to retire callbacks, and they show less. A sample is made of each outermost
    QUERY event and, for chat engines, which have none, of each SYNTHESIZE event; its `id` is the event's. What else
    differs stands in docs/llama_index.md. Only what is built after the handler was put in place calls it. While
    `instrument` has the same monitor, this handler is silent. Nothing ever raises into the app: what fails in here is
    counted as `stats().errors["llama_index"]`.

    Args:
        monitor: Takes the samples.
        metadata_mode: Which metadata of nodes stand in the contexts; see `MetricEvaluator`.

    Raises:
        TypeError: `monitor` is no monitor.
        ValueError: There is no such `metadata_mode`.

    Example:
        >>> from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
        >>> from llama_index.core.callbacks import CallbackManager
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.schema import TextNode
        >>> class Printing:  # in place of a ragstone.Monitor
        ...     def advise(self, advice): ...
        ...     def submit(self, sample):
        ...         print(sample.user_input, sample.retrieved_contexts)
        >>> Settings.callback_manager = CallbackManager([MonitorCallbackHandler(Printing())])
        >>> index = VectorStoreIndex([TextNode(text="Jane Austen did.")], embed_model=MockEmbedding(embed_dim=2))
        >>> response = index.as_query_engine(llm=MockLLM()).query("Who wrote Emma?")
        Who wrote Emma? ('Jane Austen did.',)
        >>> Settings.callback_manager = None
    """

    def __init__(self, monitor: Monitor, *, metadata_mode: Mode = MetadataMode.NONE) -> None:
        super().__init__([], [])
        self.recorder = Recorder(monitor, metadata_mode)

    def on_event_start(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        parent_id: str = "",
        **kwargs: Any,  # noqa: ANN401, ARG002 - as BaseCallbackHandler has it
    ) -> str:
        """Open an event of a run under way, or begin one."""
        with self.recorder.guard:
            fields = payload or {}
            parent = self.recorder.runs.get(parent_id)
            if parent is not None:
                self.recorder.runs.start(event_id, parent)
                if (sample := parent.root.sample) is not None:
                    sample.error = fields.get(EventPayload.EXCEPTION, sample.error)  # such an event has no end
                    messages = fields.get(EventPayload.MESSAGES) if sample.converses else None
                    sample.history = turns_before(messages, sample.question) or sample.history
            elif event_type in _ENTRIES and not handlers_of(self.recorder.monitor):
                sample = None
                if is_called_in(EVALUATIONS):
                    self.recorder.monitor.skip("own_run")
                else:
                    question = question_text(fields.get(EventPayload.QUERY_STR))
                    sample = sample_of(question, event_id, event_type.value, active_instrument_tags.get(), event_id)
                    sample.converses = event_type == CBEventType.SYNTHESIZE
                self.recorder.begin(event_id, sample)
        return event_id

    def on_event_end(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        **kwargs: Any,  # noqa: ANN401, ARG002 - as BaseCallbackHandler has it
    ) -> None:
        """Close an event, and take the answer if it began a run."""
        with self.recorder.guard:
            # Events stay until their run ends: after an exception that was caught, LlamaIndex takes one that has ended
            # for the parent of what comes next.
            run = self.recorder.runs.get(event_id)
            if run is None:
                return
            sample = run.root.sample if run.parent is not None else self.recorder.runs.end(event_id)[1]
            if sample is None:  # an evaluation's
                return
            fields = payload or {}
            sample.error = fields.get(EventPayload.EXCEPTION, sample.error)
            if run.parent is not None:
                if event_type == CBEventType.RETRIEVE:
                    nodes = nodes_in(fields.get(EventPayload.NODES))
                    self.recorder.retrieve(run, texts_of(nodes, self.recorder.mode))
            elif (response := fields.get(EventPayload.RESPONSE)) is not None:
                sample.collected.clear()  # who has these events names the source nodes
                self.recorder.answered(sample, response)
            else:  # what went wrong stood in an event further in
                self.recorder.failed(sample, sample.error)

    def start_trace(self, trace_id: str | None = None) -> None:
        """Do nothing: traces of calls at the same time overwrite each other."""

    def end_trace(self, trace_id: str | None = None, trace_map: dict[str, list[str]] | None = None) -> None:
        """Do nothing."""
