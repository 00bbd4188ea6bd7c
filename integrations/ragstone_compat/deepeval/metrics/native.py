"""What DeepEval defines in another way than ragstone's own metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ragstone import Faithfulness, Sample, Score, Verdict
from ragstone.judging import CannotScore, Flow
from ragstone.metrics.asking import ItemDetails, ask_items
from ragstone.metrics.claims import SplittingMetric
from ragstone.metrics.values import expected_share, share_of, verdicts_of

_AGAINST = ("contradicted", "unsupported")
_EACH = ItemDetails(alone="statement", task="Say of each of the {n} statements whether it is relevant to the input")


@dataclass(frozen=True, kw_only=True)
class Uncontradicted(Faithfulness):
    """Share of the response's claims that the retrieved contexts do not contradict; higher is better.

        score = claims that are supported or not mentioned / claims

    Asked one by one, the judge does not tell what is contradicted from what is not mentioned: both lower the score.

    Source:
        DeepEval 4.3.1, FaithfulnessMetric.
    """

    name: ClassVar[str] = "uncontradicted"

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the share of claims that nothing speaks against."""
        return sum(each.verdict not in _AGAINST for each in verdicts) / len(verdicts) if verdicts else None

    def _flow(self, sample: Sample) -> Flow[Score]:
        score = yield from super()._flow(sample)
        verdicts = [each.model_copy(update={"lowers_score": each.verdict in _AGAINST}) for each in score.verdicts]
        reason = score.reason
        if not self.asks_one_by_one:
            against = sum(each.lowers_score for each in verdicts)
            reason = f"The retrieved contexts contradict {against} of {len(verdicts)} claims of the response."
        return score.model_copy(update={"verdicts": tuple(verdicts), "reason": reason})


@dataclass(frozen=True, kw_only=True)
class RelevantShare(SplittingMetric):
    """Share of statements that are relevant to the input; higher is better.

        score = relevant statements / statements

    The statements of a response are the judge's list (asked one by one, its sentences), those of the contexts their
    sentences.

    Args:
        of: The field.

    Returns:
        A score within [0, 1]. Verdicts: each statement, "yes" or "no". `Unscored("undefined")` without statements.

    Source:
        DeepEval 4.3.1, AnswerRelevancyMetric and ContextualRelevancyMetric.
    """

    name: ClassVar[str] = "relevant_share"
    version: ClassVar[str] = "1"
    has_expected: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = {
        "claims": "List the statements that a response makes: every one, each short and understandable on its own, in "
        "the language of the response. Advice, opinions and refusals are statements, too.",
        "relevant": "You are given an input and numbered statements. Say of each statement whether it is relevant to "
        "the input. yes: it helps to address the input, also in part or as background. no: it does not.",
        "statement": "Is the statement relevant to the input, also in part or as background?",
    }

    of: Literal["response", "retrieved_contexts"] = "response"

    def own_facts(self) -> Mapping[str, object]:
        """The judged field is required."""
        return {"required_fields": ("user_input", self.of)}

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        found: Sequence[Any] = yield from (
            self.find_claims("response", sample) if self.of == "response" else self.sentences(sample, self.of)
        )
        if not found:
            raise CannotScore("undefined", f"there are no statements in {self.of} (0 of 0)")
        statements = [each.text for each in found]
        answers = yield from ask_items(
            self,
            "relevant",
            {"input": sample.user_input or ""},
            statements,
            kind="statement",
            details=_EACH,
        )
        verdicts = verdicts_of("statement", statements, answers, "yes")
        relevant = sum(answer.choice == "yes" for answer in answers)
        return self._score(
            share_of(verdicts, "statement", "yes"),
            f"{relevant} of {len(statements)} statements of the {self.of} are relevant to the input.",
            expected=expected_share(answers, "yes"),
            verdicts=verdicts,
        )
