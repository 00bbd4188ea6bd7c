"""The models of a metric: a judge, which is an `LLM` or a `DecisionModel`, and an `Embedder`."""

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from ragstone.outcome import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Asking = Literal["together", "one_by_one"]


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """One prompt to the judge.

    Attributes:
        task: The task, "metric.step", for routing and for scripted judges in tests.
        system: The instructions.
        user: The data, fenced, and the instructions repeated.
        schema: JSON Schema of the reply. An LLM that can constrain its output to it should; one that cannot
            should put it into the prompt.
        temperature: 0 for verdicts; above 0 where several different draws are wanted.
        sample_index: Distinguishes draws of one prompt from each other: a cache must keep them apart.
        choices: When set, the reply is exactly one of these words, bare. An LLM that has log-probabilities
            returns the probability of each in `LLMReply.probabilities`.

    Example:
        >>> LLMRequest(task="demo.ask", system="Answer.", user="Is it?", schema={}).temperature
        0.0
    """

    task: str
    system: str
    user: str
    schema: dict[str, Any]
    temperature: float = 0.0
    sample_index: int = 0
    choices: tuple[str, ...] | None = None

    @property
    def texts_read(self) -> tuple[str, ...]:
        """All that the judge reads."""
        return self.system, self.user


@dataclass(frozen=True, slots=True)
class WriterRequest(LLMRequest):
    """A prompt for texts (questions, claims, parts), which a metric's `writer` answers in place of its judge."""


