"""Judges that say what they are given to say, and an embedder that places texts by their hash."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from ragstone.judge import Asking, DecisionReply, DecisionRequest, LLMReply, LLMRequest, Question

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Reply = str | dict[str, Any] | list[Any] | LLMReply | Exception


class FakeLLM:
    """A judge whose replies are given; everything around it is real.

    Args:
        reply: The reply to every request, or a function, async or not, that gives the reply to each. A dict or list is
            sent as JSON, a str or `LLMReply` unchanged, an exception is raised.
        model: Its name.
        asking: The `asking` that it declares.
        gives_probabilities: Whether it declares probabilities in its replies.

    Attributes:
        requests: Every request so far, in order of arrival.

    Example:
        >>> fake = FakeLLM({"ids": [1]})
        >>> fake.generate(LLMRequest("demo", "", "", {})).text
        '{"ids": [1]}'
        >>> len(fake.requests)
        1
        >>> echo = FakeLLM(lambda request: request.user)
        >>> echo.generate(LLMRequest("demo", "", "Is it?", {})).text
        'Is it?'
    """

    def __init__(
        self,
        reply: Reply | Callable[[LLMRequest], Reply | Awaitable[Reply]],
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
        """Give the reply; an async function runs on ragstone's background loop."""
        reply = self._reply_to(request)
        if isawaitable(reply):
            from ragstone.background import begin, result

            reply = result(begin(_awaited(reply)))
        return _sent(reply)

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Give the reply."""
        reply = self._reply_to(request)
        return _sent(await reply if isawaitable(reply) else reply)

    def _reply_to(self, request: LLMRequest) -> Reply | Awaitable[Reply]:
        # Before the reply, which may never come.
        self.requests.append(request)
        return self._reply(request) if callable(self._reply) else self._reply


async def _awaited(reply: Awaitable[Reply]) -> Reply:
    return await reply


def _sent(reply: Reply) -> LLMReply:
    if isinstance(reply, Exception):
        raise reply
    if isinstance(reply, LLMReply):
        return reply
    return LLMReply(reply if isinstance(reply, str) else json.dumps(reply))


def by_step(**replies: Reply | Callable[[LLMRequest], Reply]) -> Callable[[LLMRequest], Reply]:
    """For `FakeLLM`: a reply for each step of a metric, which is what stands behind the metric's name in a task.

    Args:
        replies: By step, the reply to each of its requests, or a function that gives the reply to each.

    Returns:
        A function that gives a judge's replies. It raises KeyError for a step that has none.

    Example:
        >>> from ragstone import ResponseCompleteness, Sample
        >>> judge = FakeLLM(by_step(parts={"parts": ["Who?", "When?"]}, answered={"answers": {"1": "yes", "2": "no"}}))
        >>> ResponseCompleteness(llm=judge).score(Sample(user_input="Who, and when?", response="Ann.")).value
        0.5
    """

    def reply(request: LLMRequest) -> Reply:
        step = request.task.partition(".")[2]
        if step not in replies:
            raise KeyError(f"by_step: has no reply for {request.task}; it has {', '.join(replies) or 'none'}")
        found = replies[step]
        return found(request) if callable(found) else found

    return reply


Decision = float | str | dict[str, float] | None | Exception


class FakeDecisions:
    """A decision model whose answers are given; everything around it is real.

    Args:
        answer: The answer to every question, or a function that gets each with the texts that it is about: the
            probability of the first choice (the others share the rest), a choice, the probabilities of all, None for
            a refusal of this question, or an exception that is raised.
        model: Its name.
        most_questions: How many questions a request may have.

    Attributes:
        requests: Every request so far, in order of arrival.

    Example:
        >>> fake = FakeDecisions(0.75)
        >>> request = DecisionRequest("demo", {}, {"1": Question("Is it?", ("yes", "no"))})
        >>> fake.decide(request).probabilities
        {'1': {'yes': 0.75, 'no': 0.25}}
    """

    def __init__(
        self,
        answer: Decision | Callable[[Question, Mapping[str, str]], Decision],
        *,
        model: str = "fake-decisions",
        most_questions: int = 400,
    ) -> None:
        self._answer = answer
        self.model = self.identity = model
        self.most_questions = most_questions
        self.requests: list[DecisionRequest] = []

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Give the answers."""
        self.requests.append(request)
        found: dict[str, Mapping[str, float] | None] = {}
        for name, question in request.questions.items():
            answer = self._answer(question, request.texts) if callable(self._answer) else self._answer
            if isinstance(answer, Exception):
                raise answer
            found[name] = _probabilities(answer, question.choices)
        return DecisionReply(found)

    async def adecide(self, request: DecisionRequest, /) -> DecisionReply:
        """Give the answers."""
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
        vectors: Gives what a call with these texts returns, where a test chooses the vectors: an array, a row a text.

    Attributes:
        calls: The texts of every call so far.

    Example:
        >>> vectors = FakeEmbedder(dim=4).embed(["a", "b", "a"])
        >>> vectors.shape, bool((vectors[0] == vectors[2]).all())
        ((3, 4), True)
        >>> import numpy as np
        >>> alike = FakeEmbedder(vectors=lambda texts: np.ones((len(texts), 2), dtype=np.float32))
        >>> alike.embed(["a", "b"]).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(
        self, dim: int = 8, *, vectors: "Callable[[Sequence[str]], NDArray[np.float32]] | None" = None
    ) -> None:
        self.model = self.identity = f"fake-{dim}" if vectors is None else "fake-vectors"
        self.dim = dim
        self._vectors = vectors
        self.calls: list[tuple[str, ...]] = []

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place the texts."""
        self.calls.append(tuple(texts))
        if self._vectors is not None:
            return self._vectors(texts)
        import numpy as np

        rows = np.zeros((len(texts), self.dim), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            stream = hashlib.shake_128(text.encode(errors="surrogatepass")).digest(2 * self.dim)
            # No number is exactly 0.
            row[:] = np.frombuffer(stream, dtype="<u2").astype(np.float64) - 32767.5
            row /= np.sqrt((row * row).sum())
        return rows.astype(np.float32)

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place the texts."""
        return self.embed(texts)
