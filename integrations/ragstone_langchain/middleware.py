"""The middleware that hands each run of an agent to a monitor."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from langchain_core.runnables import RunnableConfig

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
except ImportError as error:
    raise ImportError("MonitorMiddleware needs langchain 1.x: pip install langchain") from error

from ragstone_langchain.handler import check_monitor
from ragstone_langchain.messages import tool_names
from ragstone_langchain.recorder import LiveRun, Recorder, RunId, key_of, safely

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
        self.recorder = Recorder(monitor, tool_names(retriever_tools))

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
        own_run: RunId | None = getattr(config.get("callbacks"), "parent_run_id", None)
        heard = None if own_run is None else self.recorder.runs.get(key_of(own_run))
        if heard is not None:
            if heard.root.sample is not None:
                return  # a handler of the same monitor will submit it
            *_, top = heard.lineage()
            top.kind = "around"
        outputs = dict(state)
        metadata: Mapping[str, object] = config.get("metadata") or {}
        # LangGraph 1.1 and later say what the agent's run is, where the app has named it.
        run_id = getattr(getattr(runtime, "execution_info", None), "run_id", None)
        run = LiveRun(
            recorder=self.recorder,
            run_id=UUID(str(run_id)) if run_id else own_run or uuid4(),
            name=str(metadata.get("lc_agent_name") or "agent"),
            tags=tuple(config.get("tags") or ()),
            # What LangGraph adds is about the middleware's own step.
            metadata={name: value for name, value in metadata.items() if not name.startswith("langgraph_")},
            inputs=outputs,
            configurable=config.get("configurable"),
        )
        run.enter_block(own_run)
        self.recorder.submit(run, outputs)