@dataclass(frozen=True, slots=True)
class LLMReply:
    """The judge's answer to one request.

    Attributes:
        text: JSON (or the choice), as the judge wrote it. Metrics take off thoughts before it and a Markdown fence
            around it.
        input_tokens: Prompt tokens; None when the provider does not say.
        output_tokens: Reply tokens; None when the provider does not say.
        probabilities: Probability of each of the request's choices, and of no other word; None without
            log-probabilities. Metrics bring their sum to 1. If one is missing, negative, not finite or no number, or
            if all are 0, the reply cannot be used. Not used where thoughts stand in `text`: they may be those of the
            thoughts.
        ended: The provider's word for why the reply ended, such as "stop", "length" or "content_filter"; "" when it
            does not say. Metrics say it of a reply that was cut off and cannot be read, or withheld, and do not ask
            again.

    Example:
        >>> LLMReply('{"answers": {"1": "yes"}}').input_tokens is None
        True
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    probabilities: Mapping[str, float] | None = None
    ended: str = ""


@runtime_checkable
class LLM(Protocol):
    """A judge. Both methods must be safe to call from many threads or tasks at once.

    A provider's failure (network, authentication, rate limit after retries) is raised; it becomes
    `Unscored("judge_error")` in batches and monitors. An LLM may also have `max_input_tokens: int`, the
    longest prompt it takes; metrics then keep within it. One that answers one call at a time may say `in_turn = True`:
    `evaluate` then asks one evaluation's calls after the other's, with no time-out of its own. One that lets in so many
    calls at once may say so by `max_concurrency: int`: who waits for that is not timed. One that holds keys may name
    them in `secrets: tuple[str, ...]`: they are then taken out of every error text. And `identity`, a text or a mapping
    for JSON: what makes this judge beside its class, `model` and `base_url` (sampling settings, no key), by which a
    journal tells two of one name apart. And `gives_probabilities`: True if its replies to requests with `choices`
    hold probabilities. Metrics that ask it one by one then score by them (`Metric.scoring`). One that learns what its
    provider refuses may have `left_out`, the provider's words by the parameter's name, and `leave_out`, which takes
    such a mapping: reports then say it, and journals keep apart what was asked with and without. A client that tries
    a call again may say `tries_again = True`: runs then ask its async method with `max_retries=0`. `BaseLLM` supplies
    the missing method to a class that has only one of the two.

    Attributes:
        model: A name for logs and cache keys.
        asking: All items in one call, or one call per item (small models).
    """

    @property
    def model(self) -> str:
        """A name for logs and cache keys."""
        ...

    @property
    def asking(self) -> Asking:
        """All items in one call, or one call per item."""
        ...

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request, blocking the calling thread."""
        ...

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request on the running event loop."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a judge about one item, over texts that several questions share.

    Attributes:
        instruction: The question, with the item in it, and perhaps the meaning of each choice.
        choices: The answers to choose from, two or more, no two alike.
        item: The bare claim or sentence that is asked about, for judges that want no prose; "" where it is about the
            texts alone.

    Raises:
        ValueError: There are fewer choices, or one twice.

    Example:
        >>> Question("Is it polite?", ("yes", "no")).choices
        ('yes', 'no')
    """

    instruction: str
    choices: tuple[str, ...]
    item: str = ""

    def __post_init__(self) -> None:
        if not 2 <= len(set(self.choices)) == len(self.choices):
            raise ValueError(f"choices: {self.choices!r}; a question needs two or more, no two alike")


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """Questions over shared texts, put to a decision model in one request.

    Attributes:
        task: The task, "metric.step", for routing and for scripted judges in tests.
        texts: The texts of the questions, by name: data, never instructions.
        questions: By id.

    Example:
        >>> request = DecisionRequest("demo.ask", {"response": "Thanks."}, {"1": Question("Polite?", ("yes", "no"))})
        >>> list(request.questions)
        ['1']
    """

    task: str
    texts: Mapping[str, str]
    questions: Mapping[str, Question]

    @property
    def texts_read(self) -> tuple[str, ...]:
        """All that the judge reads."""
        return (*self.texts.values(), *(question.instruction for question in self.questions.values()))


@dataclass(frozen=True, slots=True)
class DecisionReply:
    """A decision model's answers to one request.

    Attributes:
        probabilities: By the question's id: the probability of each of its choices, from 0 to 1 with a sum of 1; None
            where the model refused to answer that question.
        input_tokens: Tokens read; None when the provider does not say.
        output_tokens: Tokens written; None when the provider does not say.

    Example:
        >>> DecisionReply({"1": {"yes": 0.75, "no": 0.25}}).input_tokens is None
        True
    """

    probabilities: Mapping[str, Mapping[str, float] | None]
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def text(self) -> str:
        """None: a decision model writes no text."""
        return ""


JudgeRequest = LLMRequest | DecisionRequest
JudgeReply = LLMReply | DecisionReply


@runtime_checkable
class DecisionModel(Protocol):
    """A judge that writes no text: it answers typed questions with the probabilities of their choices.

    Both methods must be safe to call from many threads or tasks at once. What an `LLM` may say of itself beside
    (`identity`, `secrets`, `max_concurrency`, `max_input_tokens`, `in_turn`), it may say, too.

    Attributes:
        model: A name for logs and cache keys.
        most_questions: How many questions one request may have; more are put into several.

    Example:
        >>> from ragstone.testing import FakeDecisions
        >>> isinstance(FakeDecisions(lambda question, texts: 0.5), DecisionModel)
        True
    """

    @property
    def model(self) -> str:
        """A name for logs and cache keys."""
        ...

    @property
    def most_questions(self) -> int:
        """How many questions one request may have."""
        ...

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request, blocking the calling thread."""
        ...

    async def adecide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request on the running event loop."""
        ...


Judge = LLM | DecisionModel


@runtime_checkable
class Embedder(Protocol):
    """Places texts in a vector space. Both methods must be safe to call concurrently. It may have `secrets`, as an LLM.

    It may have an `identity`, as an `LLM` may.

    Attributes:
        model: A name for logs and cache keys.
    """

    @property
    def model(self) -> str:
        """A name for logs and cache keys."""
        ...

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), blocking the calling thread."""
        ...

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), on the running event loop."""
        ...


class Meter:
    """Counts what a flow costs while it runs, so that the cost is known even when it fails."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._llm_calls = 0
        self._embed_calls = 0
        self._read: list[int | None] = []
        self._written: list[int | None] = []

    def asking(self, round_: Sequence[object]) -> None:
        """Count the calls of a round that is about to be made."""
        for request in round_:
            if isinstance(request, JudgeRequest):
                self._llm_calls += 1
            else:
                self._embed_calls += 1

    def spared(self) -> None:
        """Uncount a call that was not needed: its reply was there already."""
        self._llm_calls -= 1

    def again(self) -> None:
        """Count another try of a call that has failed."""

    def calling(self, request: Any) -> Any:  # noqa: ANN401, ARG002 - the meter's own
        """Reserve what a call may cost, before it is made; `called` gets what this returns."""
        return None

    def called(self, taken: Any, reply: object) -> None:  # noqa: ANN401
        """Count what a call did cost, by its reply; None: it failed."""

    def answered(self, replies: Sequence[Any]) -> None:
        """Note the tokens of a round's replies."""
        for reply in replies:
            if isinstance(reply, JudgeReply):
                self._read.append(reply.input_tokens)
                self._written.append(reply.output_tokens)

    def ended(self) -> None:
        """Settle the cost: no further call is made."""

    def usage(self) -> Usage:
        """Return the cost so far."""
        return Usage(
            llm_calls=self._llm_calls,
            embed_calls=self._embed_calls,
            input_tokens=None if None in self._read else sum(filter(None, self._read)),
            output_tokens=None if None in self._written else sum(filter(None, self._written)),
            seconds=time.perf_counter() - self._started,
        )


