"""FactualCorrectness: how far response and reference answer state the same facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ragstone.judging import (
    TEXT,
    Answer,
    CannotScore,
    Flow,
    both,
    distinct,
    json_form,
    listing,
    numbered,
    record,
)
from ragstone.metrics.asking import MOST_ITEMS, WRITTEN, answers_in, form_of, listed
from ragstone.metrics.base import ItemKind
from ragstone.metrics.claims import CLAIM_WORDS, IS_SUPPORTED, SUPPORT_EXAMPLES, Claim, SplittingMetric
from ragstone.metrics.values import expected_share, share_of, verdicts_of
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField

_CLAIMS = (
    "List the factual claims of two texts, each text by itself: every claim, short and understandable on its own, in "
    "the language of its text. Take them as they are, true or not; add none, and carry none from one text to the other."
)
_VERDICTS = (
    "Check claims against a text, and against nothing that you know. supported: the text says it or it plainly "
    "follows. contradicted: the text says otherwise. not_in_source: neither."
)
_CLAIMS_FORM = json_form(record(response=listing(TEXT), reference=listing(TEXT)))


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean, which is 0 where both are.

    Example:
        >>> f1(1.0, 0.5), f1(0.0, 0.0)
        (0.6666666666666666, 0.0)
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True, kw_only=True)
class FactualCorrectness(SplittingMetric):
    """Harmonic mean of how much of the response the reference supports, and the other way round; higher is better.

        precision = claims of the response that the reference supports / claims of the response
        recall    = claims of the reference that the response supports / claims of the reference
        score     = F1 = 2 * precision * recall / (precision + recall)

    The judge lists the claims of both texts in one call, and checks each against the other text in a second one;
    more than 50 claims in several, of one text each.
    Asked one by one, the claims are the sentences, and each is "supported" or "unsupported".

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        language: Of the texts, for splitting them; None: by their script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown: `precision`, `recall`, and where there are probabilities
        `precision_expected`, `recall_expected`, `count` and `expected`. Verdicts: each "response_claim" and each
        "reference_claim", with the sentences of the other text that show it. `Unscored("missing_input")` without a
        reference, as for live samples; `Unscored("undefined")` when a text makes no claim (0 of 0).

    Source:
        ragas, "Factual Correctness". ragas takes both counts of hits from the response's claims; here recall is that
        of the reference's own.

    Example:
        >>> from ragstone.testing import FakeLLM, by_step
        >>> yes, no = {"evidence": [1], "verdict": "supported"}, {"evidence": [], "verdict": "not_in_source"}
        >>> judge = FakeLLM(by_step(
        ...     claims={"response": ["Jane Austen wrote Emma."], "reference": ["Austen wrote it.", "In 1815."]},
        ...     verdicts={"response": {"1": yes}, "reference": {"1": yes, "2": no}},
        ... ))
        >>> metric = FactualCorrectness(llm=judge)
        >>> metric.score(Sample(response="Jane Austen did.", reference="Jane Austen, in 1815.")).breakdown
        {'precision': 1.0, 'recall': 0.5}
    """

    name: ClassVar[str] = "factual_correctness"
    asks: ClassVar[str] = "Does the answer state the facts of the reference?"
    costs: ClassVar[Mapping[str, str]] = {
        "response_claim": "the reference does not support a claim of the answer",
        "reference_claim": "the answer lacks a claim of the reference",
    }
    version: ClassVar[str] = "2"
    required_fields: ClassVar[Sequence[SampleField]] = ("response", "reference")
    has_expected: ClassVar[bool] = True
    checks_claims: ClassVar[bool] = True
    examples: ClassVar[Mapping[str, str]] = {"verdict": SUPPORT_EXAMPLES}
    prompts: ClassVar[Mapping[str, str]] = {"claims": _CLAIMS, "verdicts": _VERDICTS, "verdict": IS_SUPPORTED}

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The claims of either text, checked against the other."""
        return (self.claims_kind("response_claim", "reference"), self.claims_kind("reference_claim", "response"))

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return F1 of the shares of supported claims."""
        precision, recall = (share_of(verdicts, kind, "supported") for kind in ("response_claim", "reference_claim"))
        return None if precision is None or recall is None else f1(precision, recall)

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        if self.has_written_claims:
            claims = yield from self._list(sample)
        else:
            claims = yield from both(
                self.sentence_claims(sample, "response"), self.sentence_claims(sample, "reference")
            )
        if self.asks_one_by_one or sum(map(len, claims)) > MOST_ITEMS:
            checks = yield from both(
                self.check_claims(claims[0], "reference", sample, "reference"),
                self.check_claims(claims[1], "response", sample, "response"),
            )
        else:
            checks = yield from self._check(sample, *claims)
        supported = [sum(check.choice == "supported" for check in of_text) for of_text in checks]
        precision, recall = (n / len(of_text) for n, of_text in zip(supported, claims, strict=True))
        breakdown, expected = {"precision": precision, "recall": recall}, None
        by_judge = [expected_share(of_text, "supported") for of_text in checks]
        if by_judge[0] is not None and by_judge[1] is not None:
            breakdown |= {"precision_expected": by_judge[0], "recall_expected": by_judge[1]}
            expected = f1(by_judge[0], by_judge[1])
        verdicts = [
            verdict
            for kind, of_text, answers in zip(("response_claim", "reference_claim"), claims, checks, strict=True)
            for verdict in verdicts_of(kind, [claim.text for claim in of_text], answers, "supported")
        ]
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"The reference supports {supported[0]} of {len(claims[0])} claims of the response; the response supports "
            f"{supported[1]} of {len(claims[1])} claims of the reference.",
            expected=expected,
            breakdown=breakdown,
            verdicts=verdicts,
        )

    def _list(self, sample: Sample) -> Flow[tuple[tuple[Claim, ...], tuple[Claim, ...]]]:
        response, reference = yield from self.ask_json(
            "claims",
            {"response": sample.response or "", "reference": sample.reference or ""},
            "List the claims of the response, and those of the reference.",
            _CLAIMS_FORM,
            lambda value: [tuple(map(Claim, distinct(value[name], "claim"))) for name in ("response", "reference")],
            WRITTEN,
        )
        for name, claims in (("response", response), ("reference", reference)):
            if not claims:
                raise CannotScore("undefined", f"the judge found no claims in {name} (0 of 0)")
        return response, reference

    def _check(
        self, sample: Sample, response: Sequence[Claim], reference: Sequence[Claim]
    ) -> Flow[tuple[list[Answer], list[Answer]]]:
        texts = {
            "response": (yield from self.sentences(sample, "response")),
            "reference": (yield from self.sentences(sample, "reference")),
        }
        return (
            yield from self.ask_json(
                "verdicts",
                {
                    "response": listed(texts["response"]),
                    "reference": listed(texts["reference"]),
                    "response_claims": numbered([claim.text for claim in response]),
                    "reference_claims": numbered([claim.text for claim in reference]),
                },
                f"Check each of the {len(response)} claims of the response against the reference, and each of the "
                f"{len(reference)} claims of the reference against the response. evidence: numbers of the other text's "
                "sentences that show it, [] if none.",
                record(
                    response=form_of(len(response), CLAIM_WORDS, len(texts["reference"])),
                    reference=form_of(len(reference), CLAIM_WORDS, len(texts["response"])),
                ),
                lambda value: (
                    answers_in(value["response"], texts["reference"]),
                    answers_in(value["reference"], texts["response"]),
                ),
            )
        )
