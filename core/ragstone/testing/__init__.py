"""For your tests: fakes for the judge's words, the contract that every LLM and Embedder keeps, scores asserted."""

from ragstone.testing.assertions import assert_score
from ragstone.testing.contracts import EmbedderContract, LLMContract
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, Reply

__all__ = ["EmbedderContract", "FakeEmbedder", "FakeLLM", "LLMContract", "Reply", "assert_score"]
