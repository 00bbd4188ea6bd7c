"""The contract classes that adapters are held to: kept by our own, and failed by what breaks them."""

import asyncio
from contextlib import closing

import numpy as np
import pytest

from ragstone import BaseEmbedder, BaseLLM, LLMReply
from ragstone.testing import EmbedderContract, FakeEmbedder, FakeLLM, LLMContract

REPLY = '{"answer": "yes"}'
BAD = [(0.2, 0.2), (1.5, -0.5), (True, False), ("1", "0"), (float("nan"), 1.0), (float("inf"), 0.0), (0, 0), (None, 1)]


def probable(request):
    if request.choices:
        return LLMReply("yes", 9, 1, {"yes": 0.9, "no": 0.1})
    return {"answer": "yes"}


class SyncLLM(BaseLLM):
    model = "sync"

    def generate(self, request, /):
        return LLMReply(REPLY)


class AsyncLLM(BaseLLM):
    model = "async"

    async def agenerate(self, request, /):
        await asyncio.sleep(0)
        return LLMReply(REPLY, 1, 1)


class SyncEmbedder(BaseEmbedder):
    model = "sync"

    def __init__(self, rows=None):
        self.rows = rows or FakeEmbedder().embed

    def embed(self, texts, /):
        return self.rows(texts)


class AsyncEmbedder(BaseEmbedder):
    model = "async"

    async def aembed(self, texts, /):
        return FakeEmbedder().embed(texts)


class TestFakeLLM(LLMContract):
    def llm(self):
        return FakeLLM(probable)


def test_one_half_is_enough_to_keep_the_contracts():
    assert [breaches(llm_contract(llm)) for llm in (SyncLLM(), AsyncLLM())] == [[], []]
    embedders = SyncEmbedder(), AsyncEmbedder(), FakeEmbedder()
    assert [breaches(embedder_contract(embedder)) for embedder in embedders] == [[], [], []]


def breaches(contract):
    """The names of the contract's tests that fail."""
    failed = []
    for name in dir(contract):
        if name.startswith("test_"):
            try:
                getattr(contract, name)()
            except Exception:
                failed.append(name)
    return failed


def llm_contract(llm):
    contract = LLMContract()
    contract.llm = lambda: llm
    return contract


def embedder_contract(embedder):
    contract = EmbedderContract()
    contract.embedder = lambda: embedder
    return contract


class OwnLoop(SyncLLM):
    """The beginner's bridge: fails within a running loop."""

    def generate(self, request, /):
        with closing(asyncio.sleep(0, LLMReply(REPLY))) as later:
            return asyncio.run(later)


def replying(reply):
    return type("Replying", (SyncLLM,), {"generate": lambda self, request, /: reply})()


@pytest.mark.parametrize(
    ("breach", "broken"),
    {
        "test_it_is_an_llm": [
            type("NoName", (SyncLLM,), {"model": ""})(),
            type("OddAsking", (SyncLLM,), {"asking": "nicely"})(),
            type("OddProbabilities", (SyncLLM,), {"gives_probabilities": "mostly"})(),
        ],
        "test_both_halves_answer": [replying(REPLY), replying(LLMReply(REPLY, -1, 1)), OwnLoop()],
        "test_probabilities_are_those_of_the_choices": [
            replying(LLMReply("yes", probabilities={"yes": 0.9, "maybe": 0.1})),
            replying(LLMReply("yes", probabilities={"yes": 0.9, "no": 0.9})),
            *(replying(LLMReply("yes", probabilities={"yes": yes, "no": no})) for yes, no in BAD),
            FakeLLM(lambda request: "yes", gives_probabilities=True),
        ],
        "test_it_changes_no_request": [FakeLLM(lambda request: request.schema.update(title="mine") or REPLY)],
    }.items(),
    ids=range(4),
)
def test_an_llm_that_breaks_the_contract_fails_it(breach, broken):
    assert all(breach in breaches(llm_contract(llm)) for llm in broken)


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
    assert breaches(embedder_contract(SyncEmbedder(rows))) == ["test_one_row_per_text_in_order"]
