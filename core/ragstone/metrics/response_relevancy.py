"""ResponseRelevancy: whether the response answers the question that was asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ragstone.judge import Embedder
from ragstone.judging.flow import Flow, both, each, embed
from ragstone.judging.reply import FLAG, TEXT, Answer, BadReply, listing, record
from ragstone.metrics.base import CalibratedItem, Metric, check_count, check_option
from ragstone.metrics.items import by_odds, cosines_to_first
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField
from ragstone.text.naming import language_name

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
_REFUSED = (
    "Classify a response of a question-answering app. answered: it gives information or does what was asked. refused: "
    "it says that it cannot, will not, should not or does not know."
)
_REFUSED_WORDS = ("answered", "refused")
_SAME = 1e-6  # closer to 1 than this, a cosine lowers nothing


def write_in(*texts: str) -> str:
    """Return the sentence that names the language of the first text that is plainly in one, behind a space.

    A small judge that is told "in its language" writes English all the same; one that is told "in German" does not.
    Nothing for English, which needs no saying, and where no text says what it is in.

    Example:
        >>> write_in("Das Museum ist am Sonntag auf."), write_in("The museum is open."), write_in("1962")
        (' Write in German.', '', '')
    """
    name = next((name for text in texts if (name := language_name(text))), "English")
    return "" if name == "English" else f" Write in {name}."


def refusal(first: Answer, last: Answer) -> Answer:
    """Return yes where two answers of "answered" or "refused" say refused: by the mean of their log-odds, or both.

    Example:
        >>> surely, hardly = {"answered": 0.1, "refused": 0.9}, {"answered": 0.6, "refused": 0.4}
        >>> refusal(Answer("refused", surely), Answer("answered", hardly)).choice
        'yes'
    """
    if first.probabilities is None or last.probabilities is None:
        return Answer("yes" if first.choice == last.choice == "refused" else "no")
    # both are 0 where each is certain, of different words
    return by_odds(
        *(math.sqrt(first.probabilities[word] * last.probabilities[word]) for word in ("refused", "answered"))
    )


def is_noncommittal(flagged: int, n: int, rule: NoncommittalRule) -> bool:
    """Whether `flagged` of `n` questions make a response noncommittal under a rule.

    Example:
        >>> [is_noncommittal(2, 3, rule) for rule in ("all", "any", "majority", "off")]
        [False, True, True, False]
    """
    return {"all": flagged == n, "any": flagged > 0, "majority": 2 * flagged > n, "off": False}[rule]


@dataclass(frozen=True, kw_only=True)
class ResponseRelevancy(Metric):
    r"""How close the response's own questions are to the question asked; higher is better.

    The judge sees the response alone and writes N questions that it would answer. With E_o the embedding of
    `user_input` and E_gi that of the i-th generated question,

        score = c * (1/N) * sum_i cos(E_gi, E_o)

    where c is 0 when the response is noncommittal (by `noncommittal`) and 1 otherwise. It says whether the
    response is about the question; it says nothing of its truth. Asked one by one, c comes from two calls of
    its own, which see question and response in either order; the mean of their log-odds decides.

    The score hardly tells a complete response from one that leaves half of the question open; `ResponseCompleteness`
    does.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share. With `scoring="expected"` c is 1 minus the
            judge's probability that the response is noncommittal.
        embedder: Places question and generated questions. None: the one of the judge's provider, where the judge is
            named or embeds.
        strictness: N, the number of generated questions, at least 1.
        sampling: "one_call": N different questions from one call; "n_calls": the same prompt N times at
            temperature 0.7 with distinct `sample_index`.
        noncommittal: The share of questions flagged noncommittal that makes the score 0: "all" (ragas since
            0.3.6), "any" (before), "majority" (more than half), "off" (never).

    Returns:
        A score within [-1, 1] (unrelated texts are near 0; below 0 is rare). Breakdown: `cosine_1` to
        `cosine_N`, `noncommittal` (the share flagged), `expected` where there are probabilities. Verdicts: each
        question, "committal" or "noncommittal". `Unscored("judge_unparseable")` also when the embedder returns zero
        vectors, NaN or the wrong shape.

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
    version: ClassVar[str] = "4"
    has_expected: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = {"questions": _INSTRUCTIONS, "noncommittal": _REFUSED}
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs_embedder: ClassVar[bool] = True
    calibrated_items: ClassVar[tuple[CalibratedItem, ...]] = ("noncommittal",)

    embedder: Embedder | str | None = None
    strictness: int = 3
    sampling: Literal["one_call", "n_calls"] = "one_call"
    noncommittal: NoncommittalRule = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("strictness", self.strictness)
        check_option("sampling", self.sampling, ("one_call", "n_calls"))
        check_option("noncommittal", self.noncommittal, ("all", "any", "majority", "off"))

    @property
    def required_fields(self) -> Sequence[SampleField]:
        """The question and the response."""
        return ("user_input", "response")

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        user_input, response = sample.user_input or "", sample.response or ""
        evasive: Answer | None = None
        uncalibrated: dict[str, float] = {}
        asking = self._questions(user_input, response)
        if self.asks_one_by_one:
            questions, evasive = yield from both(asking, self._evades(user_input, response))
            if (calibration := self.calibration_of("noncommittal")) is not None:
                uncalibrated["noncommittal_uncalibrated"] = float(evasive.choice == "yes")
                (evasive,) = calibration.answers([evasive])
            questions = [(text, evasive.choice == "yes") for text, _ in questions]
        else:
            questions = yield from asking
        vectors = yield from embed([user_input, *(text for text, _ in questions)])
        cosines = cosines_to_first(vectors, len(questions))
        flagged = sum(flag for _, flag in questions)
        mean = sum(cosines) / len(cosines)
        off = is_noncommittal(flagged, len(questions), self.noncommittal)
        value = 0.0 if off else mean
        breakdown = {f"cosine_{i}": cosine for i, cosine in enumerate(cosines, 1)}
        breakdown["noncommittal"] = flagged / len(questions)
        breakdown |= uncalibrated
        probability = evasive.probability("yes") if evasive else None
        expected = None
        if probability is not None:
            expected = mean if self.noncommittal == "off" else mean * (1.0 - probability)
        zero = ", which makes the score 0" if off and not self.expects else ""
        return self._score(
            value,
            f"The {len(questions)} question(s) made from the response are {mean:.2f} close to the one asked on average"
            + (f"; {flagged} of them flag it as noncommittal{zero}." if flagged else "."),
            expected=expected,
            breakdown=breakdown,
            verdicts=[
                Verdict(
                    id=str(i),
                    kind="question",
                    text=text,
                    verdict="noncommittal" if flag else "committal",
                    probability=None if probability is None else 1.0 - probability,
                    lowers_score=cosine < 1.0 - _SAME or (flag and (off or self.expects)),
                )
                for i, ((text, flag), cosine) in enumerate(zip(questions, cosines, strict=True), 1)
            ],
        )

    def _questions(self, user_input: str, response: str) -> Flow[list[tuple[str, bool]]]:
        """Ask for the questions, each with whether it is flagged noncommittal: all in one call, or one in each call."""
        calls, n = (1, self.strictness) if self.sampling == "one_call" else (self.strictness, 1)
        what = "one question" if n == 1 else f"{n} different questions"
        flagged = not self.asks_one_by_one
        one = record(question=TEXT, noncommittal=FLAG) if flagged else TEXT
        # Compared by cosine with the user's own words, so its language matters more than the judge's ease with it.
        task = f"Write {what} that this response answers, in its language.{write_in(response, user_input)}"

        def read(value: Mapping[str, Any]) -> list[tuple[str, bool]]:
            items: list[Any] = value["questions"]
            pairs = [(item["question"], item["noncommittal"]) if flagged else (item, False) for item in items]
            if not all(question.strip() for question, _ in pairs):
                raise BadReply("a question is blank")
            return pairs

        draws = [
            self.ask_json(
                "questions",
                {"response": response},
                task,
                record(questions=listing(one, n, n)),
                read,
                temperature=DRAW_TEMPERATURE if self.sampling == "n_calls" else 0.0,
                sample_index=index,
                fill={"what": what, "flag": _FLAG if flagged else ""},
            )
            for index in range(calls)
        ]
        return [question for questions in (yield from each(draws)) for question in questions]

    def _evades(self, user_input: str, response: str) -> Flow[Answer]:
        """Ask whether the response is noncommittal, in both orders: a small judge leans on what comes last."""
        question, answer = {"question": user_input}, {"response": response}
        task = "Was the question answered or refused? Reply with one word: answered or refused."
        first, last = yield from each(
            [
                self.ask_choice(self.choice("noncommittal", data, task, _REFUSED_WORDS))
                for data in (question | answer, answer | question)
            ]
        )
        return refusal(first, last)
