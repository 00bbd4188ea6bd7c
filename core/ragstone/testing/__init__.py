"""Fakes for the judge's words, and the contract that every LLM and Embedder keeps. For your tests too."""

from ragstone.testing.contracts import EmbedderContract, LLMContract
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, Reply

__all__ = ["EmbedderContract", "FakeEmbedder", "FakeLLM", "LLMContract", "Reply"]
