"""A call that takes too long is given up, and what goes on is said."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from ragstone import LLMRequest
from ragstone_langchain import LangChainEmbedder, LangChainLLM

from .scripted import PlainChat, message, result

REQUEST = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))


@pytest.fixture
def over():
    event = threading.Event()
    yield event
    event.set()


class Slow(PlainChat):
    """A sync model that does not answer before the test is over."""

    over: Any

    def _generate(self, *args, **kwargs):
        self.over.wait()
        return result(message("yes"))


class SlowAsync(Slow):
    """The same, with an async half."""

    async def _agenerate(self, *args, **kwargs):
        await asyncio.sleep(3600)


def test_sync_and_embeddings(over) -> None:
    class SlowEmbeddings(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            over.wait()
            return []

    judge = LangChainLLM(SlowAsync(script=None, over=over), timeout=0.05, name="slow-one")
    with pytest.raises(TimeoutError, match=r"slow-one did not reply within 0\.05 s; its thread runs on until the mod"):
        judge.generate(REQUEST)
    with pytest.raises(TimeoutError, match="SlowEmbeddings did not reply within"):
        LangChainEmbedder(SlowEmbeddings(size=8), timeout=0.05).embed(["a"])


@pytest.mark.parametrize("model", [Slow, SlowAsync])
def test_async(over, model) -> None:
    judge = LangChainLLM(model(script=None, over=over), timeout=0.05)

    async def ask():
        try:
            await judge.agenerate(REQUEST)
        finally:
            over.set()  # the loop waits for threads

    with pytest.raises(TimeoutError, match="a model without an async half runs on in its thread"):
        asyncio.run(ask())


def test_a_cancelled_call_ends_at_once(over) -> None:
    judge = LangChainLLM(SlowAsync(script=None, over=over))

    async def cancelled() -> None:
        task = asyncio.create_task(judge.agenerate(REQUEST))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
