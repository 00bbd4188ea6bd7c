"""How an app of LlamaIndex is asked, whichever of its kinds it is."""

from collections.abc import Callable
from typing import Any

from llama_index.core.agent.workflow.workflow_events import AgentWorkflowStartEvent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.workflow import StartEvent, Workflow

from ragstone.adapters.fields_by_user import names_of
from ragstone.fields.read import read
from ragstone.metrics.models import check_members
from ragstone.plain import is_mapping
from ragstone_llama_index.read import Reading

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
    if named := names_of(reading.fields).get("user_input"):
        return named
    usual = "user_msg" if issubclass(start, AgentWorkflowStartEvent) else "query"
    found = read(dict.fromkeys(start.model_fields, "?"), fields=("user_input",)).found.get("user_input")
    return usual if found is None else found.name
