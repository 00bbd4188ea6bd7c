"""Outcomes as feedback on the runs that LangSmith has traced."""

import inspect
import json
import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from ragstone import Score
from ragstone.plain import clean_text
from ragstone.sinks import Record, Sink

if TYPE_CHECKING:
    from langsmith import Client


class LangSmithFeedbackSink(Sink):
    """Sends each outcome as feedback on its LangSmith run: the score and its reason, or why there is none.

    Records without a run id that is a UUID are passed over. A later outcome of the same sample, metric and version
    replaces an earlier one.

    Args:
        client: The client; by default one that LANGSMITH_API_KEY and LANGSMITH_ENDPOINT describe.
        project: The project that the runs are traced to; by default the one that LANGSMITH_PROJECT names.
    """

    name = "langsmith"

    def __init__(self, client: "Client | None" = None, project: str | None = None) -> None:
        self._given = client, project

    def write(self, records: Sequence[Record]) -> None:
        """Send each outcome, and wait until LangSmith has taken it. It raises what the client raises."""
        from langsmith.utils import LangSmithConflictError

        client, place = _connected(os.getpid(), *self._given)
        for record in records:
            try:
                run_id = UUID(record.run_id or "")
            except ValueError:
                continue
            outcome, feedback_id = record.outcome, uuid5(NAMESPACE_URL, json.dumps(record.key))
            if isinstance(outcome, Score):
                found = {"score": outcome.value, "comment": clean_text(outcome.reason) or None}
            else:
                found = {"score": None, "comment": clean_text(f"{outcome.reason}: {outcome.detail}")}
            source = {"version": outcome.version, "judge": record.judge}
            try:
                client.create_feedback(
                    run_id, outcome.metric, feedback_id=feedback_id, source_info=source, **found, **place
                )
            except LangSmithConflictError:  # it is there already
                client.update_feedback(feedback_id, **found)


@cache
def _connected(_process: int, client: Any, project: str | None) -> tuple[Any, dict[str, UUID]]:  # noqa: ANN401
    """Return a client that sends at once, and where its runs are; a forked child needs a connection of its own."""
    from langsmith import Client, utils

    client = client or Client(auto_batch_tracing=False)
    place = client.read_project(project_name=project or utils.get_tracer_project())
    asked = inspect.signature(client.create_feedback).parameters  # releases before 0.7 know no session_id
    return client, {"session_id": place.id} if "session_id" in asked else {}
