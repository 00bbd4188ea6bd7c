"""The callback handler that gives a monitor the question, contexts and answer of each live run."""

from collections.abc import Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from langchain_core.callbacks.base import BaseCallbackHandler

from ragstone.adapters.runs import Fields
from ragstone.live.sampling import check_function
from ragstone.metrics.models import check_members
from ragstone_langchain.inside import KINDS
from ragstone_langchain.read import ReadingOptions
from ragstone_langchain.record import RunFilter, RunRecorder, safely

if TYPE_CHECKING:
    from contextvars import ContextVar

    from ragstone.live import Monitor


class _Everywhere:
    """The handler, if any, that each run gets; LangChain reads it as a variable, on every thread alike."""

    def __init__(self) -> None:
        from langchain_core.tracers.context import register_configure_hook

        self.handler: BaseCallbackHandler | None = None
        # LangChain has no way to undo this, so the variable is cleared instead.
        register_configure_hook(cast("ContextVar[Any]", self), inheritable=True)

    def __reduce__(self) -> tuple[object, ...]:
        # Another process has its own.
        return type(None), ()

    def get(self) -> BaseCallbackHandler | None:
        return self.handler


class MonitorHandler(BaseCallbackHandler):
    """Hands each topmost run of a chain, graph or agent to a monitor as a sample, with no effect on the app.

        handler = MonitorHandler(monitor)
        chain.invoke(question, config={"callbacks": [handler]})

    One handler serves all threads, tasks and chains: in the config, bound by `chain.with_config(callbacks=[handler])`,
    or in the whole process by `everywhere()`. Passed twice, it counts once. Its methods take microseconds and never
    raise: `monitor.failed` counts its own errors. A sample's `id` is the run's. docs/langchain.md shows which runs
    become samples, the sources of their texts, and which runs are skipped.

    Args:
        monitor: Takes the samples: a `ragstone.live.Monitor`.
        fields: Where a sample's fields are if not under a usual name: a mapping from field to key, such as
            {"response": "data.answer"}, looked up as `RagEvaluator` does; or a function of a run's inputs and outputs
            (None if it failed) that returns the sample, a mapping of those fields that it knows, or None for no
            sample. It runs in the app's thread.
        where: A function of a topmost run's name, tags and metadata; true makes the run a sample. A rejected run
            gives none, with all inside of it.
        retriever_tools: Names of tools whose text is a context, if they run no retriever and return no Documents as
            their artifact.
        id_key: The key of a Document's metadata that is its id in `retrieved_ids`, such as "source"; of one without it
            its own id counts, "" says so of all. None: samples have no ids.

    Raises:
        TypeError: `monitor` is not a monitor, or `where` is not a function.
        ValueError: `fields` is neither function nor mapping of a sample's fields, or `retriever_tools` is one text.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.live import Monitor
        >>> from ragstone.live import CallableSink
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))
        >>> chain = RunnableLambda(lambda asked: {**asked, "context": ["Jane wrote Emma."], "answer": "Jane did."})
        >>> records = []
        >>> with Monitor(metric, sinks=CallableSink(records.extend)) as monitor:
        ...     config = {"callbacks": [MonitorHandler(monitor)]}
        ...     answered = chain.invoke({"question": "Who wrote Emma?"}, config=config)
        >>> records[0].outcome.value
        1.0
    """

    # On the event loop itself: the methods take microseconds, and a hop to a thread takes longer.
    run_inline = True

    def __init__(
        self,
        monitor: "Monitor",
        *,
        fields: Fields[object] | None = None,
        where: RunFilter | None = None,
        retriever_tools: Collection[str] = (),
        id_key: str | None = None,
    ) -> None:
        check_function("where", where)
        check_members("monitor", monitor, ("submit", "skip", "failed"), "pass a ragstone.live.Monitor([...])")
        self.monitor = monitor
        self.recorder = RunRecorder(monitor, ReadingOptions(fields, retriever_tools, id_key), where)
        self._everywhere: _Everywhere | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.monitor!r})"

    def __deepcopy__(self, memo: dict[int, object]) -> "MonitorHandler":
        # Configs are deep-copied, and a copy would count the same runs once more.
        return self

    def everywhere(self) -> ExitStack:
        """Follow every run in this process from now on, on all threads, with no config to pass.

            with monitor, MonitorHandler(monitor).everywhere():
                ...  # serve

        On Python 3.10 an async step has to pass its config to the steps that it runs; else these count as
        runs of their own.

        Returns:
            What ends it again, by `with` or `close()`. Without either it lasts as long as the process.
        """
        installed = ExitStack()
        self._everywhere = self._everywhere or _Everywhere()
        if self._everywhere.handler is None:
            self._everywhere.handler = self
            installed.callback(setattr, self._everywhere, "handler", None)
        return installed

    # LangChain's events, by its names for them; of what comes with each, what is not read here is not named.

    def on_chain_start(self, serialized: object, inputs: object, *, run_id: UUID, **event: object) -> None:
        """Begin a chain, and a sample where none is open above."""
        what = KINDS.get(str(event.get("run_type")), "chain")
        safely(self.monitor, self.recorder.begin, what, run_id, event, serialized, inputs)

    def on_tool_start(self, serialized: object, *_: object, run_id: UUID, **event: object) -> None:
        """Begin a tool."""
        safely(self.monitor, self.recorder.begin, "tool", run_id, event, serialized)

    def on_retriever_start(self, *_: object, run_id: UUID, **event: object) -> None:
        """Begin a retriever."""
        safely(self.monitor, self.recorder.begin, "retriever", run_id, event)

    def on_llm_start(self, *given: object, run_id: UUID, **event: object) -> None:
        """Begin a model, which is given prompts or messages."""
        safely(self.monitor, self.recorder.begin, "model", run_id, event, *given)

    on_chat_model_start = on_llm_start

    def on_chain_end(self, *output: object, run_id: UUID, **event: object) -> None:
        """End a run: keep the texts that it found, or submit the sample that it is."""
        safely(self.monitor, self.recorder.end, run_id, event.get("inputs"), *output)

    on_retriever_end = on_chain_end
    on_tool_end = on_chain_end
    on_llm_end = on_chain_end

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **event: object) -> None:
        """End a run that failed, was cancelled or interrupted."""
        safely(self.monitor, self.recorder.end, run_id, event.get("inputs"), None, error)

    on_llm_error = on_chain_error
    on_retriever_error = on_chain_error
    on_tool_error = on_chain_error
