"""RetrievalRank: whether the sources that a golden set names were retrieved, and at which ranks; no judge is asked."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Literal

from ragstone.metrics.base import Metric
from ragstone.options import Count
from ragstone.outcome import Score, Verdict
from ragstone.sample import IdField, Sample

Measure = Literal["hit_rate", "recall", "precision", "mrr", "ndcg"]


@dataclass(frozen=True, kw_only=True)
class RetrievalRank(Metric):
    """How well `retrieved_ids` match `reference_ids`, by ids alone; higher is better.

    With R the different ids that should have been retrieved, and v(k) = 1 where the id at rank k is one of them and
    stands at no rank before:

        hit_rate   1 if any v(k) is 1, else 0
        recall     sum of v(k) / |R|
        precision  sum of v(k) / different ids that were retrieved
        mrr        1 / the first rank k with v(k) = 1; 0 without one
        ndcg       sum of v(k) / log2(k + 1), over its value where all of R stand first

    Args:
        measure: Which of them.
        k: How many of the first ranks count; None: all.
        name: Names the metric in results and reports. Two measures of one run need two names.

    Returns:
        A score within [0, 1]. Breakdown: `found`, `wanted` and `retrieved` (counts of different ids), `first_found`
        (its rank, from 1; only if there is one). Verdicts: each id that was retrieved, in order, "relevant",
        "irrelevant" or "repeated", then each that was not, "missed". `Unscored("missing_input")` where the sample has
        no such ids; where a search has found nothing, `retrieved_ids` is an empty list, and only `precision` is
        `Unscored("undefined")`.

    Source:
        LlamaIndex, `RetrieverEvaluator`; ragas, `IDBasedContextPrecision` and `IDBasedContextRecall`. The values are
        theirs, but for ids that are repeated: LlamaIndex' ndcg counts each again, and so may exceed 1.

    Example:
        >>> sample = Sample(reference_ids=["returns.md"], retrieved_ids=["postage.md", "returns.md"])
        >>> RetrievalRank(measure="mrr").score(sample).value
        0.5
    """

    name: str = "retrieval_rank"  # type: ignore[misc]  # pyright: ignore[reportIncompatibleVariableOverride]  # a class's, elsewhere
    asks: ClassVar[str] = "Were the sources retrieved that should have been?"
    costs: ClassVar[Mapping[str, str]] = {
        "missed": "a wanted source was not found",
        "irrelevant": "a source that was not wanted was found",
    }
    version: ClassVar[str] = "1"
    required_fields: ClassVar[Sequence[IdField]] = ("reference_ids", "retrieved_ids")
    needs_llm: ClassVar[bool] = False
    neutral_options: ClassVar[Set[str]] = Metric.neutral_options | {"name"}

    measure: Measure = "recall"
    k: Count | None = None

    def _flow(self, sample: Sample) -> Score:
        wanted = list(dict.fromkeys(sample.reference_ids))
        ranked = list(sample.retrieved_ids)[: self.k]
        words = [_word(rank, ranked, wanted) for rank in range(len(ranked))]
        first = words.index("relevant") + 1 if "relevant" in words else None
        missed = [each for each in wanted if each not in ranked]
        judged = [*zip(ranked, words, strict=True), *((each, "missed") for each in missed)]
        verdicts = [
            Verdict(id=str(i), kind="source", text=text, verdict=word, lowers_score=self._lowers(i, word, words))
            for i, (text, word) in enumerate(judged, 1)
        ]
        found = len(wanted) - len(missed)
        breakdown = {"found": found, "wanted": len(wanted), "retrieved": len(set(ranked))}
        where = "" if first is None else f", the first at rank {first}"
        return self._score(
            rank_value(self.measure, [word == "relevant" for word in words], len(wanted), len(set(ranked)), self.k),
            f"{found} of {len(wanted)} sources were among the {len(ranked)} that were retrieved{where}.",
            breakdown={**breakdown, **({} if first is None else {"first_found": float(first)})},
            verdicts=verdicts,
        )

    def _lowers(self, rank: int, word: str, words: Sequence[str]) -> bool:
        """Whether a verdict costs points: a missed id, or an irrelevant one that counts or stands before others."""
        if word == "missed":
            return self.measure in ("recall", "ndcg") or "relevant" not in words
        if word != "irrelevant" or self.measure in ("hit_rate", "recall"):
            return False
        is_behind_the_first = "relevant" in words[:rank] and self.measure == "mrr"
        return self.measure == "precision" or ("relevant" in words[rank:] and not is_behind_the_first)


def _word(rank: int, ranked: Sequence[str], wanted: Sequence[str]) -> str:
    if ranked[rank] in ranked[:rank]:
        return "repeated"
    return "relevant" if ranked[rank] in wanted else "irrelevant"


def rank_value(measure: Measure, found: Sequence[bool], wanted: int, different: int, k: int | None) -> float | None:
    """A measure of ranks; None for 0 of 0.

    Args:
        measure: Which.
        found: Whether each rank is the first of a wanted source.
        wanted: How many different ones there are.
        different: How many different sources were retrieved.
        k: How many ranks count; None: all.

    Example:
        >>> rank_value("mrr", [False, True], 2, 2, None), rank_value("recall", [False, True], 2, 2, None)
        (0.5, 0.5)
    """
    hits = sum(found)
    if measure == "hit_rate":
        return float(hits > 0)
    if measure == "recall":
        return hits / wanted
    if measure == "precision":
        return hits / different if different else None
    gains = [1 / math.log2(rank + 1) if measure == "ndcg" else 1 / rank for rank in range(1, len(found) + 1)]
    if measure == "mrr":
        return next((gain for gain, hit in zip(gains, found, strict=True) if hit), 0.0)
    best = min(wanted, k or wanted)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, best + 1))
    return sum(gain for gain, hit in zip(gains, found, strict=True) if hit) / ideal