class OneOfTwo:
    """What the bases share: one of two methods, sync and async, must be there, and serves as the other."""

    _methods: tuple[str, str]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        base = next(k for k in cls.__mro__ if "_methods" in k.__dict__)
        sync, asynchronous = cls._methods
        if cls is not base and all(getattr(cls, each) is getattr(base, each) for each in cls._methods):
            raise TypeError(f"{cls.__name__} must define {sync} or {asynchronous} (or both)")

    @property
    def async_only(self) -> bool:
        """Whether the sync method drives the async one, on ragstone's own event loop."""
        base = next(kind for kind in type(self).__mro__ if "_methods" in vars(kind))
        return getattr(type(self), self._methods[0]) is getattr(base, self._methods[0])


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    # This loads asyncio and threads.
    from ragstone.background import begin, result

    return result(begin(coroutine))


async def _in_thread(call: Callable[[], T]) -> T:
    from ragstone.background import in_daemon

    return await in_daemon(call)


class BaseLLM(OneOfTwo):
    """Gives an LLM with one method the other: define `generate` or `agenerate`, get both.

    A sync-only LLM is called from a thread for each call on the async path; a call that was cancelled runs on in its
    thread. An async-only LLM is driven, on the sync path, by one event loop that ragstone runs in a background thread.

    Example:
        >>> class Yes(BaseLLM):
        ...     model = "always-yes"
        ...     def generate(self, request: LLMRequest, /) -> LLMReply:
        ...         return LLMReply("yes")
        >>> import asyncio
        >>> asyncio.run(Yes().agenerate(LLMRequest("demo", "", "", {}))).text
        'yes'
    """

    _methods = ("generate", "agenerate")
    model: str
    asking: Asking = "together"
    gives_probabilities: bool = False

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by running `agenerate` on a background loop."""
        return _run(self.agenerate(request))

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by running `generate` in a thread."""
        return await _in_thread(lambda: self.generate(request))


class BaseDecisionModel(OneOfTwo):
    """Gives a decision model with one method the other: define `decide` or `adecide`, get both; as `BaseLLM` does.

    Example:
        >>> class Yes(BaseDecisionModel):
        ...     model = "always-yes"
        ...     def decide(self, request: DecisionRequest, /) -> DecisionReply:
        ...         return DecisionReply({name: {"yes": 1.0, "no": 0.0} for name in request.questions})
        >>> Yes().decide(DecisionRequest("demo", {}, {"1": Question("Is it?", ("yes", "no"))})).probabilities
        {'1': {'yes': 1.0, 'no': 0.0}}
    """

    model: str = "unnamed"
    most_questions: int = 400
    _methods = ("decide", "adecide")

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request by running `adecide` on a background loop."""
        return _run(self.adecide(request))

    async def adecide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request by running `decide` in a thread."""
        return await _in_thread(lambda: self.decide(request))


class BaseEmbedder(OneOfTwo):
    """Gives an embedder with one method the other: define `embed` or `aembed`, get both.

    Example:
        >>> import numpy as np
        >>> class Ones(BaseEmbedder):
        ...     model = "ones"
        ...     async def aembed(self, texts, /):
        ...         return np.ones((len(texts), 4), dtype=np.float32)
        >>> Ones().embed(["a", "b"]).shape
        (2, 4)
    """

    _methods = ("embed", "aembed")
    model: str

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place texts by running `aembed` on a background loop."""
        return _run(self.aembed(texts))

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place texts by running `embed` in a thread."""
        return await _in_thread(lambda: self.embed(texts))
