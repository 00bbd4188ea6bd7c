"""Claim checkers, and their adapter: a decision model that answers whether a text supports a question's item."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from numbers import Real
from typing import Any, Protocol, cast, runtime_checkable

from ragstone.background import begin, in_daemon, result
from ragstone.judge import DecisionReply, DecisionRequest, OneOfTwo
from ragstone.judging.flow import Flow
from ragstone.judging.prompt import tokens
from ragstone.judging.reply import Answer
from ragstone.options import Count, checked
from ragstone.text import language_of, split_sentences

_MOST_TOKENS = 400
_SAID_OF_ITSELF = frozenset(
    {"base_url", "in_turn", "leave_out", "left_out", "left_out_once", "max_concurrency", "secrets", "tries_again"}
)


@runtime_checkable
class ClaimChecker(Protocol):
    """A model that says how probable it is that a text supports a claim, and answers no other question.

    It can judge Faithfulness, ContextRecall, CitationSupport and FactualCorrectness, as whose `llm` it is given. Both
    methods must be safe to call from many threads or tasks at once. What an `LLM` may say of itself beside (`identity`,
    `secrets`, `max_concurrency`, `in_turn`), it may say, too; a model in this process best says `in_turn = True`. It
    may also have `most_tokens`, 400 where it does not say: of a longer text, it gets overlapping windows of so many
    tokens by `ragstone.judging.tokens`, and the highest probability counts.

    Attributes:
        model: A name for logs and cache keys.
        most_claims: How many claims one call may have; more are put into several.

    Example:
        >>> from ragstone.testing import FakeChecker
        >>> isinstance(FakeChecker(0.5), ClaimChecker)
        True
    """

    @property
    def model(self) -> str:
        """A name for logs and cache keys."""
        ...

    @property
    def most_claims(self) -> int:
        """How many claims one call may have."""
        ...

    def check(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        """Return for each claim the probability that the text supports it, blocking the calling thread."""
        ...

    async def acheck(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        """Return for each claim the probability that the text supports it, on the running event loop."""
        ...


class BaseClaimChecker(OneOfTwo):
    """Gives a claim checker with one method the other: define `check` or `acheck`, get both; as `BaseLLM` does.

    Example:
        >>> class Verbatim(BaseClaimChecker):
        ...     model = "verbatim"
        ...     def check(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        ...         return [float(claim in text) for claim in claims]
        >>> import asyncio
        >>> asyncio.run(Verbatim().acheck("Ann ran.", ["Ann ran.", "Bob sat."]))
        [1.0, 0.0]
    """

    model: str = "unnamed"
    most_claims: int = 16
    _methods = ("check", "acheck")

    def check(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        """Check the claims by running `acheck` on a background loop."""
        return result(begin(self.acheck(text, claims)))

    async def acheck(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        """Check the claims by running `check` in a thread."""
        return await in_daemon(lambda: self.check(text, claims))


class ClaimJudge:
    """A claim checker as a decision model.

    A question is a claim where it has an item and two choices, the first of which says that the texts support it. Any
    other is refused. The texts of a request are joined, as in the data that claim checkers were trained on.

    Args:
        checker: The claim checker.

    Attributes:
        model: Its name.
        most_questions: The claims of one call.
        most_tokens: The longest text that it reads at once.
        identity: Its own, for journals, where it declares one.

    Raises:
        ValueError: Its `most_claims` or `most_tokens` is no count.
    """

    claims_only = True

    def __init__(self, checker: ClaimChecker) -> None:
        self.checker = checker
        self.model = checker.model
        self.most_questions: int = checked("most_claims", checker.most_claims, Count)
        self.most_tokens: int = checked("most_tokens", getattr(checker, "most_tokens", _MOST_TOKENS), Count)

    @property
    def identity(self) -> Mapping[str, object] | None:
        """Its class and its own identity; None where it declares none."""
        own: object = getattr(self.checker, "identity", None)
        return None if own is None else {"checker": type(self.checker).__qualname__, "identity": own}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is there
        if name not in _SAID_OF_ITSELF:
            raise AttributeError(name)
        return getattr(self.checker, name)

    def __repr__(self) -> str:
        own = self.model if type(self.checker).__repr__ is object.__repr__ else self.checker
        return f"{type(self).__name__}({own!r})"

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Check the claims of one request, blocking the calling thread."""
        text, claims = _text_and_claims(request)
        return self._reply(request, claims, self.checker.check(text, [*claims.values()]) if claims else ())

    async def adecide(self, request: DecisionRequest, /, **options: int) -> DecisionReply:
        """Check the claims of one request on the running event loop."""
        text, claims = _text_and_claims(request)
        given = await self.checker.acheck(text, [*claims.values()], **options) if claims else ()
        return self._reply(request, claims, given)

    def _reply(self, request: DecisionRequest, claims: Mapping[str, str], given: object) -> DecisionReply:
        kind = type(given).__name__
        # Arrays and tensors hold numbers of kinds of their own.
        given = getattr(given, "tolist", lambda: given)()
        if isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable):
            raise TypeError(f"{type(self.checker).__name__}: check and acheck must return probabilities, not {kind}")
        values = list(cast("Iterable[object]", given))
        names = [*claims, *(f"claim {n + 1}" for n in range(len(claims), len(values)))]
        answers: dict[str, Mapping[str, Any] | None] = dict.fromkeys(request.questions.keys() - claims.keys())
        for name, value in zip(names, values, strict=False):
            yes, no = request.questions[name].choices if name in claims else ("yes", "no")
            answers[name] = None if value is None else {yes: value, no: _rest(value)}
        return DecisionReply(answers)


