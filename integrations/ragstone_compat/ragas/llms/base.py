"""Judges, where ragas has them too."""

from ragstone_compat.ragas.llms import BaseRagasLLM, LangchainLLMWrapper, LlamaIndexLLMWrapper, llm_factory

__all__ = ["BaseRagasLLM", "LangchainLLMWrapper", "LlamaIndexLLMWrapper", "llm_factory"]
