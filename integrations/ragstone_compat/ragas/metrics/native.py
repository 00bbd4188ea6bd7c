"""What ragas computes and ragstone's core does not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeFloat

import ragstone
from ragstone import Embedder, Outcome, Sample, Score
from ragstone.judging import Flow, both, embed
from ragstone.metrics.values import cosines_to_first
from ragstone.sample import SampleField


@dataclass(frozen=True, kw_only=True)
class ResponseCosine(ragstone.Metric):
    """Cosine of the embeddings of response and reference; higher is better.

    Args:
        threshold: The score is 1 from this cosine on and 0 below; None: it is the cosine.

    Returns:
        A score within [-1, 1]. No judge is asked.

    Source:
        ragas 0.4.3, SemanticSimilarity.
    """

    name: ClassVar[str] = "semantic_similarity"
    asks: ClassVar[str] = "How alike are answer and reference?"
    version: ClassVar[str] = "1"
    required_fields: ClassVar[Sequence[SampleField]] = ("response", "reference")
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs_llm: ClassVar[bool] = False
    needs_embedder: ClassVar[bool] = True

    embedder: Embedder | str | object | None = None

    def _flow(self, sample: Sample) -> Flow[Score]:
        cosine = yield from similarity(sample)
        value = cosine if self.threshold is None else float(cosine >= self.threshold)
        return self._score(value, f"The cosine of response and reference is {cosine:.2f}.")


def similarity(sample: Sample) -> Flow[float]:
    """Return the cosine of the embeddings of response and reference."""
    vectors = yield from embed([sample.reference or "", sample.response or ""])
    return cosines_to_first(vectors, 1)[0]


@dataclass(frozen=True, kw_only=True)
class FactsByMode(ragstone.FactualCorrectness):
    """`ragstone.FactualCorrectness` with ragas' recall and modes.

        recall = TP / (TP + FN)
        F      = (1 + beta^2) * precision * recall / (beta^2 * precision + recall)

    TP are the response's claims that the reference supports, FN the reference's that the response does not. (ragstone's
    recall is of the reference's claims alone.)

    Args:
        mode: "precision", "recall", or "f1", which is F.
        beta: How much more recall counts than precision.
    """

    mode: Literal["f1", "precision", "recall"] = "f1"
    beta: float = 1.0

    def _flow(self, sample: Sample) -> Flow[Score]:
        score = yield from super()._flow(sample)
        parts, verdicts, expected = dict(score.breakdown), score.verdicts, None
        kinds = Counter(verdict.kind for verdict in verdicts)
        ratio = kinds["reference_claim"] / kinds["response_claim"]
        value = self._by_mode(parts, ratio)
        if "expected" in parts:
            expected = self._by_mode(parts, ratio, "_expected")
        reason = score.reason.partition(" The score is ")[0]
        return self._score(value, reason, expected=expected, breakdown=parts, verdicts=verdicts)

    def _by_mode(self, parts: dict[str, float], ratio: float, suffix: str = "") -> float:
        """Return the value; recall among the parts becomes ragas'."""
        precision = parts[f"precision{suffix}"]
        missing = (1.0 - parts[f"recall{suffix}"]) * ratio
        recall = parts[f"recall{suffix}"] = precision / (precision + missing) if precision else 0.0
        if self.mode != "f1":
            return precision if self.mode == "precision" else recall
        beta = self.beta**2
        return (1.0 + beta) * precision * recall / (beta * precision + recall) if precision else 0.0


@dataclass(frozen=True, kw_only=True)
class FactsAndSimilarity(FactsByMode):
    """Claims' F1 and the similarity of response and reference, weighted; higher is better.

        score = (w1 * F1 + w2 * cosine) / (w1 + w2)

    Args:
        weights: w1 and w2.

    Returns:
        A score within [-1, 1]. Breakdown: as `ragstone.FactualCorrectness`, and `f1` and `similarity`.

    Source:
        ragas 0.4.3, AnswerCorrectness.
    """

    name: ClassVar[str] = "answer_correctness"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs_embedder: ClassVar[bool] = True

    embedder: Embedder | str | object | None = None
    weights: tuple[NonNegativeFloat, NonNegativeFloat] = (0.75, 0.25)

    def _flow(self, sample: Sample) -> Flow[Score]:
        score, cosine = yield from both(super()._flow(sample), similarity(sample))
        of_claims, of_cosine = (weight / sum(self.weights) for weight in self.weights)
        parts = score.breakdown
        f1, expected = parts.get("count", score.value), parts.get("expected")
        return self._score(
            of_claims * f1 + of_cosine * cosine,
            f"{score.reason.partition(' The score is ')[0]} The cosine of response and reference is {cosine:.2f}.",
            expected=None if expected is None else of_claims * expected + of_cosine * cosine,
            breakdown={**parts, "f1": f1, "similarity": cosine},
            verdicts=score.verdicts,
        )


class ReferenceSummarization(ragstone.SummarizationScore):
    """`ragstone.SummarizationScore` of the reference contexts where there are some, else of the retrieved ones."""

    @property
    def given_in(self) -> str:
        """The reference contexts."""
        return "reference_contexts"

    def flow(self, sample: Sample) -> Flow[Outcome]:
        """Run the algorithm on one sample."""
        contexts: list[str] | None = sample.metadata.get(self.given_in)
        if contexts is None:
            return (yield from super().flow(sample))
        outcome = yield from super().flow(sample.model_copy(update={"retrieved_contexts": tuple(contexts)}))
        if not isinstance(outcome, Score):
            return outcome
        verdicts = [verdict.model_copy(update={"evidence": ()}) for verdict in outcome.verdicts]
        # The evidence is of no field of the sample.
        return outcome.model_copy(update={"verdicts": tuple(verdicts)})


class Critic(ragstone.Criterion):
    """A criterion whose judge sees the fields that a sample has, of those in `sees`."""

    def flow(self, sample: Sample) -> Flow[Outcome]:
        """Run the algorithm on one sample."""
        there = tuple(field for field in self.sees if sample.texts(field)) or self.sees
        options: dict[str, Any] = {"sees": there}
        outcome = yield from ragstone.Criterion.flow(replace(self, **options), sample)
        return outcome.model_copy(update={"version": self.version})
