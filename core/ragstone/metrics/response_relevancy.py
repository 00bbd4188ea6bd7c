"""ResponseRelevancy: whether the response answers the question that was asked."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from ragstone.judge import Embedder
from ragstone.judging.flow import Flow, both, each, embed
from ragstone.judging.reply import FLAG, TEXT, Answer, BadReply, Schema, distinct, listing, record
from ragstone.metrics.base import CalibratedItem, Metric, check_count, check_flag, check_option
from ragstone.metrics.items import ask_closed, by_odds, cosines_to_first, expected_share, verdicts_of
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField
from ragstone.text.naming import language_name

T = TypeVar("T")
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
_PARTS = (
    "Split a user's question into the separate things that it asks for: each a short question that can be understood "
    "on its own, in the language of the user's question. A question that asks for one thing is one part. Add nothing "
    "that was not asked."
)
_ANSWERED = (
    "You are given a response of a question-answering app and what its user asked. Decide whether the response answers "
    "it. yes: it gives what was asked for, be it true or not. no: it leaves it open, evades it, or speaks of something "
    "else."
)
_SAME = 1e-6  # closer to 1 than this, a cosine lowers nothing
_MOST_PARTS = 8  # bounds a judge that does not end its list


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

    The score hardly tells a complete response from one that leaves half of the question open. `parts=True` adds a
    reading that does: the judge splits the question into its parts and says of each whether the response answers it,

        parts = parts answered / parts

    which stands in the breakdown and does not enter the score.

    Needs `user_input` and `response`. Costs 1 judge call and 1 embedding call of N+1 texts (N judge calls
    with `sampling="n_calls"`; 3 judge calls when asked one by one), and with `parts` 2 judge calls more, one after
    the other (1 and one for each part when asked one by one).

    Args:
        llm: The judge.
        embedder: Places question and generated questions. None: the one of the judge's provider, where the judge is
            named or embeds.
        strictness: N, the number of generated questions, at least 1.
        sampling: "one_call": N different questions from one call; "n_calls": the same prompt N times at
            temperature 0.7 with distinct `sample_index`.
        noncommittal: The share of questions flagged noncommittal that makes the score 0: "all" (ragas since
            0.3.6), "any" (before), "majority" (more than half), "off" (never).
        parts: Whether to say as well which parts of the question the response answers.
        threshold: See `Metric`; likewise `asking`, `scoring`, `max_input_tokens`, `max_characters`,
            `instructions`, `calibration` (of "noncommittal" or of the score). With `scoring="expected"` c is 1 minus
            the judge's probability that the response is noncommittal.

    Returns:
        A score within [-1, 1] (unrelated texts are near 0; below 0 is rare). Breakdown: `cosine_1` to
        `cosine_N`, `noncommittal` (the share flagged), `expected` where there are probabilities; with `parts` also
        `parts`, and `parts_expected` where there are probabilities. Verdicts: each question, "committal" or
        "noncommittal"; each part (of kind "part"), "yes" or "no". `Unscored("judge_unparseable")` also when the
        embedder returns zero vectors, NaN or the wrong shape.

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
    prompts: ClassVar[Mapping[str, str]] = {
        "questions": _INSTRUCTIONS,
        "noncommittal": _REFUSED,
        "parts": _PARTS,
        "answered": _ANSWERED,
    }
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs_embedder: ClassVar[bool] = True
    calibrated_items: ClassVar[tuple[CalibratedItem, ...]] = ("noncommittal",)

    embedder: Embedder | str | None = None
    strictness: int = 3
    sampling: Literal["one_call", "n_calls"] = "one_call"
    noncommittal: NoncommittalRule = "all"
    parts: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("strictness", self.strictness)
        check_option("sampling", self.sampling, ("one_call", "n_calls"))
        check_option("noncommittal", self.noncommittal, ("all", "any", "majority", "off"))
        check_flag("parts", self.parts)

    @property
    def required_fields(self) -> Sequence[SampleField]:
        """The question and the response."""
        return ("user_input", "response")

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        user_input, response = sample.user_input or "", sample.response or ""
        if not self.parts:
            return (yield from self._by_questions(user_input, response))
        score, parts = yield from both(
            self._by_questions(user_input, response), self._answered_parts(user_input, response)
        )
        share = {"parts": sum(part.verdict == "yes" for part in parts) / len(parts)}
        expected = expected_share([part.probability for part in parts])
        if expected is not None:
            share["parts_expected"] = expected
        return score.model_copy(update={"breakdown": score.breakdown | share, "verdicts": (*score.verdicts, *parts)})

    def _by_questions(self, user_input: str, response: str) -> Flow[Score]:
        evasive: Answer | None = None
        uncalibrated: dict[str, float] = {}
        # Compared by cosine with the user's own words, so its language matters more than the judge's ease with it.
        written = write_in(response, user_input)
        if self.asks_one_by_one:
            texts, evasive = yield from both(self._questions(response, written), self._evades(user_input, response))
            if (calibration := self.calibration_of("noncommittal")) is not None:
                uncalibrated["noncommittal_uncalibrated"] = float(evasive.choice == "yes")
                (evasive,) = calibration.answers([evasive])
            questions = [(text, evasive.choice == "yes") for text in texts]
        else:
            questions = yield from self._flagged_questions(response, written)
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
                    text=text,
                    verdict="noncommittal" if flag else "committal",
                    probability=None if probability is None else 1.0 - probability,
                    lowers_score=cosine < 1.0 - _SAME or (flag and (off or self.scoring == "expected")),
                )
                for i, ((text, flag), cosine) in enumerate(zip(questions, cosines, strict=True), 1)
            ],
        )

    def _questions(self, response: str, written: str) -> Flow[list[str]]:
        return self._draws(response, written, TEXT, "", _texts)

    def _flagged_questions(self, response: str, written: str) -> Flow[list[tuple[str, bool]]]:
        def read(questions: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
            flags = [question["noncommittal"] for question in questions]
            return list(zip(_texts([question["question"] for question in questions]), flags, strict=True))

        return self._draws(response, written, record(question=TEXT, noncommittal=FLAG), _FLAG, read)

    def _draws(
        self, response: str, written: str, one: Schema, flag: str, read: Callable[[list[Any]], list[T]]
    ) -> Flow[list[T]]:
        """Ask for the questions: for all in one call, or for one in each of several."""
        calls, n = (1, self.strictness) if self.sampling == "one_call" else (self.strictness, 1)
        what = "one question" if n == 1 else f"{n} different questions"

        def draw(index: int) -> Flow[list[T]]:
            return self.ask_json(
                "questions",
                _INSTRUCTIONS,
                {"response": response},
                f"Write {what} that this response answers, in its language.{written}",
                record(questions=listing(one, n, n)),
                lambda value: read(value["questions"]),
                temperature=DRAW_TEMPERATURE if self.sampling == "n_calls" else 0.0,
                sample_index=index,
                fill={"what": what, "flag": flag},
            )

        draws = yield from each([draw(index) for index in range(calls)])
        return [question for questions in draws for question in questions]

    def _answered_parts(self, user_input: str, response: str) -> Flow[list[Verdict]]:
        parts = yield from self.ask_json(
            "parts",
            _PARTS,
            {"question": user_input},
            "Split this question into the things that it asks for, one or more.",
            record(parts=listing(TEXT, 1, _MOST_PARTS)),
            lambda value: distinct(value["parts"], "part"),
            names={"parts": "QUESTION"},
        )
        tasks = (
            "Does the response answer the question?",
            f"Say of each of the {len(parts)} questions whether the response answers it",
        )
        answers = yield from ask_closed(self, "answered", _ANSWERED, "response", response, parts, tasks=tasks)
        return verdicts_of("part", parts, answers, "yes", [False] * len(parts))

    def _evades(self, user_input: str, response: str) -> Flow[Answer]:
        """Ask whether the response is noncommittal, in both orders: a small judge leans on what comes last."""
        question, answer = {"question": user_input}, {"response": response}
        task = "Was the question answered or refused? Reply with one word: answered or refused."
        first, last = yield from each(
            [
                self.ask_choice(self.choice("noncommittal", _REFUSED, data, task, _REFUSED_WORDS))
                for data in (question | answer, answer | question)
            ]
        )
        return refusal(first, last)


def _texts(questions: Sequence[str]) -> list[str]:
    if not all(question.strip() for question in questions):
        raise BadReply("a question is blank")
    return list(questions)
