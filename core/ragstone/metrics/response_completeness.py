"""ResponseCompleteness: how much of the question the response answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ragstone.judging import TEXT, CannotScore, Flow, distinct, json_form, listing, record
from ragstone.metrics.asking import WRITTEN, ItemDetails, ask_items, by_map
from ragstone.metrics.base import FOLLOW_UP, ItemKind, Metric
from ragstone.metrics.fitted import ANSWERED
from ragstone.metrics.values import expected_share, share_of, verdicts_of
from ragstone.options import Text, Texts, checked
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField

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
_HAS_ANSWER = "Does the user have an answer to the question now?"
# Bounds a judge that does not end its list.
_MOST_PARTS = 8
_PARTS_FORM = json_form(record(parts=listing(TEXT, 1, _MOST_PARTS)), parts="QUESTION")
# Alone, the question first: behind the response, a small judge tells an answer from a refusal much worse.
_EACH = ItemDetails(
    alone="part",
    task="Say of each of the {n} questions whether the response answers it",
    item_first=True,
)


@dataclass(frozen=True, kw_only=True)
class ResponseCompleteness(Metric):
    """Share of the question's parts that the response answers; higher is better.

        score = parts of the question that the response answers / parts of the question

    The judge splits the question into its parts without seeing the response, then says of each part whether the
    response answers it. A false answer is an answer (see `Faithfulness`), and padding lowers nothing (see
    `ResponseRelevancy`). Probabilities of a judge that is asked one by one are mapped to the share of answers among
    human labels (`ragstone.metrics.fitted`).

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        parts: The key of the sample's metadata that holds the question's parts, a list of texts; None: the judge, or
            the writer, splits the question.

    Returns:
        A score within [0, 1]. Breakdown: `answered` and `parts`; where there are probabilities also `count` (the score
        by verdicts) and `expected` (the mean probability of "yes"). Verdicts: each part, "yes" or "no". A question
        has at least one part, so it is never 0 of 0.

    Source:
        ragstone's own. It is the recall of the question's parts by the response.

    Example:
        >>> from ragstone.testing import FakeLLM, by_step
        >>> judge = FakeLLM(by_step(
        ...     parts={"parts": ["When was it?", "Who won?"]},
        ...     answered={"answers": {"1": "yes", "2": "no"}},
        ... ))
        >>> metric = ResponseCompleteness(llm=judge)
        >>> metric.score(Sample(user_input="When was it, and who won?", response="In 1967.")).value
        0.5
    """

    name: ClassVar[str] = "response_completeness"
    asks: ClassVar[str] = "Does the answer cover all that was asked?"
    costs: ClassVar[Mapping[str, str]] = {"part": "the answer does not cover all that was asked"}
    version: ClassVar[str] = "3"
    required_fields: ClassVar[Sequence[SampleField]] = ("user_input", "response")
    has_expected: ClassVar[bool] = True
    follows_history: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = FOLLOW_UP | {"parts": _PARTS, "answered": _ANSWERED, "part": _HAS_ANSWER}

    parts: Text | None = None

    @property
    def needs_writer(self) -> bool:
        """Whether the question's parts are to be written."""
        return self.parts is None

    @property
    def given_in(self) -> str | None:
        """The key of the parts."""
        return self.parts

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The question's parts."""
        return (ItemKind("part", "Does the response answer it?", ("yes", "no")),)

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the share of answered parts."""
        return share_of(verdicts, "part", "yes")

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        if self.parts is None:
            parts = yield from self.ask_json(
                "parts",
                {"question": sample.user_input or ""},
                "Split this question into the things that it asks for, one or more.",
                _PARTS_FORM,
                lambda value: distinct(value["parts"], "part"),
                WRITTEN,
            )
        else:
            try:
                parts = distinct(checked(f"metadata.{self.parts}", sample.metadata.get(self.parts), Texts), "part")
            except ValueError as error:
                raise CannotScore("missing_input", f"{error}; {self.name} needs a list of texts there") from None
        asked = yield from ask_items(self, "answered", {"response": sample.response or ""}, parts, details=_EACH)
        answers = by_map(self, ANSWERED, asked)
        answered = sum(answer.choice == "yes" for answer in answers)
        verdicts = verdicts_of("part", parts, answers, "yes")
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"The response answers {answered} of {len(parts)} parts of the question.",
            expected=expected_share(answers, "yes"),
            breakdown={"answered": float(answered), "parts": float(len(parts))},
            verdicts=verdicts,
        )
