"""The contract classes that adapters are held to: kept by half a judge and half an embedder, failed by what breaks them."""

import asyncio
from contextlib import closing

import numpy as np
import pytest

from ragstone import BaseEmbedder, BaseLLM, Faithfulness, LLMReply
from ragstone.testing import EmbedderContract, FakeEmbedder, FakeLLM, LLMContract, by_step

from ..support.judges import AsyncLLM, SyncLLM  # noqa: TID252

REPLY = '{"answer": "yes"}'


class Wrong(BaseLLM):
    model = "wrong"

    def generate(self, request, /):
        return REPLY


class OwnLoop(AsyncLLM):
    """The beginner's bridge: fails within a running loop."""

    def generate(self, request, /):
        with closing(self.agenerate(request)) as later:
            return asyncio.run(later)


class SyncEmbedder(BaseEmbedder):
    model = "sync"

    def embed(self, texts, /):
        return FakeEmbedder().embed(texts)


class AsyncEmbedder(BaseEmbedder):
    model = "async"

    async def aembed(self, texts, /):
        return FakeEmbedder().embed(texts)


def breaches(contract, model):
    """The names of the contract's tests that fail."""
    held = type("Held", (contract,), {"llm": lambda self: model, "embedder": lambda self: model})()
    failed = []
    for name in dir(held):
        if name.startswith("test_"):
            try:
                getattr(held, name)()
            except Exception:
                failed.append(name)
    return failed


def probable(request):
    return LLMReply("yes", 9, 1, {"yes": 0.9, "no": 0.1}) if request.choices else {"answer": "yes"}


def test_one_half_is_enough_to_keep_the_contracts():
    assert [breaches(LLMContract, llm) for llm in (SyncLLM(REPLY), AsyncLLM(REPLY), FakeLLM(probable))] == [[], [], []]
    embedders = SyncEmbedder(), AsyncEmbedder(), FakeEmbedder()
    assert [breaches(EmbedderContract, embedder) for embedder in embedders] == [[], [], []]


@pytest.mark.parametrize(
    ("breach", "broken"),
    [
        ("test_it_is_an_llm", SyncLLM(REPLY, model="")),
        ("test_it_is_an_llm", SyncLLM(REPLY, asking="nicely")),
        ("test_it_is_an_llm", SyncLLM(REPLY, gives_probabilities="mostly")),
        ("test_both_halves_answer", Wrong()),
        ("test_both_halves_answer", SyncLLM(LLMReply(REPLY, -1, 1))),
        ("test_both_halves_answer", OwnLoop(REPLY)),
        (
            "test_probabilities_are_those_of_the_choices",
            SyncLLM(LLMReply("yes", probabilities={"yes": 0.9, "x": 0.1})),
        ),
        (
            "test_probabilities_are_those_of_the_choices",
            SyncLLM(LLMReply("yes", probabilities={"yes": 1.5, "no": -1})),
        ),
        ("test_probabilities_are_those_of_the_choices", FakeLLM("yes", gives_probabilities=True)),
        ("test_it_changes_no_request", FakeLLM(lambda request: request.schema.update(title="mine") or REPLY)),
    ],
    ids=range(10),
)
def test_an_llm_that_breaks_the_contract_fails_it(breach, broken):
    assert breach in breaches(LLMContract, broken)


@pytest.mark.parametrize(
    "rows",
    [
        lambda texts: np.ones((1, 3), dtype=np.float32),
        lambda texts: FakeEmbedder().embed(texts) * np.nan,
        lambda texts: FakeEmbedder().embed([f"{i}{text}" for i, text in enumerate(texts)]),
    ],
    ids=["one row", "NaN", "by place"],
)
def test_an_embedder_that_breaks_the_contract_fails_it(rows):
    assert breaches(EmbedderContract, FakeEmbedder(vectors=rows)) == ["test_one_row_per_text_in_order"]


def test_a_step_without_a_reply_is_named():
    judge = FakeLLM(by_step(verdicts={}))
    with pytest.raises(KeyError, match="has no reply for faithfulness.claims; it has verdicts"):
        Faithfulness(judge).score({"retrieved_contexts": ["Emma is a novel."], "response": "Emma is a novel."})
