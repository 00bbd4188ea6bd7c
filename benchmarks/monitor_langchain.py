"""What the live handler costs a LangChain app: CPU per invoke of a small RAG chain, with and without it.

    python benchmarks/monitor_langchain.py        # needs ragstone[langchain]

The chain searches, words a prompt, asks a model that answers at once, and parses: it does nothing but make events. Its
calls are measured in short turns, one way after the other, again and again; a figure is the median over the turns of
the CPU of the whole process, so that pools and the monitor's own threads are in it. "added" and "times" compare each
turn with the turn without a handler beside it, so that a machine that grows slower meanwhile does not matter.

- "silent": a handler of LangChain's base class that does nothing: LangChain's own part of the cost.
- "drops": a handler whose monitor drops every sample: what the handler alone costs the app.
- "paused": a real monitor whose workers rest: what the app's own thread pays in all.
- "scores": a real monitor with one metric and a judge that answers at once; its workers' CPU is in the figure.
"""

import argparse
import asyncio
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

if importlib.util.find_spec("langchain_core") is None:
    sys.exit('langchain-core is not installed: pip install "ragstone[langchain]"')

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from ragstone import ContextRelevancy, Sample
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink
from ragstone.testing import FakeLLM
from ragstone_langchain import MonitorHandler

BASE = "without"
TEXTS = [f"This is the text of document {i}. " * 20 for i in range(4)]


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, *_: object, **__: object) -> list[Document]:
        return [Document(text) for text in TEXTS]


class Dropping:
    """A monitor that drops all."""

    def submit(self, sample: Sample) -> None: ...

    def skip(self, reason: str) -> None: ...

    def failed(self, _place: str, error: BaseException) -> None:
        raise error


class Silent(BaseCallbackHandler):
    """Does nothing, on the app's own thread."""

    run_inline = True

    def on_chat_model_start(self, *_: object, **__: object) -> None: ...


class Counting(BaseCallbackHandler):
    """Counts the events that a handler like ours gets."""

    def __init__(self) -> None:
        self.events = 0

    def _count(self, *_: object, **__: object) -> None:
        self.events += 1

    on_chain_start = on_chain_end = on_retriever_start = on_retriever_end = _count
    on_chat_model_start = on_llm_end = _count


def rag() -> Runnable[Any, Any]:
    given: dict[str, Any] = {"context": Retriever() | joined, "question": RunnablePassthrough()}
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    return given | prompt | FakeListChatModel(responses=["An answer."]) | StrOutputParser()


def joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def handlers(stack: ExitStack) -> dict[str, list[BaseCallbackHandler]]:
    def monitor() -> Monitor:
        metric = ContextRelevancy(llm=FakeLLM(lambda _: {"ids": []}))
        return stack.enter_context(Monitor(metric, sinks=CallableSink(lambda _: None), when_full="drop_oldest"))

    paused, scoring = monitor(), monitor()
    paused.pause()
    stack.callback(paused.resume)
    return {
        BASE: [],
        "silent": [Silent()],
        "drops": [MonitorHandler(Dropping())],  # type: ignore[arg-type]  # it has what a handler needs
        "paused": [MonitorHandler(paused)],
        "scores": [MonitorHandler(scoring)],
    }


def measure(
    call: Callable[[list[BaseCallbackHandler]], None], turns: int, ways: dict[str, Any]
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, callbacks in ways.items():
            start = time.process_time()
            call(callbacks)
            if turn:  # the first warms up
                taken[name].append(time.process_time() - start)
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--calls", type=int, default=50, help="in each turn")
    args = parser.parse_args()
    chain, counting = rag(), Counting()
    chain.invoke("A question?", {"callbacks": [counting]})
    print(f"{counting.events} events per invoke; CPU in ms per invoke, medians of {args.turns} turns of {args.calls}\n")

    def sync(callbacks: list[BaseCallbackHandler]) -> None:
        for _ in range(args.calls):
            chain.invoke("A question?", {"callbacks": callbacks})

    def one_by_one(callbacks: list[BaseCallbackHandler]) -> None:
        async def calls() -> None:
            for _ in range(args.calls):
                await chain.ainvoke("A question?", {"callbacks": callbacks})

        asyncio.run(calls())

    print(f"{'':10}{'':10}{'ms':>8}{'added':>8}{'times':>8}")
    for name, call in (("invoke", sync), ("ainvoke", one_by_one)):
        with ExitStack() as stack:
            taken = measure(call, args.turns, handlers(stack))
        for way, seconds in taken.items():
            each = [1000 * s / args.calls for s in seconds]
            base = [1000 * s / args.calls for s in taken[BASE]]
            added = statistics.median(a - b for a, b in zip(each, base, strict=True))
            times = statistics.median(a / b for a, b in zip(each, base, strict=True))
            print(f"{name:10}{way:10}{statistics.median(each):8.3f}{added:8.3f}{times:8.2f}")


if __name__ == "__main__":
    main()
