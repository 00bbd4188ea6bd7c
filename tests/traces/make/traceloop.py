"""Traces of OpenLLMetry's instrumentor of LangChain, with OpenTelemetry's attributes for generative models."""

import io

from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from tests.support.noting import Noting
from tests.traces.make.common import write
from tests.traces.make.langchain_apps import agent, rag

from ragstone_langchain import MonitorHandler

PACKAGES = ("opentelemetry-instrumentation-langchain", "langchain-core", "opentelemetry-exporter-otlp-json-file")

if __name__ == "__main__":
    provider = TracerProvider(resource=Resource.create({"service.name": "velin"}))
    LangchainInstrumentor().instrument(tracer_provider=provider)
    stream, noting = io.StringIO(), Noting()
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(stream=stream)))
    for app in (rag, agent):
        app({"callbacks": [MonitorHandler(noting)]})
        provider.force_flush()
        write(f"genai-langchain-{app.__name__}.jsonl", stream.getvalue(), noting, PACKAGES)
        stream.seek(0)
        stream.truncate()
        noting.samples.clear()
