"""How an app of LlamaIndex is asked, whichever of its kinds it is."""

from collections.abc import Callable
from typing import Any

from llama_index.core.agent.workflow.workflow_events import AgentWorkflowStartEvent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.workflow import StartEvent, Workflow

from ragstone.metrics.models import check_members
from ragstone.plain import is_mapping
from ragstone_llama_index.read import QUESTIONS, Reading

App = BaseQueryEngine | BaseChatEngine | Workflow | Callable[[str], object]


def check_app(name: str, app: object) -> None:
    """Check that an argument is an app. TypeError: it is none."""
    if not (callable(app) or isinstance(app, BaseChatEngine | Workflow)):
        check_members(name, app, ("query", "aquery"), "pass a query engine, another app or a function")


def ask(app: Any, question: object, reading: Reading, *, awaited: bool) -> object:  # noqa: ANN401 - it is an `App`
    """Call an app with a question, or a workflow with what starts it: an event, or a mapping of what that holds."""
    if isinstance(app, BaseChatEngine):
        return app.achat(str(question)) if awaited else app.chat(str(question))
    if isinstance(app, Workflow):
        if isinstance(question, StartEvent):
            return app.run(start_event=question)
        asked: Any = question if is_mapping(question) else {_question_name(app.start_event_class, reading): question}
        return app.run(**asked)
    if hasattr(app, "query"):
        return app.aquery(question) if awaited else app.query(question)
    return app(question)


def _question_name(start: type[StartEvent], reading: Reading) -> str:
    """The name of a start event's question."""
    named = {} if callable(reading.fields) else reading.fields or {}
    usual = "user_msg" if issubclass(start, AgentWorkflowStartEvent) else "query"
    return named.get("user_input") or next((name for name in QUESTIONS if name in start.model_fields), usual)
