"""Embedders by ragas' names."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ragstone.judge import BaseEmbedder, Embedder
from ragstone.judge_names import wrapped
from ragstone_compat.ragas.llms import of_client
from ragstone_compat.shared import check_names

_MODEL = "text-embedding-3-small"
_OF_A_MODEL = ("batch_size", "cache", "dimensions", "encoding_format", "interface", "timeout", "user")


class _Own(BaseEmbedder):
    model = "own"
    embed_text: Any

    def embed(self, texts: Sequence[str], /) -> Any:  # noqa: ANN401 - an array, or lists
        """Return a vector for each text."""
        return self.embed_documents(list(texts))

    def embed_documents(self, texts: list[str]) -> Any:  # noqa: ANN401
        """Return a vector for each text."""
        return [self.embed_text(text) for text in texts]


# Scripts combine both as bases.
class BaseRagasEmbeddings(_Own):
    """An embedder of your own: a subclass with `embed_documents`, or with `embed_text` as since ragas 0.4."""


class BaseRagasEmbedding(_Own):
    """An embedder of your own: likewise."""


RagasBaseEmbedding = BaseRagasEmbedding


class _OfClient(BaseEmbedder):
    def __init__(self, client: Any, model: str) -> None:  # noqa: ANN401 - of any package
        self.model = model
        self._client = client

    def embed(self, texts: Sequence[str], /) -> Any:  # noqa: ANN401 - lists
        """Return a vector for each text."""
        reply = self._client.embeddings.create(input=list(texts), model=self.model)
        return [each.embedding for each in reply.data]


class LangchainEmbeddingsWrapper(BaseRagasEmbeddings):
    """An embedder of LangChain or LlamaIndex; ragas' other arguments have no effect."""

    def __init__(self, embeddings: object, *_: object, **others: object) -> None:
        check_names(type(self).__name__, others, ("cache", "run_config"))
        self.embeddings = embeddings

    @property
    def wrapped(self) -> object:
        """The embedder; this one where the object is no framework's and only has `embed_documents`."""
        found = wrapped(self.embeddings, "embedder")
        is_own = found is self.embeddings and hasattr(found, "embed_documents") and not hasattr(found, "embed")
        return self if is_own else found

    def embed_documents(self, texts: list[str]) -> Any:  # noqa: ANN401
        """Return a vector for each text."""
        embeddings: Any = self.embeddings
        return embeddings.embed_documents(texts)


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
) -> Embedder:
    """Return an embedder at the server of a client of the package `openai`, or one of an object that looks like it."""
    return _of_client(model, client)


def embedding_factory(
    provider: str = "openai",
    model: str | None = None,
    run_config: object = None,  # noqa: ARG001
    client: object = None,
    base_url: str | None = None,
    **options: object,
) -> Embedder:
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
        return _of_client(model or _MODEL, client if provider == "openai" else client or provider, base_url)
    return _of_client(provider, client, base_url)


def _of_client(model: str, client: object, base_url: str | None = None) -> Embedder:
    if type(client).__module__.partition(".")[0] != "openai" and hasattr(client, "embeddings"):
        return _OfClient(client, model)
    return of_client(model, client, base_url, 'LangchainEmbeddingsWrapper(init_embeddings("PROVIDER:MODEL"))')
