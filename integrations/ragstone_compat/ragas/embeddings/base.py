"""Embedders, where ragas has them too."""

from ragstone_compat.ragas.embeddings import (
    BaseRagasEmbeddings,
    HuggingfaceEmbeddings,
    LangchainEmbeddingsWrapper,
    LlamaIndexEmbeddingsWrapper,
    embedding_factory,
)

__all__ = [
    "BaseRagasEmbeddings",
    "HuggingfaceEmbeddings",
    "LangchainEmbeddingsWrapper",
    "LlamaIndexEmbeddingsWrapper",
    "embedding_factory",
]
