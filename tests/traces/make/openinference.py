"""Traces of OpenInference's instrumentors: OTLP JSON lines as a collector's file exporter writes them; the console's.

In a clone: `python -m tests.traces.make.openinference`, with the packages of data/versions.json.
"""

import io
from collections.abc import Callable, Sequence
from typing import Any

from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from tests.support.noting import Noting
from tests.traces.make import langchain_apps, llama_index_apps
from tests.traces.make.common import write

from ragstone_langchain import MonitorHandler
from ragstone_llama_index import instrument, uninstrument


def on_langchain(noting: Noting, apps: Sequence[Callable[[dict[str, Any]], Any]]) -> None:
    for app in apps:
        app({"callbacks": [MonitorHandler(noting)]})


def on_llama_index(noting: Noting, apps: Sequence[Callable[[], Any]]) -> None:
    instrument(noting)
    for app in apps:
        app()
    uninstrument()


def trace(name: str, instrumentor: Any, run: Any, apps: Any, *, console: bool = False) -> None:
    stream, noting = io.StringIO(), Noting()
    exporter = ConsoleSpanExporter(out=stream) if console else FileSpanExporter(stream=stream)
    provider = TracerProvider(resource=Resource.create({"service.name": "velin"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=provider)
    run(noting, apps)
    provider.force_flush()
    instrumentor.uninstrument()
    framework = "langchain-core" if run is on_langchain else "llama-index-core"
    package = "langchain" if run is on_langchain else "llama-index"
    others = () if console else ("opentelemetry-exporter-otlp-json-file",)
    write(
        name,
        stream.getvalue(),
        noting,
        (f"openinference-instrumentation-{package}", framework, "opentelemetry-sdk", *others),
    )


if __name__ == "__main__":
    chains, engines = LangChainInstrumentor(), LlamaIndexInstrumentor()
    rag, agent = langchain_apps.rag, langchain_apps.agent
    trace("openinference-langchain-rag.jsonl", chains, on_langchain, [rag])
    trace("openinference-langchain-agent.jsonl", chains, on_langchain, [agent])
    trace("openinference-langchain-console.json", chains, on_langchain, [rag], console=True)
    engine, asking = llama_index_apps.engine, llama_index_apps.agent
    trace("openinference-llama_index-engine.jsonl", engines, on_llama_index, [engine])
    trace("openinference-llama_index-agent.jsonl", engines, on_llama_index, [asking])
    trace("openinference-llama_index-console.json", engines, on_llama_index, [engine], console=True)
