"""`LangChainEmbedder`: any LangChain embeddings as an embedder."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from ragstone.judge import BaseEmbedder
from ragstone_langchain.shared_model import SharedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LangChainEmbedder(SharedModel[Embeddings], BaseEmbedder):
    """LangChain embeddings as an embedder.

    All texts of a call are documents (`embed_documents`, `aembed_documents`), in one call: models that put one
    prefix before queries and another before passages place the two in different regions, and questions are
    compared with questions here. The object is used as it is and never changed.

    Args:
        embeddings: What embeds.
        timeout: Seconds that one call may take; None: as long as the object's own time-out lets it. A sync one
            cannot be stopped: its thread runs on.
        name: For logs and cache keys; None: the object's own name for its model, else its class.

    Raises:
        TypeError: `embeddings` has no `embed_documents`.
        ValueError: `timeout` is out of range.
        TimeoutError: From `embed` and `aembed`, after `timeout`.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> LangChainEmbedder(DeterministicFakeEmbedding(size=4)).embed(["a", "b"]).shape
        (2, 4)
    """

    def __init__(self, embeddings: Embeddings, *, timeout: float | None = None, name: str | None = None) -> None:
        if isinstance(embeddings, type) or not callable(getattr(embeddings, "embed_documents", None)):
            what = embeddings if isinstance(embeddings, type) else type(embeddings)
            raise TypeError(
                f"embeddings: {what.__name__} has no embed_documents; pass LangChain embeddings (from init_embeddings)"
            )
        super().__init__(embeddings, name=name, timeout=timeout)

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), blocking; raise what the embeddings raise."""
        model, documents = self._shared, list(texts)
        calls = partial(model.embed_documents, documents), partial(model.aembed_documents, documents)
        return _rows(self._call(*calls))

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), on the running event loop; otherwise as `embed`."""
        model, documents = self._shared, list(texts)
        calls = partial(model.embed_documents, documents), partial(model.aembed_documents, documents)
        return _rows(await self._acall(*calls))


def _rows(vectors: list[list[float]]) -> "NDArray[np.float32]":
    import numpy as np

    return np.asarray(vectors, dtype=np.float32)
