"""What the live handlers cost an app: CPU per call of a small RAG app, with and without them.

    python benchmarks/handlers.py langchain        # needs ragstone[langchain]
    python benchmarks/handlers.py llama_index      # needs ragstone[llama-index]

The app retrieves two texts and asks a model that answers at once: it makes events and does little else. Turns with and
without a handler follow one another; a figure is the median over pairs of turns. Only the app's own thread is measured.

- "empty": a handler of the framework's that does nothing: the framework's own part of the cost.
- "drops": our handler with a monitor that drops every sample: what the handler alone costs.
- "queues": our handler with a real monitor whose workers rest: what the app's thread pays in all.
"""

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

from common import QUESTION, SOURCE, SUMMARY

from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.live import CallableSink, Queue
from ragstone.testing import FakeLLM

Handlers = list[Any]
App = tuple[Callable[[Handlers], None], Callable[[Handlers], Any]]
"""How the app is called: sync, and as a coroutine."""


class Dropping:
    """A monitor that drops all."""

    def advise(self, advice: dict[str, str]) -> None: ...
    def submit(self, sample: Sample) -> None: ...
    def skip(self, reason: str, runs: int = 1, names: Sequence[str] = ()) -> None: ...
    def failed(self, place: str, error: BaseException) -> None:
        raise AssertionError(place) from error


def langchain(monitors: dict[str, Any]) -> tuple[App, dict[str, AbstractContextManager[Handlers]]]:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.documents import Document
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable, RunnablePassthrough

    from ragstone_langchain import MonitorHandler

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, *_: object, **__: object) -> list[Document]:
            return [Document(f"{i}. {SOURCE}") for i in range(2)]

    class Empty(BaseCallbackHandler):
        run_inline = True

        def on_chat_model_start(self, *_: object, **__: object) -> None: ...

    inputs: dict[str, Any] = {"context": Retriever(), "question": RunnablePassthrough()}
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    chain: Runnable[Any, Any] = inputs | prompt | FakeListChatModel(responses=[SUMMARY]) | StrOutputParser()
    ways = {"empty": [Empty()], **{name: [MonitorHandler(monitor)] for name, monitor in monitors.items()}}
    app = (
        lambda handlers: chain.invoke(QUESTION, {"callbacks": handlers}),
        lambda handlers: chain.ainvoke(QUESTION, {"callbacks": handlers}),
    )
    return app, {name: nullcontext(handlers) for name, handlers in ways.items()}


def llama_index(monitors: dict[str, Any]) -> tuple[App, dict[str, AbstractContextManager[Handlers]]]:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.schema import TextNode
    from llama_index_instrumentation import root_dispatcher
    from llama_index_instrumentation.span import BaseSpan
    from llama_index_instrumentation.span_handlers import BaseSpanHandler

    from ragstone_llama_index import instrument, uninstrument

    class Empty(BaseSpanHandler[BaseSpan]):
        def new_span(self, *_: object, **__: object) -> None: ...
        def prepare_to_exit_span(self, *_: object, **__: object) -> None: ...
        def prepare_to_drop_span(self, *_: object, **__: object) -> None: ...

    class Handled:  # may be entered again and again, as a context of contextlib's may not
        def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
            self.begin, self.end = begin, end

        def __enter__(self) -> Handlers:
            self.begin()
            return []

        def __exit__(self, *_: object) -> None:
            self.end()

    index = VectorStoreIndex(
        [TextNode(text=f"{i}. {SOURCE}") for i in range(2)], embed_model=MockEmbedding(embed_dim=8)
    )
    engine = index.as_query_engine(llm=MockLLM())
    bare, empty = list(root_dispatcher.span_handlers), Empty()
    ways: dict[str, Any] = {
        "empty": Handled(
            lambda: setattr(root_dispatcher, "span_handlers", [*bare, empty]),
            lambda: setattr(root_dispatcher, "span_handlers", bare),
        )
    }
    for name, monitor in monitors.items():
        ways[name] = Handled(lambda monitor=monitor: instrument(monitor), lambda monitor=monitor: uninstrument(monitor))
    return (lambda _: cast("None", engine.query(QUESTION)), lambda _: engine.aquery(QUESTION)), ways


@contextmanager
def monitors() -> Generator[dict[str, Any], None, None]:
    metric = ContextRelevancy(llm=FakeLLM(lambda _request: {"ids": []}))
    with Monitor(metric, sinks=CallableSink(len), queue=Queue(size=1_000_000)) as paused:
        paused.pause()
        yield {"drops": Dropping(), "queues": paused}
        paused.resume()


def cpu(call: Callable[[Handlers], None], handlers: Handlers, n: int) -> float:
    start = time.thread_time()
    for _ in range(n):
        call(handlers)
    return (time.thread_time() - start) / n * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("framework", choices=("langchain", "llama_index"))
    parser.add_argument("-n", type=int, default=50, help="calls in each turn")
    parser.add_argument("--turns", type=int, default=20)
    args = parser.parse_args()
    loop = asyncio.new_event_loop()
    print("| CPU of the app's thread, ms per call | without | with | added | times |\n|---|---|---|---|---|")
    with monitors() as known:
        (sync, coroutine), ways = {"langchain": langchain, "llama_index": llama_index}[args.framework](known)
        calls: dict[str, Callable[[Handlers], None]] = {
            "sync": sync,
            "async": lambda handlers: loop.run_until_complete(coroutine(handlers)),
        }
        for name, call in calls.items():
            pairs: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            for turn in range(args.turns + 1):
                for way, context in ways.items():
                    gc.collect()
                    without = cpu(call, [], args.n)
                    with context as handlers:
                        beside = cpu(call, handlers, args.n)
                    if turn:  # the first warms up
                        pairs[way].append((without, beside))
            for way, each in pairs.items():
                bare, own = (statistics.median(pair[i] for pair in each) for i in (0, 1))
                added = statistics.median(b - a for a, b in each)
                print(f"| {name}: {way} | {bare:.3f} | {own:.3f} | {added:+.3f} | {own / bare:.2f} |")
    loop.close()


if __name__ == "__main__":
    main()
