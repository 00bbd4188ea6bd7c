"""ResponseRelevancy: whether the response answers the question that was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ragstone.asking.flow import CannotScore, Flow, ask, both, each, embed
from ragstone.asking.reply import Answer, BadReply, Reply, parse_reply
from ragstone.asking.schema import FLAG, TEXT, Schema, listing, record
from ragstone.judge import Embedder, LLMReply, LLMRequest
from ragstone.metrics.base import Metric
from ragstone.metrics.options import check_count, check_members, check_option
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NoncommittalRule = Literal["all", "any", "majority", "off"]

DRAW_TEMPERATURE = 0.7  # where N draws of one prompt are wanted to differ

_INSTRUCTIONS = (
    "You are given a response of a question-answering app, without the question. Write {what} that this response "
    "would fully answer, as its user would have asked, in the language of the response.{flag}"
)
_FLAG = (
    " Mark it noncommittal if the response evades, refuses or does not know instead of answering; a definite "
    "answer, also a negative one, is not."
)
_EVASIVE = (
    "You are given a response of a question-answering app. Decide whether it is noncommittal: whether it refuses, "
    "evades or says that it does not know, instead of giving information or help."
)


class _Question(Reply):
    question: str
    noncommittal: bool


class _Questions(Reply):
    questions: list[_Question]


class _PlainQuestions(Reply):
    questions: list[str]


_QUESTION: Schema = record(question=TEXT, noncommittal=FLAG)


@dataclass(frozen=True, kw_only=True)
class ResponseRelevancy(Metric):
    r"""How close the response's own questions are to the question asked; higher is better.

    The judge sees the response alone and writes N questions that it would answer. With E_o the embedding of
    `user_input` and E_gi that of the i-th generated question,

        score = c * (1/N) * sum_i cos(E_gi, E_o)

    where c is 0 when the response is noncommittal (by `noncommittal`) and 1 otherwise. It says whether the
    response is about the question, completely and without padding; it says nothing of its truth.

    Needs `user_input` and `response`. Costs 1 judge call and 1 embedding call of N+1 texts (N judge calls
    with `sampling="n_calls"`; 2 judge calls when asked one by one).

    Args:
        llm: The judge.
        embedder: Places question and generated questions.
        strictness: N, the number of generated questions, at least 1.
        sampling: "one_call": N different questions from one call; "n_calls": the same prompt N times at
            temperature 0.7 with distinct `sample_index`.
        noncommittal: The share of questions flagged noncommittal that makes the score 0: "all" (ragas since
            0.3.6), "any" (before), "majority" (more than half), "off" (never).
        threshold: See `Metric`; likewise `asking`, `scoring`, `max_input_tokens`, `instructions`. With
            `scoring="expected"` c is 1 minus the judge's probability that the response is noncommittal.

    Returns:
        A score within [-1, 1] (unrelated texts are near 0; below 0 is rare). Breakdown: `cosine_1` to
        `cosine_N`, `noncommittal` (the share flagged), `expected` where there are probabilities. Verdicts:
        each question, "committal" or "noncommittal". `Unscored("judge_unparseable")` also when the embedder
        returns zero vectors, NaN or the wrong shape.

    Source:
        ragas, "Response Relevancy" (Es et al. 2023, arXiv 2309.15217, section 3).

    Example:
        >>> from ragstone.testing import FakeEmbedder, FakeLLM
        >>> judge = FakeLLM(lambda request: {"questions": [{"question": "Who wrote Emma?", "noncommittal": False}]})
        >>> metric = ResponseRelevancy(llm=judge, embedder=FakeEmbedder(), strictness=1)
        >>> metric.score(Sample(user_input="Who wrote Emma?", response="Jane Austen.")).value
        1.0
    """

    name: ClassVar[str] = "response_relevancy"
    version: ClassVar[str] = "1"
    prompts: ClassVar[Mapping[str, str]] = {"questions": _INSTRUCTIONS, "noncommittal": _EVASIVE}
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    embedder: Embedder
    strictness: int = 3
    sampling: Literal["one_call", "n_calls"] = "one_call"
    noncommittal: NoncommittalRule = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_members(
            "embedder",
            self.embedder,
            ("model", "embed", "aembed"),
            "pass a ragstone Embedder, such as OpenAICompatible of ragstone.clients, LocalEmbedder of ragstone.local, "
            "LangChainEmbedder of ragstone_langchain or LlamaIndexEmbedder of ragstone_llama_index; "
            "ragstone.BaseEmbedder makes one of a class with embed or aembed",
        )
        check_count("strictness", self.strictness)
        check_option("sampling", self.sampling, ("one_call", "n_calls"))
        check_option("noncommittal", self.noncommittal, ("all", "any", "majority", "off"))

    @property
    def required_fields(self) -> Sequence[SampleField]:
        """The question and the response."""
        return ("user_input", "response")

    def _embedder(self) -> Embedder:
        return self.embedder

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        user_input, response = sample.user_input or "", sample.response or ""
        evasive: Answer | None = None
        if self.asks_one_by_one:
            texts, evasive = yield from both(
                self._ask_questions(response, flagged=False), self.ask_choice(self._evasive(response))
            )
            questions = [_Question(question=t.question, noncommittal=evasive.choice == "yes") for t in texts]
        else:
            questions = yield from self._ask_questions(response, flagged=True)
        vectors = yield from embed([user_input, *(q.question for q in questions)])
        cosines = _cosines(vectors, len(questions))
        flagged = sum(q.noncommittal for q in questions)
        mean = sum(cosines) / len(cosines)
        off = is_noncommittal(flagged, len(questions), self.noncommittal)
        value = 0.0 if off else mean
        breakdown = {f"cosine_{i}": cosine for i, cosine in enumerate(cosines, 1)}
        breakdown["noncommittal"] = flagged / len(questions)
        probability = evasive.probability("yes") if evasive else None
        if probability is not None:
            breakdown["expected"] = mean if self.noncommittal == "off" else mean * (1.0 - probability)
            value = breakdown["expected"] if self.scoring == "expected" else value
        zero = ", which makes the score 0" if off and self.scoring == "count" else ""
        return self._score(
            value,
            f"The {len(questions)} question(s) made from the response are {mean:.2f} close to the one asked on average"
            + (f"; {flagged} of them flag it as noncommittal{zero}." if flagged else "."),
            breakdown=breakdown,
            verdicts=[
                Verdict(
                    id=str(i),
                    kind="question",
                    text=q.question,
                    verdict="noncommittal" if q.noncommittal else "committal",
                    probability=None if probability is None else 1.0 - probability,
                )
                for i, q in enumerate(questions, 1)
            ],
        )

    def _ask_questions(self, response: str, *, flagged: bool) -> Flow[list[_Question]]:
        if self.sampling == "one_call":
            return (yield from ask(*self._questions(response, self.strictness, 0, flagged=flagged)))
        draws = [ask(*self._questions(response, 1, i, flagged=flagged)) for i in range(self.strictness)]
        return [question for questions in (yield from each(draws)) for question in questions]

    def _questions(self, response: str, n: int, sample_index: int, *, flagged: bool) -> "tuple[LLMRequest, _Parse]":
        what = "one question" if n == 1 else f"{n} different questions"
        form = '{"question": TEXT, "noncommittal": true or false}' if flagged else "TEXT"
        request = self.request(
            "questions",
            _INSTRUCTIONS,
            {"response": response},
            f'Write {what} that this response answers, in its language. Reply with bare JSON: {{"questions": '
            f"[{form}]}}, {n} in the list.",
            record(questions=listing(_QUESTION if flagged else TEXT, n, n)),
            temperature=DRAW_TEMPERATURE if self.sampling == "n_calls" else 0.0,
            sample_index=sample_index,
            fill={"what": what, "flag": _FLAG if flagged else ""},
        )
        return request, _Parse(n, flagged)

    def _evasive(self, response: str) -> LLMRequest:
        return self.choice(
            "noncommittal",
            _EVASIVE,
            {"response": response},
            "Does this response refuse, evade or not know, instead of helping? Reply with one word: yes or no.",
            ("yes", "no"),
        )


@dataclass(frozen=True, slots=True)
class _Parse:
    """Reads a reply of exactly `n` questions."""

    n: int
    flagged: bool

    def __call__(self, reply: LLMReply) -> list[_Question]:
        if self.flagged:
            questions = parse_reply(reply.text, _Questions).questions
        else:
            plain = parse_reply(reply.text, _PlainQuestions).questions
            questions = [_Question(question=text, noncommittal=False) for text in plain]
        if len(questions) != self.n:
            raise BadReply(f"{len(questions)} questions where {self.n} were asked for")
        if any(not q.question.strip() for q in questions):
            raise BadReply("a question is blank")
        return questions


def is_noncommittal(flagged: int, n: int, rule: NoncommittalRule) -> bool:
    """Whether `flagged` of `n` questions make a response noncommittal under a rule.

    Example:
        >>> [is_noncommittal(2, 3, rule) for rule in ("all", "any", "majority", "off")]
        [False, True, True, False]
    """
    return {"all": flagged == n, "any": flagged > 0, "majority": 2 * flagged > n, "off": False}[rule]


def _cosines(vectors: "NDArray[np.float32]", n: int) -> list[float]:
    """Cosine of the first row with each of the `n` others.

    Raises:
        CannotScore: The embedder returned another shape, something not finite, or a zero vector.
    """
    import numpy as np

    try:
        rows = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CannotScore("judge_unparseable", "embedder: returned no array of numbers") from None
    if rows.ndim != 2 or rows.shape[0] != n + 1 or rows.shape[1] == 0:
        raise CannotScore("judge_unparseable", f"embedder: shape {rows.shape} for {n + 1} texts")
    if not np.isfinite(rows).all():
        raise CannotScore("judge_unparseable", "embedder: a vector holds NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise CannotScore("judge_unparseable", "embedder: a zero vector has no direction")
    rows = rows / largest  # so that squares neither overflow nor vanish
    unit = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return [max(-1.0, min(1.0, float(cosine))) for cosine in unit[1:] @ unit[0]]
