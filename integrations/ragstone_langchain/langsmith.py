"""Outcomes as feedback on the runs that LangSmith has traced."""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from ragstone import Score
from ragstone.live import Record, Sink
from ragstone.plain import clean_text

if TYPE_CHECKING:
    from langsmith import Client


class LangSmithFeedbackSink(Sink):
    """Sends each outcome as feedback on its LangSmith run: the score and its reason, or why there is none.

    A later outcome replaces an earlier one of its key. Records without a run id that is a UUID are passed over.

    Args:
        client: The client; by default one that LANGSMITH_API_KEY and LANGSMITH_ENDPOINT describe.
        project: The project that the runs are traced to; by default the one that LANGSMITH_PROJECT names.
    """

    name = "langsmith"

    def __init__(self, client: "Client | None" = None, project: str | None = None) -> None:
        self._given = client, project
        self._opened: dict[int, tuple[Any, UUID]] = {}

    def __reduce__(self) -> "tuple[type[LangSmithFeedbackSink], tuple[Client | None, str | None]]":
        return type(self), self._given

    def write(self, records: Sequence[Record]) -> None:
        """Send each outcome, and wait until LangSmith has taken it. It raises what the client raises."""
        from langsmith import Client, utils

        if (process := os.getpid()) not in self._opened:  # a forked child needs a connection of its own
            client = self._given[0] or Client(auto_batch_tracing=False)
            project = client.read_project(project_name=self._given[1] or utils.get_tracer_project())
            self._opened = {process: (client, project.id)}
        client, session_id = self._opened[process]
        for record in records:
            try:
                run_id = UUID(record.run_id or "")
            except ValueError:
                continue
            outcome, feedback_id = record.outcome, uuid5(NAMESPACE_URL, json.dumps(record.key))
            score = outcome.value if isinstance(outcome, Score) else None
            reason = outcome.reason if isinstance(outcome, Score) else f"{outcome.reason}: {outcome.detail}"
            feedback: dict[str, Any] = {"score": score, "comment": clean_text(reason)}
            source = {"version": outcome.version, "judge": record.judge}
            about: dict[str, Any] = {"source_info": source, "session_id": session_id, "stop_after_attempt": 3}
            try:
                client.create_feedback(run_id, outcome.metric, feedback_id=feedback_id, **feedback, **about)
            except utils.LangSmithConflictError:  # it is there already
                client.update_feedback(feedback_id, **feedback)
