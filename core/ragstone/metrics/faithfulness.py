"""Faithfulness: how much of a response the retrieved contexts support."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragstone.errors import CannotScore
from ragstone.judging.flow import Flow
from ragstone.metrics.base import Metric
from ragstone.metrics.items import check_claims, expected_share, list_claims, sentences_of, verdicts_of
from ragstone.outcome import Score
from ragstone.sample import Sample, SampleField
from ragstone.text import Splitter, split_sentences

_CLAIMS = (
    "List the factual claims that a response makes: every one, each short and understandable on its own, in the "
    "language of the response. Take them as they are, true or not; add none."
)
_VERDICTS = (
    "Check claims against a context, and against nothing that you know. supported: the context says it or it plainly "
    "follows. contradicted: the context says otherwise. not_in_source: neither."
)


@dataclass(frozen=True, kw_only=True)
class Faithfulness(Metric):
    """Share of the response's claims that the retrieved contexts support; higher is better.

        score = claims supported by the contexts / claims of the response

    The judge lists the claims, then checks each against the contexts alone: a true claim that they do not hold is not
    supported. The score says nothing of whether the response answers the question (see `ResponseRelevancy`).

    Needs `retrieved_contexts` and `response`. Costs 2 judge calls, one after the other; asked one by one, 1 and one
    for each claim.

    Args:
        llm: The judge.
        language: Of the contexts, for splitting; see `AlignmentCoverage`. Likewise `splitter`.
        splitter: Another sentence splitter.
        threshold: See `Metric`; likewise `asking`, `scoring`, `max_input_tokens`, `max_characters`, `instructions`.

    Returns:
        A score within [0, 1]. Breakdown: `supported` and `claims` (counts), and `expected` (the mean probability of
        "supported") where there are probabilities. Verdicts: each claim, "supported", "contradicted" or
        "not_in_source", with the contexts' sentences that show it (none when asked one by one).
        `Unscored("undefined")` when the response makes no claim (0 of 0).

    Source:
        ragas, "Faithfulness" (Es et al. 2023, arXiv 2309.15217, section 3).

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> replies = {
        ...     "claims": {"claims": ["Emma is a novel.", "It is short."]},
        ...     "verdicts": {"verdicts": {"1": {"evidence": [1], "verdict": "supported"},
        ...                               "2": {"evidence": [], "verdict": "not_in_source"}}},
        ... }
        >>> metric = Faithfulness(llm=FakeLLM(lambda request: replies[request.task.split(".")[1]]))
        >>> metric.score(Sample(retrieved_contexts=["Emma is a novel."], response="Emma is a short novel.")).value
        0.5
    """

    name: ClassVar[str] = "faithfulness"
    version: ClassVar[str] = "1"
    prompts: ClassVar[Mapping[str, str]] = {"claims": _CLAIMS, "verdicts": _VERDICTS, "verdict": _VERDICTS}

    language: str | None = None
    splitter: Splitter = split_sentences

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language not in (None, "en"):
            self.splitter("", self.language)  # an unknown language is refused here, not at the first sample

    @property
    def required_fields(self) -> Sequence[SampleField]:
        """What was retrieved and what was answered."""
        return ("retrieved_contexts", "response")

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        claims = yield from list_claims(self, _CLAIMS, "response", sample.response or "")
        if not claims:
            raise CannotScore("undefined", "the judge found no claim in response (0 of 0)")
        sentences = sentences_of(sample, "retrieved_contexts", self.splitter, self.language)
        context = "\n".join(sample.retrieved_contexts)
        checks = yield from check_claims(self, _VERDICTS, claims, "context", context, sentences)
        supported = sum(check.choice == "supported" for check in checks)
        breakdown = {"supported": float(supported), "claims": float(len(claims))}
        value = supported / len(claims)
        expected = expected_share([check.probability("supported") for check in checks])
        if expected is not None:
            breakdown["expected"] = expected
            value = expected if self.scoring == "expected" else value
        return self._score(
            value,
            f"{supported} of {len(claims)} claims of the response are supported by the retrieved contexts.",
            breakdown=breakdown,
            verdicts=verdicts_of("claim", claims, checks, "supported"),
        )
