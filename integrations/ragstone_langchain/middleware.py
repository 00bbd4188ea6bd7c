"""The middleware that hands each run of an agent to a monitor."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
except ImportError as error:
    raise ImportError("MonitorMiddleware needs langchain 1.x: pip install langchain") from error

from ragstone_langchain.handler import check_monitor
from ragstone_langchain.read import Reading
from ragstone_langchain.record import Recorder, TopRun, key_of, safely

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

    from ragstone.live import Monitor


class MonitorMiddleware(AgentMiddleware[AgentState[Any], Any]):
    """Hands each run of an agent to a monitor as a sample, once, when the agent has answered.

        agent = create_agent(model, tools, middleware=[MonitorMiddleware(monitor)])

    It changes none of the agent's messages, and an error of its own is counted by `monitor.failed` and never reaches
    the agent. Where a `MonitorHandler` of the same monitor hears of the run, the middleware leaves it to that one. What
    it reads, and what it cannot see: docs/langchain.md.

    Args:
        monitor: Takes the samples: a `ragstone.live.Monitor`.
        retriever_tools: Names of tools whose text is a context. Tools that keep Documents need not be named.

    Raises:
        TypeError: The monitor is none.
        ValueError: `retriever_tools` is one text.
    """

    def __init__(self, monitor: "Monitor", *, retriever_tools: Collection[str] = ()) -> None:
        super().__init__()
        check_monitor(monitor)
        self.monitor = monitor
        self.recorder = Recorder(monitor, Reading(None, retriever_tools))

    # LangGraph passes the config to whoever asks for it by this name and type, on every version of Python.
    def after_agent(
        self, state: AgentState[Any], runtime: "Runtime[Any]", config: RunnableConfig | None = None
    ) -> dict[str, Any] | None:
        """Submit the run; LangGraph calls it when the agent has answered. Nothing of the agent's is changed."""
        safely(self.monitor, self._submit, state, runtime, config or {})
        return None

    async def aafter_agent(
        self, state: AgentState[Any], runtime: "Runtime[Any]", config: RunnableConfig | None = None
    ) -> dict[str, Any] | None:
        """Submit the run."""
        return self.after_agent(state, runtime, config)

    def _submit(self, state: AgentState[Any], runtime: object, config: RunnableConfig) -> None:
        own_run = key_of(getattr(config.get("callbacks"), "parent_run_id", None))
        heard = self.recorder.runs.top_of(own_run)
        if heard is not None and heard.is_sample:
            return  # a handler of the same monitor will submit it
        if heard is not None:
            (heard.around or heard).alone = None  # what is around a sample is not counted
        metadata: Mapping[str, object] = config.get("metadata") or {}
        # LangGraph 1.1 and later say what the agent's run is, where the app has named it.
        run_id = getattr(getattr(runtime, "execution_info", None), "run_id", None)
        run = TopRun(
            id=str(run_id) if run_id else own_run or uuid4().int,
            kind="chain",
            name=str(metadata.get("lc_agent_name") or "agent"),
            # What LangGraph adds is about the middleware's own step.
            metadata={name: value for name, value in metadata.items() if not name.startswith("langgraph_")},
            inputs=dict(state),
            output=dict(state),
            recorder=self.recorder,
            tags=tuple(config.get("tags") or ()),
            configurable=config.get("configurable"),
        )
        run.enter_block(own_run)
        self.recorder.submit(run)
