"""`instrument` and `uninstrument`: every query, chat and agent run of this process becomes a sample of a monitor."""

import threading
from typing import TYPE_CHECKING, cast

from llama_index.core.schema import MetadataMode
from llama_index_instrumentation import root_dispatcher

from ragstone_llama_index.recorder import Recorder, check_monitor
from ragstone_llama_index.responses import Mode, check_mode
from ragstone_llama_index.spans import MonitorSpanHandler, Where

if TYPE_CHECKING:
    from llama_index_instrumentation.span import BaseSpan
    from llama_index_instrumentation.span_handlers import BaseSpanHandler

    from ragstone.monitor import Monitor

_CHANGING = threading.Lock()


def instrument(monitor: "Monitor", *, where: Where | None = None, metadata_mode: Mode = MetadataMode.NONE) -> None:
    """Have a monitor score what query engines, chat engines, agents and workflows of this process answer.

    A sample is made of each outermost call, whatever happens beneath it: `query` and `aquery` of a query engine, the
    four `chat` methods of a chat engine, `run` of an agent or another workflow. Bare retrievers and models make none.

    - The question is the call's argument; a workflow's is its start event's `user_msg`, `query`, `question`, `message`
      or `input`, the user's last message in its `chat_history`, or its only text. Without a question there is no
      sample: `monitor.skip("no_question")`.
    - The contexts are the texts of the answer's source nodes, as in `MetricEvaluator`; where it has none, what the
      outermost retrievers and inner engines found, each text once.
    - The answer is its text; a workflow's may be a text, one of LlamaIndex' responses or messages, or one of these as
      `response`, `answer`, `result` or `output` of a dict or of the workflow's own stop event. Anything else is no
      answer, and the sample has None. A stream is heard while the app reads it and scored once it was read to its end;
      left half-read it is `monitor.skip("abandoned")`, and never read it is nothing at all. Streamed chats are scored
      when LlamaIndex has written them to its memory, which some versions leave to the app's reading too.
    - What the app raised is a sample without an answer, with `metadata["error"]`; a run that was called off is
      `monitor.skip("cancelled")`. One that does not end within an hour, or is the oldest of more than 10,000 under
      way, is forgotten: `monitor.skip("never_ended")`.
    - `id` is the UUID of the call's span; `metadata["name"]` is such as "RetrieverQueryEngine.query", and
      `metadata["tags"]` what stands in LlamaIndex' `instrument_tags`, as far as it is text, a number or a bool.

    Calls within threads that do not copy the context (a plain `ThreadPoolExecutor`) are runs of their own: LlamaIndex
    does not know what they belong to. Questions that are put to an engine to test it are runs like any other: ask them
    under `instrument_tags({"test": True})`, and give the monitor a `where` that looks at `metadata["tags"]`. Calls of
    ragstone's judges are none.

    Nothing of this ever raises into the app: what fails is counted as `stats().errors["llama_index"]`.

    Args:
        monitor: Takes the samples. A second call with the same monitor only changes the options.
        where: Says by an object and a name ("RetrieverQueryEngine.query") whether its calls are to be scored, together
            with all beneath them; None: all. Called on the app's thread; where it raises, the call is left alone.
        metadata_mode: Which metadata of nodes stand in the contexts; see `MetricEvaluator`. Scores of different modes
            cannot be compared: use the same one here and offline.

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
    check_monitor(monitor)
    if where is not None and not callable(cast("object", where)):
        raise TypeError(f"where: is {type(where).__name__}; pass a function of an object and a name, or None")
    mode = check_mode(metadata_mode)
    with _CHANGING:
        for handler in _ours(monitor):
            handler.where = where
            handler.recorder.mode = mode
            return
        handler = MonitorSpanHandler(Recorder(monitor, mode), where)
        # First, so that a tracer's span of the same call is still the current one when a sample is made: sinks note it.
        root_dispatcher.span_handlers = [handler, *_all()]


def uninstrument(monitor: "Monitor | None" = None) -> None:
    """Undo `instrument`; other handlers stay. Streams that are being read are still scored.

    Args:
        monitor: Whose; None: all monitors.
    """
    with _CHANGING:
        ours = _ours(monitor)
        # By identity: handlers are equal by their fields. A new list: another thread may be walking the old one.
        root_dispatcher.span_handlers = [handler for handler in _all() if not any(handler is one for one in ours)]


def is_instrumented(monitor: "Monitor") -> bool:
    """Return whether a monitor sees this process' spans."""
    return bool(_ours(monitor))


def _ours(monitor: "Monitor | None") -> list[MonitorSpanHandler]:
    return [
        handler
        for handler in _all()
        if isinstance(handler, MonitorSpanHandler) and (monitor is None or handler.recorder.monitor is monitor)
    ]


def _all() -> "list[BaseSpanHandler[BaseSpan]]":
    return cast("list[BaseSpanHandler[BaseSpan]]", root_dispatcher.span_handlers)  # pyright: ignore[reportUnknownMemberType]
