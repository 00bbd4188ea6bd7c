"""Without llama-index-core these tests are skipped. LlamaIndex's globals are put back after each of them."""

import asyncio
import gc
import inspect
from importlib.util import find_spec

import pytest

if find_spec("llama_index") is None:  # the extra ragstone[llama-index] is not installed
    collect_ignore_glob = ["*.py"]
else:
    from llama_index.core import Settings
    from llama_index_instrumentation import root_dispatcher

# BatchEvalRunner calls LlamaIndex's asyncio_module, which LlamaIndex has deprecated. Its agents look at all attributes
# of themselves for steps, pydantic's deprecated ones among them, and ask their workflow what it no longer wants to be
# asked. Its thread ends so where a chat's stream breaks.
WARNINGS = (
    "ignore:asyncio_module\\(\\) is deprecated:DeprecationWarning",
    "ignore::pydantic.PydanticDeprecatedSince20",
    "ignore::pydantic.PydanticDeprecatedSince211",
    "ignore:is_running called from within a step:DeprecationWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "with_llama_index":
            item.add_marker(pytest.mark.filterwarnings(*WARNINGS))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run tests that are coroutines, each on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture(autouse=True)
def current_loop():
    """LlamaIndex's own sync methods take the thread's current event loop, make one if need be, and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(autouse=True)
def globals_put_back(monkeypatch):
    """Settings and the root dispatcher as they were, and no key of the developer's in reach."""
    for name in ("OPENAI_API_KEY", "IS_TESTING"):
        monkeypatch.delenv(name, raising=False)
    settings = dict(vars(Settings))
    events, spans = list(root_dispatcher.event_handlers), list(root_dispatcher.span_handlers)
    yield
    vars(Settings).clear()
    vars(Settings).update(settings)
    root_dispatcher.event_handlers[:] = events
    root_dispatcher.span_handlers[:] = spans


@pytest.fixture
def notes():
    """What `instrument` told of the test."""
    from ragstone_llama_index import instrument

    from ..support.noting import Noting  # noqa: TID252
    from .monitored import kept_by_handlers

    notes = Noting()
    instrument(notes)
    yield notes
    if kept_by_handlers():
        gc.collect()
    assert notes.errors == []
    assert kept_by_handlers() == 0


@pytest.fixture
def openinference():
    """OpenInference's own instrumentation: what starts it, and what it has exported."""
    instrumentor = pytest.importorskip("openinference.instrumentation.llama_index").LlamaIndexInstrumentor()
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def start():
        instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)

    yield start, exporter.get_finished_spans
    instrumentor.uninstrument()
    provider.shutdown()
