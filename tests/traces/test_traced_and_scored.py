"""A real SDK traces an app, and its spans are scored in one go."""

import pytest

from ragstone import ContextRelevancy, evaluate
from ragstone.sources import traces
from ragstone.testing import FakeLLM


def test_spans_of_an_engine_are_scored() -> None:
    instrumentation = pytest.importorskip("openinference.instrumentation.llama_index")
    core, llms = pytest.importorskip("llama_index.core"), pytest.importorskip("llama_index.core.llms")
    sdk, export = pytest.importorskip("opentelemetry.sdk.trace"), pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(memory))
    index = core.VectorStoreIndex.from_documents(
        [core.Document(text="Jane wrote it.")], embed_model=core.MockEmbedding(3)
    )
    instrumentor = instrumentation.LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        answer = index.as_query_engine(llm=llms.MockLLM()).query("Who wrote it?")
    finally:
        instrumentor.uninstrument()
    (row,) = traces([span.to_json() for span in memory.get_finished_spans()])
    assert (row.sample.retrieved_contexts, row.sample.response) == (("Jane wrote it.",), str(answer))
    report = evaluate([row.sample], ContextRelevancy(llm=FakeLLM(lambda _: {"ids": [1]})))
    assert report["context_relevancy"].mean == 1
