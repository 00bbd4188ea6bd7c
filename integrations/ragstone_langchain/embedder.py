"""`LangChainEmbedder`: any LangChain embeddings as an embedder."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.errors import secrets_in
from ragstone.judge import BaseEmbedder
from ragstone_langchain.calling import Calling, check_timeout, identity_settings, model_name

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.embeddings import Embeddings
    from numpy.typing import NDArray


class LangChainEmbedder(BaseEmbedder):
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

    def __init__(self, embeddings: "Embeddings", *, timeout: float | None = None, name: str | None = None) -> None:
        if isinstance(embeddings, type) or not callable(getattr(embeddings, "embed_documents", None)):
            what = embeddings if isinstance(embeddings, type) else type(embeddings)
            raise TypeError(
                f"embeddings: {what.__name__} has no embed_documents to call; pass LangChain embeddings "
                "(init_embeddings makes them)"
            )
        check_timeout(timeout)
        self.model = name or model_name(embeddings)
        self._embeddings = embeddings
        self._calling = Calling(self.model, self._bridge, timeout=timeout, trace=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._embeddings)

    @property
    def identity(self) -> dict[str, object]:
        """What makes this embedder, for journals: the object's settings, without keys."""
        return {"class": type(self).__qualname__, "model": self.model, **identity_settings(self._embeddings)}

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), blocking; raise what the embeddings raise."""
        documents = list(texts)
        return _rows(
            self._calling.call(
                lambda: self._embeddings.embed_documents(documents),
                lambda: self._embeddings.aembed_documents(documents),
            )
        )

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), on the running event loop; otherwise as `embed`."""
        documents = list(texts)
        return _rows(
            await self._calling.acall(
                lambda: self._embeddings.embed_documents(documents),
                lambda: self._embeddings.aembed_documents(documents),
            )
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


def _rows(vectors: list[list[float]]) -> "NDArray[np.float32]":
    import numpy as np

    return np.asarray(vectors, dtype=np.float32)
