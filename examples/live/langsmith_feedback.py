"""Scores as feedback in LangSmith: `Monitor(..., sinks=[SQLiteSink(PATH), CallableSink(to_langsmith)])`.

The runs are those that LANGSMITH_TRACING has traced to LANGSMITH_PROJECT. LANGSMITH_API_KEY is your key.

What LangSmith refuses raises, and the monitor tries again.
"""

import json
from collections.abc import Sequence
from functools import cache
from uuid import NAMESPACE_URL, UUID, uuid5

from langsmith import Client, utils

from ragstone import Score
from ragstone.live import Record


@cache
def _service() -> tuple[Client, UUID]:
    client = Client(auto_batch_tracing=False)
    return client, client.read_project(project_name=utils.get_tracer_project()).id


def to_langsmith(records: Sequence[Record]) -> None:
    """Write each outcome as feedback on its run; a repeat replaces the old feedback."""
    client, project_id = _service()
    for record in records:
        if not record.run_id:
            continue  # no handler submitted the sample
        outcome, feedback_id = record.outcome, uuid5(NAMESPACE_URL, json.dumps(record.key))
        score = outcome.value if isinstance(outcome, Score) else None
        comment = outcome.reason if isinstance(outcome, Score) else f"{outcome.reason}: {outcome.detail}"
        try:
            client.create_feedback(
                record.run_id,
                outcome.metric,
                score=score,
                comment=comment,
                feedback_id=feedback_id,
                source_info={"version": outcome.version, "judge": record.judge},
                session_id=project_id,
                stop_after_attempt=3,
            )
        except utils.LangSmithConflictError:  # it is there already
            client.update_feedback(feedback_id, score=score, comment=comment)
