"""The callback handler that hands what a live chain was asked, found and answered to a monitor."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from langchain_core.callbacks.base import BaseCallbackHandler

from ragstone.metrics.base import check_members
from ragstone_langchain.messages import kind

if TYPE_CHECKING:
    from ragstone.monitor import Monitor
    from ragstone_langchain.recorder import Extract, Kind, Where


def check_monitoring(monitor: object, retriever_tools: Collection[str]) -> None:
    """Refuse what lacks a monitor's methods for handlers, and one text in place of tools' names, by a TypeError."""
    check_members("monitor", monitor, ("submit", "skip", "failed"), "pass a ragstone.monitor.Monitor([...])")
    if isinstance(retriever_tools, str):
        raise TypeError(f"retriever_tools: is one text; pass the names as [{retriever_tools!r}]")


def safely(monitor: "Monitor", step: Callable[..., None], *args: object) -> None:
    """Take a step; its error is counted by the monitor and never reaches the app."""
    try:
        step(*args)
    except Exception as error:
        monitor.failed("langchain", error)


class MonitorHandler(BaseCallbackHandler):
    """Hands each topmost run of a chain, graph or agent to a monitor as a sample, with no effect on the app.

        handler = MonitorHandler(monitor)
        chain.invoke(question, config={"callbacks": [handler]})

    One handler serves all threads, tasks and chains. It may be given in the config, bound by
    `chain.with_config(callbacks=[handler])`, set as a classic chain's own `callbacks`, or be everywhere in the
    process by `everywhere()`; given twice it counts once. Its methods take microseconds and never raise: an error of
    its own is counted by `monitor.failed`.

    What becomes a sample, with the run's id as its `id`:

    - A chain run that is inside of no other chain, model or retriever run that this handler hears of. Runs of models
      and retrievers by themselves, and everything below a run of ragstone's own judges, give none. (On Python 3.10
      LangChain's `with_fallbacks` does not tell what it runs by `ainvoke` where that belongs: each chain is a sample.)
    - The question is taken from the run's inputs (for a stream as they stand at its end), else from its outputs, as
      for a graph that is resumed. The answer is taken from the outputs. Both as `RagEvaluator` finds them.
    - The contexts are the first of these that there are: what the app named by
      `dispatch_custom_event("ragstone.contexts", documents)` (several times: all of it); Documents or texts under a
      usual name in the outputs; what the outermost retrievers and tools returned, each text once; Documents that a
      step passed on, where no retriever was run; what else stands under a usual name. Documents that the app drops
      from what a retriever returned, and does not return itself, are not known to be dropped: name the rest. What was
      found in a chain that failed counts only where the whole run failed: not beside what its fallback found.
    - A run that failed is a sample without response and with `metadata["error"]`. The metadata also holds the run's
      `name`, `tags` and what JSON can hold of its metadata, such as `thread_id`.

    No sample but counted by `monitor.skip`: "cancelled"; "abandoned" (a stream that was closed early: parts of it were
    still running at its end); "interrupted" (a graph that waits to be resumed; the resumed run is the sample; of a
    thread's graph that ends with a message that calls tools it is assumed, text or none);
    "never_ended" (given up after an hour without any event, or as the quietest of 2,000 that are open); "declined"
    (`extract` returned None); "nothing_found".

    Args:
        monitor: Takes the samples: a `ragstone.monitor.Monitor`.
        extract: A function of a run's inputs, outputs (None where it failed) and the texts of the documents that
            were found in it. It returns the sample, a mapping of its fields, or None for no sample, and is asked
            instead of everything above; it runs in the app's thread. Where it raises, there is no sample.
        where: A function of a run's name, tags and metadata that says whether it is to be a sample. Runs inside of
            one for which it says no are asked about as well, so that a part of an app can be monitored. Tags and
            metadata are inherited, so that it is the topmost run that counts; names are not.
        retriever_tools: Names of an agent's tools whose text is a context, where no retriever is run and no Documents
            are kept as the artifact.

    Raises:
        TypeError: The monitor is none, `extract` or `where` is no function, or `retriever_tools` is one text.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.monitor import Monitor
        >>> from ragstone.sinks import CallableSink
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

    raise_error = False
    run_inline = True  # on the event loop itself: the methods take microseconds, and a hop to a thread takes longer

    def __init__(
        self,
        monitor: "Monitor",
        *,
        extract: "Extract | None" = None,
        where: "Where | None" = None,
        retriever_tools: Collection[str] = (),
    ) -> None:
        for name, function in (("extract", extract), ("where", where)):
            if function is not None and not callable(cast("object", function)):
                raise TypeError(f"{name}: is {kind(function)}; pass a function")
        check_monitoring(monitor, retriever_tools)
        self.monitor = monitor
        from ragstone_langchain.recorder import Recorder  # loads the monitor, of which evaluators need nothing

        self._options = (extract, where, frozenset(retriever_tools))
        self._recorder = Recorder(monitor, *self._options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.monitor!r})"

    def __deepcopy__(self, memo: dict[int, object]) -> "MonitorHandler":
        return self  # configs are deep-copied; a copy would hear of the same runs once more

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_recorder"}

    def __setstate__(self, state: dict[str, object]) -> None:
        from ragstone_langchain.recorder import Recorder

        vars(self).update(state)
        self._recorder = Recorder(self.monitor, *self._options)

    def everywhere(self) -> ExitStack:
        """Hear of every run in this process from now on, on all threads, with no config to pass.

            with monitor, MonitorHandler(monitor).everywhere():
                ...  # serve

        On Python 3.10 an async step has to pass its config on to what it runs, else that counts as a run by itself.

        Returns:
            What ends it again, by `with` or `close()`. Without either it lasts as long as the process.
        """
        from langchain_core.tracers.context import (
            _configure_hooks,  # pyright: ignore[reportPrivateUsage] - no public way to take a hook back
            register_configure_hook,
        )

        installed = ExitStack()
        if any(variable.get() is self for variable, *_ in _configure_hooks):
            return installed
        # By its default, and not by being set, a variable is the same on every thread.
        variable: ContextVar[MonitorHandler | None] = ContextVar("ragstone_monitor", default=self)
        register_configure_hook(cast("ContextVar[Any | None]", variable), inheritable=True)
        (hook,) = (hook for hook in _configure_hooks if hook[0] is variable)
        installed.callback(_configure_hooks.remove, hook)
        return installed

    def follows(self, run_id: UUID) -> bool:
        """Say whether a run is part of a sample that is still open."""
        run = self._recorder.runs.get(run_id.int, ended=True)
        return run is not None and run.root.sample is not None

    def _safely(self, step: Callable[..., None], *args: object) -> None:
        safely(self.monitor, step, *args)

    # LangChain's events, by its names for them; of what comes with each, what is not read here is not named.

    def on_chain_start(
        self,
        serialized: Mapping[str, object] | None,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        **others: object,
    ) -> None:
        """Begin a chain, and a sample where none is open above."""
        kind: Kind = "step" if others.get("run_type") in ("prompt", "parser") else "chain"
        name = str(others.get("name") or (serialized or {}).get("name") or "")
        self._safely(self._recorder.begin, kind, run_id, parent_run_id, tags, metadata, name, inputs)

    def on_tool_start(self, *_: object, run_id: UUID, **event: Any) -> None:  # noqa: ANN401 - as LangChain has it
        """Begin a tool."""
        self._begin("tool", run_id, **event)

    def on_retriever_start(self, *_: object, run_id: UUID, **event: Any) -> None:  # noqa: ANN401
        """Begin a retriever."""
        self._begin("retriever", run_id, **event)

    def on_llm_start(self, *_: object, run_id: UUID, **event: Any) -> None:  # noqa: ANN401
        """Begin a model."""
        self._begin("model", run_id, **event)

    on_chat_model_start = on_llm_start

    def _begin(
        self,
        kind: "Kind",
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        **_others: object,
    ) -> None:
        self._safely(self._recorder.begin, kind, run_id, parent_run_id, tags)

    def on_chain_end(self, outputs: object, *, run_id: UUID, **others: object) -> None:
        """End a chain, and submit the sample that it is."""
        self._safely(self._recorder.end_chain, run_id, outputs, others.get("inputs"))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **others: object) -> None:
        """End a chain that failed, was cancelled or interrupted."""
        self._safely(self._recorder.fail_chain, run_id, error, others.get("inputs"))

    def on_retriever_end(self, documents: Sequence[object], *, run_id: UUID, **_others: object) -> None:
        """End a retriever, and keep the texts of what it returned."""
        self._safely(self._recorder.end_retriever, run_id, documents)

    def on_tool_end(self, output: object, *, run_id: UUID, **others: object) -> None:
        """End a tool, and keep the texts of the Documents that it returned."""
        self._safely(self._recorder.end_tool, run_id, output, others.get("name"))

    def on_llm_end(self, *_: object, run_id: UUID, **_others: object) -> None:
        """End a model."""
        self._safely(self._recorder.end, run_id)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_others: object) -> None:
        """End a model, a retriever or a tool that failed or was interrupted."""
        self._safely(self._recorder.end, run_id, error)

    on_retriever_error = on_llm_error
    on_tool_error = on_llm_error

    def on_custom_event(self, name: str, data: object, *, run_id: UUID, **_others: object) -> None:
        """Take the contexts that the app names itself."""
        self._safely(self._recorder.collect_named, run_id, name, data)
