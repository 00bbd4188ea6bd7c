"""Traces of Langfuse's SDK: what it sends, and that in the form of its API, by the SDK's own types.

With langfuse 5 the form is its list of observations, with langfuse 3 a trace with its observations: run it with both.
No server of Langfuse is needed: what the SDK sends comes to one on loopback.
"""

import gzip
import json
import re
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

from google.protobuf.json_format import MessageToDict
from langfuse import Langfuse, api
from langfuse.langchain import CallbackHandler
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.support.noting import Noting
from tests.traces.make.common import write
from tests.traces.make.langchain_apps import agent, rag

from ragstone_langchain import MonitorHandler

PACKAGES = ("langfuse", "langchain-core", "opentelemetry-proto")


class Server(ThreadingHTTPServer):
    """Keeps the traces that are sent to it."""

    def __init__(self) -> None:
        self.sent: list[ExportTraceServiceRequest] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "traces" in self.path:
            unzipped = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            self.server.sent.append(ExportTraceServiceRequest.FromString(unzipped))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def sent_by(*apps: Any) -> tuple[list[ExportTraceServiceRequest], Noting]:
    noting = Noting()
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Langfuse(public_key="pk", secret_key="sk", host=f"http://127.0.0.1:{server.server_port}")
        for app in apps:
            app({"callbacks": [MonitorHandler(noting), CallbackHandler()]})
            client.flush()
        server.shutdown()
    return server.sent, noting


def value_of(text: str | None) -> Any:
    """A value as the API gives it: JSON where it is JSON."""
    try:
        return json.loads(text or "null")
    except ValueError:
        return text


def observations(sent: list[ExportTraceServiceRequest]) -> list[dict[str, Any]]:
    """The observations that Langfuse's server makes of spans."""
    spans = [
        one for request in sent for group in request.resource_spans for each in group.scope_spans for one in each.spans
    ]
    found = []
    for span in spans:
        attributes = {each.key: each.value.string_value for each in span.attributes}
        named = {key.rpartition(".")[2]: value for key, value in attributes.items() if ".observation." in key}
        found.append(
            {
                "id": span.span_id.hex(),
                "traceId": span.trace_id.hex(),
                "projectId": "velin",
                "parentObservationId": span.parent_span_id.hex() or None,
                "type": named.get("type", "span").upper(),
                "name": span.name,
                "startTime": datetime.fromtimestamp(span.start_time_unix_nano / 1e9, timezone.utc),
                "endTime": datetime.fromtimestamp(span.end_time_unix_nano / 1e9, timezone.utc),
                "level": named.get("level", "DEFAULT"),
                "statusMessage": named.get("status_message"),
                "environment": "default",
                "input": value_of(named.get("input")),
                "output": value_of(named.get("output")),
                "metadata": {},
                "model": named.get("name"),
                "modelParameters": {},
                "usageDetails": {},
                "costDetails": {},
            }
        )
    return found


if __name__ == "__main__":
    sent, noting = sent_by(rag, agent)
    rows = observations(sent)
    if version("langfuse") >= "5":
        lines = [json.dumps(MessageToDict(each)) for each in sent]
        write("langfuse-otlp.jsonl", "\n".join(lines), noting, PACKAGES)
        snake = [{re.sub("([A-Z])", r"_\1", key).lower(): value for key, value in each.items()} for each in rows]
        answer = api.ObservationsV2Response(data=snake, meta={"cursor": None})
        write("langfuse-observations.json", answer.json(), noting, PACKAGES)
    else:
        traces = []
        for root in [each for each in rows if not each["parentObservationId"]]:
            inside = [
                dict(each, usage={"input": 0, "output": 0, "total": 0, "unit": "TOKENS"})
                for each in rows
                if each["traceId"] == root["traceId"]
            ]
            whole = {"id": root["traceId"], "timestamp": root["startTime"], "tags": [], "public": False, "scores": []}
            whole |= {key: root[key] for key in ("name", "input", "output", "environment")}
            whole |= {"htmlPath": "/project/velin", "observations": inside}
            traces.append(api.TraceWithFullDetails(**whole).json())
        write("langfuse-traces.jsonl", "\n".join(traces), noting, PACKAGES)
