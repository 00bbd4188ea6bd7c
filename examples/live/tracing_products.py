"""Scores beside the traces of other products: `Monitor(..., sinks=[SQLiteSink(PATH), CallableSink(to_langfuse)])`.

Phoenix' scores belong to a span and Langfuse's to a trace, both OpenTelemetry's: `OpenTelemetrySink()`, as one more
sink, notes their ids in `Record.origin`.

What a server refuses raises, and the monitor tries again.
"""

import base64
import json
import os
from collections.abc import Sequence
from typing import Any
from urllib.request import Request, urlopen
from uuid import NAMESPACE_URL, uuid5

from ragstone import Score
from ragstone.live import Record


def to_phoenix(records: Sequence[Record]) -> None:
    """Annotate spans; a repeat replaces the old annotation."""
    annotations = [_annotation(record) for record in records if "span_id" in record.origin]
    if annotations:
        url = os.environ["PHOENIX_COLLECTOR_ENDPOINT"].rstrip("/") + "/v1/span_annotations?sync=true"
        _post(url, {"data": annotations}, f"Bearer {os.environ.get('PHOENIX_API_KEY', '')}")


def _annotation(record: Record) -> dict[str, Any]:
    outcome = record.outcome
    if isinstance(outcome, Score):
        result: dict[str, Any] = {"score": outcome.value, "explanation": outcome.reason}
    else:
        result = {"label": outcome.reason, "explanation": outcome.detail}
    return {
        "span_id": record.origin["span_id"],
        "name": outcome.metric,
        "annotator_kind": "LLM",
        "identifier": f"ragstone {outcome.version}",
        "result": result,
        "metadata": {"judge": record.judge, "sample_id": record.sample_id},
    }


def to_langfuse(records: Sequence[Record]) -> None:
    """Score traces; a repeat replaces the old score. Servers of SDK 4 and older take single scores, no lists."""
    keys = f"{os.environ['LANGFUSE_PUBLIC_KEY']}:{os.environ['LANGFUSE_SECRET_KEY']}"
    host = os.environ.get("LANGFUSE_BASE_URL", "https://cloud.langfuse.com").rstrip("/")
    for record in records:
        outcome = record.outcome
        if "trace_id" not in record.origin or not isinstance(outcome, Score):
            continue  # Langfuse has no score without a value
        score = {
            "id": str(uuid5(NAMESPACE_URL, json.dumps(record.key))),
            "traceId": record.origin["trace_id"],
            "name": outcome.metric,
            "value": outcome.value,
            "dataType": "NUMERIC",
            "comment": outcome.reason or None,
            "metadata": {"version": outcome.version, "judge": record.judge, "sample_id": record.sample_id},
        }
        refused = _post(f"{host}/api/public/scores", [score], f"Basic {base64.b64encode(keys.encode()).decode()}")
        if refused:
            raise OSError(refused)


def _post(url: str, body: object, authorization: str) -> str:
    """Send JSON; return what the server says where it took a part of it only."""
    headers = {"Content-Type": "application/json", "Authorization": authorization}
    with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=30) as response:  # noqa: S310 - named by the user
        return str(response.read()) if response.status == 207 else ""
