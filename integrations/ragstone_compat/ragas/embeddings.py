"""Embedders by ragas' names."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ragstone.clients import OpenAICompatible
from ragstone.judge import BaseEmbedder
from ragstone_compat.ragas.llms import of_client
from ragstone_compat.shared import check_names

_MODEL = "text-embedding-3-small"
_OF_A_MODEL = ("batch_size", "cache", "dimensions", "encoding_format", "interface", "timeout", "user")


class BaseRagasEmbeddings(BaseEmbedder):
    """An embedder of your own: a subclass with `embed_documents`, or with `embed_text` as since ragas 0.4."""

    model = "own"
    embed_text: Any

    def embed(self, texts: Sequence[str], /) -> Any:  # noqa: ANN401 - an array, or lists
        """Return a vector for each text."""
        return self.embed_documents(list(texts))

    def embed_documents(self, texts: list[str]) -> Any:  # noqa: ANN401
        """Return a vector for each text."""
        return [self.embed_text(text) for text in texts]


BaseRagasEmbedding = BaseRagasEmbeddings


class LangchainEmbeddingsWrapper(BaseRagasEmbeddings):
    """An embedder of LangChain or LlamaIndex; ragas' other arguments have no effect."""

    def __init__(self, embeddings: object, *_: object, **others: object) -> None:
        check_names(type(self).__name__, others, ("cache", "run_config"))
        self.wrapped = embeddings


LlamaIndexEmbeddingsWrapper = LangchainEmbeddingsWrapper


class HuggingFaceEmbeddings(BaseEmbedder):
    """A model of the package `sentence_transformers`, by its name; other arguments have no effect."""

    def __init__(self, model: str = "", *, model_name: str = "BAAI/bge-small-en-v1.5", **_: object) -> None:
        self.model = model or model_name
        self._transformer: Any = import_module("sentence_transformers").SentenceTransformer(self.model)

    def embed(self, texts: Sequence[str], /) -> Any:  # noqa: ANN401 - an array, of a package without types
        """Return a vector for each text."""
        return self._transformer.encode(list(texts))


HuggingfaceEmbeddings = HuggingFaceEmbeddings


def OpenAIEmbeddings(  # noqa: N802
    client: object = None,
    model: str = _MODEL,
    cache: object = None,  # noqa: ARG001 - as ragas has it
) -> OpenAICompatible:
    """Return an embedder at the server of a client of the package `openai`."""
    return of_client(model, client)


def embedding_factory(
    provider: str = "openai",
    model: str | None = None,
    run_config: object = None,  # noqa: ARG001
    client: object = None,
    base_url: str | None = None,
    **options: object,
) -> OpenAICompatible | HuggingFaceEmbeddings:
    """Return an embedder.

    Args:
        provider: "openai", "huggingface", or the name of a model of OpenAI, as before ragas 0.4.
        model: The model's name.
        run_config: Without effect.
        client: A client of the package `openai`.
        base_url: The address of another server.
        **options: Without effect.

    Raises:
        TypeError: The client is another package's, or there is no such option.
    """
    if provider == "huggingface":
        return HuggingFaceEmbeddings(model or "")
    check_names("embedding_factory", options, _OF_A_MODEL)
    if provider == "openai" or model is not None:
        return of_client(model or _MODEL, client if provider == "openai" else client or provider, base_url)
    return of_client(provider, client, base_url)
