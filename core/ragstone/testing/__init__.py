"""For your tests: fakes for the judge's words, the contract of every LLM and Embedder, assertions of scores."""

from ragstone.testing.assertions import assert_not_worse, assert_score
from ragstone.testing.contracts import EmbedderContract, LLMContract
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, Reply

__all__ = ["EmbedderContract", "FakeEmbedder", "FakeLLM", "LLMContract", "Reply", "assert_not_worse", "assert_score"]
