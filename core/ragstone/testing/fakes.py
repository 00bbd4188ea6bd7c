"""Judges that say what a function says, and an embedder that places texts by their hash."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragstone.judge import Asking, DecisionReply, DecisionRequest, LLMReply, LLMRequest, Question

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
        self.model = self.identity = model
        self.asking: Asking = asking
        self.gives_probabilities = gives_probabilities
        self.requests: list[LLMRequest] = []

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


Decision = float | str | dict[str, float] | None | Exception


class FakeDecisions:
    """A decision model whose answers come from a function; everything around it is real.

    Args:
        answer: Called with each question and the texts that it is about. It returns the probability of the first
            choice (the others share the rest), a choice, the probabilities of all, None for a refusal of this
            question, or an exception that is raised.
        model: Its name.
        most_questions: How many questions a request may have.

    Attributes:
        requests: Every request so far, in order of arrival.

    Example:
        >>> fake = FakeDecisions(lambda question, texts: 0.75)
        >>> request = DecisionRequest("demo", {}, {"1": Question("Is it?", ("yes", "no"))})
        >>> fake.decide(request).probabilities
        {'1': {'yes': 0.75, 'no': 0.25}}
    """

    def __init__(
        self,
        answer: Callable[[Question, Mapping[str, str]], Decision],
        *,
        model: str = "fake-decisions",
        most_questions: int = 400,
    ) -> None:
        self._answer = answer
        self.model = self.identity = model
        self.most_questions = most_questions
        self.requests: list[DecisionRequest] = []

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer as the function says."""
        self.requests.append(request)
        found: dict[str, Mapping[str, float] | None] = {}
        for name, question in request.questions.items():
            answer = self._answer(question, request.texts)
            if isinstance(answer, Exception):
                raise answer
            found[name] = _probabilities(answer, question.choices)
        return DecisionReply(found)

    async def adecide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer as the function says."""
        return self.decide(request)


def _probabilities(answer: float | str | dict[str, float] | None, choices: Sequence[str]) -> Mapping[str, float] | None:
    if answer is None or isinstance(answer, dict):
        return answer
    if isinstance(answer, str):
        return {choice: float(choice == answer) for choice in choices}
    first, *others = choices
    return {first: answer, **dict.fromkeys(others, (1 - answer) / len(others))}


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
        self.model = self.identity = f"fake-{dim}"
        self.dim = dim
        self.calls: list[tuple[str, ...]] = []

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
