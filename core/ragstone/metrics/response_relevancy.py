"""ResponseRelevancy: whether the response answers the question that was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ragstone.judge import Embedder
from ragstone.judging.flow import Flow, both, each, embed
from ragstone.judging.prompt import tokens, write_in
from ragstone.judging.reply import FLAG, TEXT, Answer, BadReply, json_form, listing, record
from ragstone.metrics.asking import Details, by_map
from ragstone.metrics.base import FOLLOW_UP, Metric
from ragstone.metrics.fitted import OPEN, REFUSED
from ragstone.metrics.values import cosines_to_first, verdicts_of
from ragstone.options import Count
from ragstone.outcome import Score, in_percent
from ragstone.plain import is_visible
from ragstone.sample import Sample, SampleField

NoncommittalRule = Literal["all", "any", "majority", "off"]

# N draws of one prompt are to differ.
DRAW_TEMPERATURE = 0.7

_INSTRUCTIONS = (
    "You are given a response of a question-answering app, without the question. Write {what} that this response "
    "would fully answer, as its user would have asked, in the language of the response.{flag}"
)
_FLAG = (
    " Mark it noncommittal if the response evades, refuses or does not know instead of answering; a definite "
    "answer, also a negative one, is not."
)
_OPEN = "Does the user have an answer to the question now?"
_REFUSED = (
    "answered: the response gives information or does what was asked. refused: it says that it cannot, will not, "
    "should not or does not know. Was the question answered or refused?"
)
# Tokens: of shorter responses the first question tells refusals best, of longer ones the second.
_SHORT = 60
# Characters: at the beginning, at the end, and those for which no cut is worth it.
_HEAD, _TAIL, _SPARED = 240, 100, 20


def ends(text: str) -> str:
    """Return a long text's beginning and end, some 60 and 25 tokens: enough to see that it refuses or evades.

    Example:
        >>> len(ends("word " * 200)), ends("No.")
        (344, 'No.')
    """
    if len(text) <= _HEAD + _TAIL + _SPARED:
        return text
    return f"{text[:_HEAD].rstrip()} ... {text[-_TAIL:].lstrip()}"


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
    response is about the question; it says nothing of its truth. Asked one by one, c comes from a call of its own: of a
    response of up to 60 tokens whether the user has an answer, of a longer one whether it refuses. The call sees the
    question, and of a long response its beginning and its end. The cut was fitted on human labels
    (`ragstone.metrics.fitted`).

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
        `cosine_N`, `noncommittal` (the share flagged), and where there are probabilities `count`, `expected`, and
        `open` and `refused` (the judge's probabilities that the user has no answer, and of a refusal). Verdicts: each
        question, "answer" or "no_answer". `Unscored("judge_unparseable")` also when the embedder returns zero
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
    asks: ClassVar[str] = "Does the answer fit the question?"
    costs: ClassVar[Mapping[str, str]] = {
        "question": "the answer does not answer the question",
        "": "the questions that the answer fits differ from the user's",
    }
    version: ClassVar[str] = "6"
    required_fields: ClassVar[Sequence[SampleField]] = ("user_input", "response")
    has_expected: ClassVar[bool] = True
    follows_history: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = FOLLOW_UP | {"questions": _INSTRUCTIONS, "open": _OPEN, "refused": _REFUSED}
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs_embedder: ClassVar[bool] = True

    embedder: Embedder | str | object | None = None
    strictness: Count = 3
    sampling: Literal["one_call", "n_calls"] = "one_call"
    noncommittal: NoncommittalRule = "all"

    @property
    def needs_writer(self) -> bool:
        """Always: the questions that the response answers are written."""
        return True

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        user_input, response = sample.user_input or "", sample.response or ""
        evasive: Answer | None = None
        more: dict[str, float] = {}
        asking = self._questions(user_input, response)
        if self.asks_one_by_one:
            questions, (evasive, more) = yield from both(asking, self._evades(user_input, response))
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
        breakdown |= more
        probability = evasive.probability("yes") if evasive else None
        expected = None
        if probability is not None:
            expected = mean if self.noncommittal == "off" else mean * (1.0 - probability)
        lowers = off or (self.expects and self.noncommittal != "off")
        shares = None if probability is None else {"answer": 1.0 - probability, "no_answer": probability}
        verdicts = verdicts_of(
            "question",
            [text for text, _ in questions],
            [Answer("no_answer" if flag else "answer", shares) for _, flag in questions],
            "answer",
            [flag and lowers for _, flag in questions],
        )
        why = f"Questions that the answer fits have a mean similarity of {mean:.2f} to the user's question"
        if off and not self.expects:
            why = f"The answer does not answer the question, so the score is 0; its similarity would be {mean:.2f}"
        elif flagged and probability is None:
            why += f"; {flagged} of {len(questions)} are marked as no answer"
        return self._score(
            value,
            f"{why}.",
            expected=expected,
            breakdown=breakdown,
            verdicts=verdicts,
            shares="" if probability is None else self._shares(mean, probability, flagged=flagged > 0),
        )

    def _shares(self, mean: float, probability: float, *, flagged: bool) -> str:
        """How sure the judge is that the question is answered, and the score that comes of it."""
        sure = in_percent(probability if flagged else 1.0 - probability)
        words = f"; the judge is {sure} sure that it is {'not ' if flagged else ''}answered"
        if self.noncommittal == "off":
            return f"{words}, which does not count"
        if not self.expects:
            return words
        return f"{words}: {mean:.2f} x {1.0 - probability:.2f} gives {mean * (1.0 - probability):.2f}"

    def _questions(self, user_input: str, response: str) -> Flow[list[tuple[str, bool]]]:
        """Ask for the questions, each with whether it is flagged noncommittal: all in one call, or one in each call."""
        calls, n = (1, self.strictness) if self.sampling == "one_call" else (self.strictness, 1)
        what = "one question" if n == 1 else f"{n} different questions"
        flagged = not self.asks_one_by_one
        one = record(question=TEXT, noncommittal=FLAG) if flagged else TEXT
        form = json_form(record(questions=listing(one, n, n)))
        # Compared by cosine with the user's own words, so its language matters more than the judge's ease with it.
        language = write_in(response, user_input)
        task = f"Write {what} that this response answers, in its language.{language}"

        def read(value: Mapping[str, Any]) -> list[tuple[str, bool]]:
            items: list[Any] = value["questions"]
            pairs = [(item["question"], item["noncommittal"]) if flagged else (item, False) for item in items]
            if not all(is_visible(question) for question, _ in pairs):
                raise BadReply("a question is blank")
            return pairs

        draws = [
            self.ask_json(
                "questions",
                {"response": response},
                task,
                form,
                read,
                Details(
                    fill={"what": what, "flag": _FLAG if flagged else language},
                    writes=True,
                    temperature=DRAW_TEMPERATURE if self.sampling == "n_calls" else 0.0,
                    sample_index=index,
                ),
            )
            for index in range(calls)
        ]
        return [question for questions in (yield from each(draws)) for question in questions]

    def _evades(self, user_input: str, response: str) -> Flow[tuple[Answer, dict[str, float]]]:
        """Ask whether the response leaves the question open or, of a long one, whether it refuses."""
        question, answer = {"question": user_input}, {"response": ends(response)}
        if tokens(response) <= _SHORT:
            step, data, words, fitted = "open", question | answer, ("yes", "no"), OPEN
        else:
            step, data, words, fitted = "refused", answer | question, ("answered", "refused"), REFUSED
        given = yield from self.ask_word(step, data, words)
        evades = "yes" if given.choice == words[1] else "no"
        if given.probabilities is None:
            return Answer(evades), {}
        shares = {"yes": given.probabilities[words[1]], "no": given.probabilities[words[0]]}
        (mapped,) = by_map(self, fitted, [Answer(evades, shares)])
        return mapped, {step: shares["yes"]}
