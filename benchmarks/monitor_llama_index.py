"""What it costs a LlamaIndex app to be monitored: CPU per query on the app's own thread, with and without handlers.

    python benchmarks/monitor_llama_index.py        # needs ragstone[llama-index]

A query engine over a vector index in memory, whose model answers at once, is asked the same question in each of the
ways below, in small interleaved rounds; a round is compared with the round of the bare app next to it, so that what
else the machine does falls on both. "Nothing" is a span handler that does nothing at all: what LlamaIndex itself takes
for calling one. "Recorded" hands the samples to an object that drops them, and so is the handler alone; "queued" hands
them to a `Monitor` that is paused; "scored" to one whose judge answers at once, so that its threads and the app's are
at work at the same time, all the time, and wait for one another. Only the app's thread is measured (`thread_time`).
"""

import argparse
import asyncio
import gc
import platform
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, cast

from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import TextNode
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from ragstone import ContextRelevancy, Sample
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink
from ragstone.testing import FakeLLM
from ragstone_llama_index import MonitorCallbackHandler, instrument, uninstrument

QUESTION = "How is the coverage score calculated?"
TEXT = "The coverage score is the percentage of assessment questions that both texts answer with yes. " * 4
ANSWER = "It is the share of the assessment questions that both the summary and the text answer with yes."


class Instant(CustomLLM):
    """Answers at once, in 20 pieces where it is asked for a stream."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="benchmark", num_output=64)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:  # noqa: ARG002
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(
        self,
        prompt: str,  # noqa: ARG002
        formatted: bool = False,  # noqa: ARG002
        **kwargs: object,  # noqa: ARG002
    ) -> Generator[CompletionResponse, None, None]:
        words = ANSWER.split(" ")
        return (CompletionResponse(text=" ".join(words[: i + 1]), delta=f"{word} ") for i, word in enumerate(words))


class Nothing(BaseSpanHandler[BaseSpan]):
    """The least that a handler can be."""

    def span_enter(self, *args: object, **kwargs: object) -> None: ...
    def span_exit(self, *args: object, **kwargs: object) -> None: ...
    def span_drop(self, *args: object, **kwargs: object) -> None: ...
    def new_span(self, *args: object, **kwargs: object) -> None: ...
    def prepare_to_exit_span(self, *args: object, **kwargs: object) -> None: ...
    def prepare_to_drop_span(self, *args: object, **kwargs: object) -> None: ...


class Dropping:
    """A monitor that wants nothing."""

    def submit(self, sample: Sample) -> None: ...
    def skip(self, reason: str) -> None: ...
    def failed(self, place: str, error: BaseException) -> None:
        raise AssertionError(place) from error


def engine(nodes: int, *, streaming: bool = False) -> BaseQueryEngine:
    texts = [TextNode(text=f"{i}. {TEXT}", metadata={"page": i}) for i in range(nodes)]
    index = VectorStoreIndex(texts, embed_model=MockEmbedding(embed_dim=8))
    return index.as_query_engine(llm=Instant(), similarity_top_k=nodes, streaming=streaming)


def asked(app: BaseQueryEngine) -> None:
    app.query(QUESTION)


def awaited(app: BaseQueryEngine) -> None:
    asyncio.get_event_loop().run_until_complete(app.aquery(QUESTION))


def streamed(app: BaseQueryEngine) -> None:
    for _ in app.query(QUESTION).response_gen:  # type: ignore[union-attr]
        pass


@contextmanager
def handled(handler: BaseSpanHandler[Any]) -> Generator[None, None, None]:
    before = root_dispatcher.span_handlers
    root_dispatcher.span_handlers = [*before, handler]
    try:
        yield
    finally:
        root_dispatcher.span_handlers = before


@contextmanager
def instrumented(monitor: Monitor) -> Generator[None, None, None]:
    instrument(monitor)
    try:
        yield
    finally:
        uninstrument(monitor)


@contextmanager
def bare() -> Generator[None, None, None]:
    yield


def cpu(ask: Callable[[BaseQueryEngine], None], app: BaseQueryEngine, n: int) -> float:
    begun = time.thread_time()
    for _ in range(n):
        ask(app)
    return (time.thread_time() - begun) / n * 1000


def legacy(nodes: int, streaming: bool) -> BaseQueryEngine:
    """Return an app with the older handler."""
    Settings.callback_manager = CallbackManager([MonitorCallbackHandler(cast("Monitor", Dropping()))])
    try:
        return engine(nodes, streaming=streaming)
    finally:
        Settings.callback_manager = None  # type: ignore[assignment]  # an empty one would take the handlers of this one


def measure(ask: Callable[[BaseQueryEngine], None], args: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    """Return (CPU ms bare, CPU ms so) per query by way, a pair for each round."""
    app = engine(args.nodes, streaming=ask is streamed)
    old = legacy(args.nodes, streaming=ask is streamed)
    metric = ContextRelevancy(llm=FakeLLM(lambda _: {"ids": [1]}))
    queued = Monitor(metric, sinks=CallableSink(len), max_queue=1_000_000)
    queued.pause()
    scoring = Monitor(metric, sinks=CallableSink(len))
    ways = {
        "nothing": (lambda: handled(Nothing()), app),
        "recorded": (lambda: instrumented(cast("Monitor", Dropping())), app),
        "recorded, legacy": (bare, old),
        "queued": (lambda: instrumented(queued), app),
        "scored": (lambda: instrumented(scoring), app),
    }
    pairs: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for i in range(args.rounds + 2):
        for way, (context, its_app) in ways.items():
            gc.collect()
            first = cpu(ask, app, args.n) if i % 2 else None  # either goes first by turns
            with context():
                so = cpu(ask, its_app, args.n)
            without = cpu(ask, app, args.n) if first is None else first
            if way == "scored":
                scoring.flush(60)
            if i > 1:  # the first rounds are for warming up
                pairs[way].append((without, so))
    for monitor in (queued, scoring):
        monitor.resume()
        monitor.close(60)
        assert not monitor.stats().errors, monitor.stats().errors
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=50, help="queries per round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--nodes", type=int, default=2, help="contexts of each answer")
    args = parser.parse_args()
    asyncio.set_event_loop(asyncio.new_event_loop())
    print(
        f"Python {platform.python_version()}, llama-index-core {version('llama-index-core')}, {args.nodes} contexts\n"
    )
    print("| CPU of the app's thread, ms per query | bare | with | added | ratio |")
    print("|---|---|---|---|---|")
    for ask, name in ((asked, "query"), (awaited, "aquery"), (streamed, "query, streamed")):
        for way, pairs in measure(ask, args).items():
            without = statistics.median(one for one, _ in pairs)
            so = statistics.median(two for _, two in pairs)
            added = statistics.median(two - one for one, two in pairs)
            ratio = statistics.median(two / one for one, two in pairs)
            print(f"| {name}: {way} | {without:.3f} | {so:.3f} | {added:+.3f} | {ratio:.2f} |")
    asyncio.get_event_loop().close()


if __name__ == "__main__":
    main()
