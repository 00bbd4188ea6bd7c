"""ContextRecall: how much of a reference answer the retrieved contexts hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ragstone.metrics.claims import CHECK_AGAINST_CONTEXT, IS_SUPPORTED, SupportedClaims
from ragstone.sample import SampleField

_CLAIMS = (
    "List the factual claims that a reference answer makes: every one, each short and understandable on its own, in "
    "the language of the reference. Take them as they are, true or not; add none."
)


@dataclass(frozen=True, kw_only=True)
class ContextRecall(SupportedClaims):
    """Share of a reference answer's claims that the retrieved contexts support; higher is better.

        score = claims of the reference that the contexts support / claims of the reference

    It says whether retrieval found the facts of a right answer. The response is not looked at. The judge lists the
    claims, then checks each against the contexts alone. Asked one by one, the claims are the reference's sentences.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        language: Of the texts, for splitting them; None: by their script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown and verdicts are those of `Faithfulness`, of the reference in place of the
        response. `Unscored("missing_input")` without a reference, as for live samples; `Unscored("undefined")` when
        the reference makes no claim (0 of 0).

    Source:
        ragas, "Context Recall" (LLM based, with reference).

    Example:
        >>> from ragstone import Sample
        >>> from ragstone.testing import FakeLLM, by_step
        >>> yes, no = {"evidence": [1], "verdict": "supported"}, {"evidence": [], "verdict": "not_in_source"}
        >>> judge = FakeLLM(by_step(
        ...     claims={"claims": ["Jane Austen wrote Emma.", "It came out in 1815."]},
        ...     verdicts={"verdicts": {"1": yes, "2": no}},
        ... ))
        >>> metric = ContextRecall(llm=judge)
        >>> sample = Sample(retrieved_contexts=["Emma is by Jane Austen."], reference="Jane Austen, in 1815.")
        >>> metric.score(sample).value
        0.5
    """

    name: ClassVar[str] = "context_recall"
    asks: ClassVar[str] = "Do the contexts hold what the right answer needs?"
    costs: ClassVar[Mapping[str, str]] = {"claim": "the contexts do not support a claim of the reference"}
    version: ClassVar[str] = "2"
    claims_of: ClassVar[Literal["response", "reference"]] = "reference"
    required_fields: ClassVar[Sequence[SampleField]] = ("retrieved_contexts", "reference")
    prompts: ClassVar[Mapping[str, str]] = {
        "claims": _CLAIMS,
        "verdicts": CHECK_AGAINST_CONTEXT,
        "verdict": IS_SUPPORTED,
    }
