"""Faithfulness: how much of a response the retrieved contexts support."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ragstone.metrics.claims import CHECK_AGAINST_CONTEXT, IS_SUPPORTED, SupportedClaims
from ragstone.sample import SampleField

_CLAIMS = (
    "List the factual claims that a response makes: every one, each short and understandable on its own, in the "
    "language of the response. Take them as they are, true or not; add none."
)


@dataclass(frozen=True, kw_only=True)
class Faithfulness(SupportedClaims):
    """Share of the response's claims that the retrieved contexts support; higher is better.

        score = claims supported by the contexts / claims of the response

    The judge lists the claims, then checks each against the contexts alone: a true claim that they do not hold is not
    supported. Asked one by one, the claims are the response's sentences, and each is "supported" or "unsupported".
    The score says nothing of whether the response answers the question (see `ResponseCompleteness`).

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        language: Of the texts, for splitting them; None: by their script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown: `supported` and `claims` (counts), and where there are probabilities `count`,
        `expected` (the mean probability of "supported") and `least` (that of the least supported claim). Verdicts: each
        claim, "supported", "contradicted" or "not_in_source", with the contexts' sentences that show it; asked one by
        one "supported" or "unsupported", with its place in the response. `Unscored("undefined")` when the response
        makes no claim (0 of 0).

    Source:
        ragas, "Faithfulness" (Es et al. 2023, arXiv 2309.15217, section 3).

    Example:
        >>> from ragstone import Sample
        >>> from ragstone.testing import FakeLLM, by_step
        >>> yes, no = {"evidence": [1], "verdict": "supported"}, {"evidence": [], "verdict": "not_in_source"}
        >>> judge = FakeLLM(by_step(
        ...     claims={"claims": ["Emma is a novel.", "It is short."]},
        ...     verdicts={"verdicts": {"1": yes, "2": no}},
        ... ))
        >>> metric = Faithfulness(llm=judge)
        >>> metric.score(Sample(retrieved_contexts=["Emma is a novel."], response="Emma is a short novel.")).value
        0.5
    """

    name: ClassVar[str] = "faithfulness"
    asks: ClassVar[str] = "Does the answer rest on the contexts?"
    costs: ClassVar[Mapping[str, str]] = {"claim": "the contexts do not support a claim of the answer"}
    version: ClassVar[str] = "4"
    claims_of: ClassVar[Literal["response", "reference"]] = "response"
    required_fields: ClassVar[Sequence[SampleField]] = ("retrieved_contexts", "response")
    prompts: ClassVar[Mapping[str, str]] = {
        "claims": _CLAIMS,
        "verdicts": CHECK_AGAINST_CONTEXT,
        "verdict": IS_SUPPORTED,
    }
