"""`LlamaIndexEmbedder`: any LlamaIndex embedding model as an embedder."""

from collections.abc import Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray

from ragstone_llama_index.shared_model import SharedModel, defined_by


class LlamaIndexEmbedder(SharedModel[BaseEmbedding]):
    """A LlamaIndex embedding model as an embedder.

    All texts of a call are embedded as texts, none as a query, in one `get_text_embedding_batch`. The object is never
    changed, the app sees nothing of the calls, and its embeddings cache gets nothing from them.

    Args:
        embed_model: The model; None: `Settings.embed_model`, as it is when a call is made.
        in_threads: As for `LlamaIndexLLM`.
        trace: As for `LlamaIndexLLM`.

    Raises:
        TypeError: `embed_model` is no LlamaIndex embedding model.
        ValueError: From calls: none was given and `Settings` has none.

    Example:
        >>> from llama_index.core import MockEmbedding
        >>> LlamaIndexEmbedder(MockEmbedding(embed_dim=4)).embed(["One.", "Two."]).shape
        (2, 4)
    """

    _setting = "embed_model"
    _kind = BaseEmbedding
    _wanted = "embedding model; pass a BaseEmbedding, such as one of a llama-index-embeddings-... package"
    _apps_own = ("embeddings_cache",)

    def __init__(
        self, embed_model: BaseEmbedding | None = None, *, in_threads: bool | None = None, trace: bool = False
    ) -> None:
        super().__init__(embed_model, in_threads=in_threads, trace=trace)

    def _name_of(self, model: BaseEmbedding) -> str:
        return model.model_name

    def _only_calls_sync(self, model: BaseEmbedding) -> bool:
        names = ("_aget_text_embedding", "_aget_text_embeddings")
        return all(defined_by(model, name) is BaseEmbedding for name in names)

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one row per text, shape (len(texts), dim), blocking the calling thread.

        Raises:
            Exception: Whatever the model raises; `ValueError` when its vectors differ in length.
        """
        with self._hidden() as model:
            return _rows(model.get_text_embedding_batch(list(texts)))

    async def aembed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one row per text, on the running event loop or from a thread; otherwise as `embed`."""
        if not self._is_awaited_here():
            return await self._in_thread(lambda: self.embed(texts))
        with self._hidden() as model:
            return _rows(await model.aget_text_embedding_batch(list(texts)))


def _rows(vectors: Sequence[Sequence[float]]) -> NDArray[np.float32]:
    return np.asarray(vectors, dtype=np.float32) if vectors else np.zeros((0, 0), dtype=np.float32)
