"""A judge that says what a function says, and an embedder that places texts by their hash."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ragstone.judge import Asking, LLMReply, LLMRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Reply = str | dict[str, Any] | list[Any] | LLMReply | Exception


class FakeLLM:
    """A judge whose replies come from a function; everything around it is real.

    Args:
        reply: Called with each request. It returns the reply: a dict or list is sent as JSON, a str or `LLMReply`
            unchanged, an exception is raised.
        model: Its name.
        asking: The `asking` that it declares.
        gives_probabilities: Whether it declares probabilities in its replies.

    Attributes:
        requests: Every request so far, in order of arrival.

    Example:
        >>> fake = FakeLLM(lambda request: {"ids": [1]})
        >>> fake.generate(LLMRequest("demo", "", "", {})).text
        '{"ids": [1]}'
        >>> len(fake.requests)
        1
    """

    def __init__(
        self,
        reply: Callable[[LLMRequest], Reply],
        *,
        model: str = "fake",
        asking: Asking = "together",
        gives_probabilities: bool = False,
    ) -> None:
        self._reply = reply
        self.model = model
        self.asking: Asking = asking
        self.gives_probabilities = gives_probabilities
        self.requests: list[LLMRequest] = []

    @property
    def identity(self) -> str:
        """What makes this judge, for journals."""
        return self.model

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer as the function says."""
        self.requests.append(request)
        reply = self._reply(request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, LLMReply):
            return reply
        return LLMReply(reply if isinstance(reply, str) else json.dumps(reply))

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer as the function says."""
        return self.generate(request)


class FakeEmbedder:
    """Same text, same unit vector; different texts, directions that have nothing to do with each other.

    Args:
        dim: Length of the vectors.

    Attributes:
        calls: The texts of every call so far.

    Example:
        >>> vectors = FakeEmbedder(dim=4).embed(["a", "b", "a"])
        >>> vectors.shape, bool((vectors[0] == vectors[2]).all())
        ((3, 4), True)
    """

    def __init__(self, dim: int = 8) -> None:
        self.model = f"fake-{dim}"
        self.dim = dim
        self.calls: list[tuple[str, ...]] = []

    @property
    def identity(self) -> str:
        """What makes this embedder, for journals."""
        return self.model

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place each text by its hash."""
        import numpy as np

        self.calls.append(tuple(texts))
        rows = np.zeros((len(texts), self.dim), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            stream = hashlib.shake_128(text.encode(errors="surrogatepass")).digest(2 * self.dim)
            row[:] = np.frombuffer(stream, dtype="<u2").astype(np.float64) - 32767.5  # never exactly 0
            row /= np.sqrt((row * row).sum())
        return rows.astype(np.float32)

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place each text by its hash."""
        return self.embed(texts)