def _text_and_claims(request: DecisionRequest) -> tuple[str, Mapping[str, str]]:
    """The text of a request, and the claims by their questions' names."""
    claims: dict[str, str] = {}
    for name, question in request.questions.items():
        if question.item and len(question.choices) == 2:
            claims[name] = question.item
    return "\n".join(request.texts.values()), claims


def _rest(value: object) -> object:
    """What is left of 1; of what is no number that itself, which the reader of answers names."""
    return 1 - value if isinstance(value, Real) else value


def ask_claim(request: DecisionRequest, most: int) -> Flow[Answer]:
    """Ask a request's one question of each window of its text; the highest probability of the first choice counts.

    The flow is one that `in_few_requests` runs, which puts the claims on one window together.
    """
    (question,) = request.questions.values()
    asked = [replace(request, texts={"text": text}) for text in windows("\n".join(request.texts.values()), most)]
    answers: Sequence[Answer] = yield tuple(asked)
    return max(answers, key=lambda answer: answer.probability(question.choices[0]) or 0.0)


# Each claim on a text asks for its windows.
@lru_cache(8)
def windows(text: str, most: int) -> tuple[str, ...]:
    """Cut a text at its sentences into overlapping windows of at most so many tokens, by `ragstone.judging.tokens`.

    A window begins with the sentence in which the last quarter of the one before it begins. A sentence that is longer
    than a window is cut, too.

    Example:
        >>> windows("Ann ran. Bob sat. Eve won. Kim lost.", 7)
        ('Ann ran. Bob sat. Eve won.', 'Eve won. Kim lost.')
    """
    text = text.strip()
    if tokens(text) <= most:
        return (text,)
    starts: list[int] = []
    for _, start, end in split_sentences(text, language_of(text)):
        starts += range(start, end, most)
    ends = [*starts[1:], len(text)]
    found: list[str] = []
    first = last = 0
    while True:
        while last + 1 < len(ends) and tokens(text[starts[first] : ends[last + 1]]) <= most:
            last += 1
        found.append(text[starts[first] : ends[last]].strip())
        if last + 1 == len(ends):
            return tuple(found)
        quarter = (ends[last] - starts[first]) // 4
        first = max(first + 1, bisect_right(starts, ends[last] - quarter) - 1)
        last = max(first, last)
