"""Traces that Phoenix gives back: its frame of spans, and the spans of its API. Needs `phoenix serve` on $PHOENIX."""

import json
import os
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from phoenix.client import Client
from tests.support.noting import Noting
from tests.traces.make.common import write
from tests.traces.make.langchain_apps import agent, rag

from ragstone_langchain import MonitorHandler

SERVER = os.environ.get("PHOENIX", "http://127.0.0.1:6006")
PACKAGES = ("arize-phoenix", "arize-phoenix-client", "openinference-instrumentation-langchain", "langchain-core")


def traced(*apps: Callable[[dict[str, Any]], Any]) -> tuple[str, Noting]:
    """A project of its own that has the traces of the apps, and what was submitted of them."""
    noting, project = Noting(), f"velin-{uuid4()}"
    provider = TracerProvider(resource=Resource.create({"openinference.project.name": project}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{SERVER}/v1/traces")))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    for app in apps:
        app({"callbacks": [MonitorHandler(noting)]})
    provider.shutdown()
    LangChainInstrumentor().uninstrument()
    # The server stores them a moment after it answered.
    time.sleep(5)
    return project, noting


if __name__ == "__main__":
    spans = Client(base_url=SERVER).spans
    project, noting = traced(rag, agent)
    frame = spans.get_spans_dataframe(project_identifier=project)
    write("phoenix-frame.jsonl", frame.to_json(orient="records", lines=True), noting, PACKAGES)
    write("phoenix-frame.csv", frame.to_csv(), noting, PACKAGES)
    project, noting = traced(rag)
    write("phoenix-api.json", json.dumps(spans.get_spans(project_identifier=project)), noting, PACKAGES)
