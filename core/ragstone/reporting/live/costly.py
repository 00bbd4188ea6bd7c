"""Which verdicts lower a score: the vocabularies of the metrics, read once for all pages."""

from collections.abc import Mapping, Sequence

from ragstone.metrics.alignment_coverage import AlignmentCoverage, coverage_counts
from ragstone.metrics.base import Metric
from ragstone.metrics.context_relevancy import ContextRelevancy
from ragstone.metrics.response_relevancy import ResponseRelevancy
from ragstone.metrics.summarization_score import SummarizationScore
from ragstone.outcome import Score

_METRICS: Mapping[str, type[Metric]] = {
    cls.name: cls for cls in (SummarizationScore, AlignmentCoverage, ResponseRelevancy, ContextRelevancy)
}

# By metric and kind of item: each word of the vocabulary, and whether it lowers the score by itself. An answer of
# AlignmentCoverage does so only beside the other text's answer (see `_uncovered`).
WORDS: Mapping[tuple[str, str], Mapping[str, bool]] = {
    (SummarizationScore.name, "question"): {"yes": False, "no": True},
    (AlignmentCoverage.name, "claim"): {"supported": False, "contradicted": True, "not_in_source": True},
    (AlignmentCoverage.name, "source_answer"): {"yes": False, "no": False, "cannot_tell": False},
    (AlignmentCoverage.name, "summary_answer"): {"yes": False, "no": False, "cannot_tell": False},
    (ResponseRelevancy.name, "question"): {"committal": False, "noncommittal": True},
    (ResponseRelevancy.name, "part"): {"yes": False, "no": False},
    (ContextRelevancy.name, "sentence"): {"relevant": False, "irrelevant": True},
    (ContextRelevancy.name, "copy"): {"unmatched": False},
}
_AGREEMENT = "answered the same on both"  # how a score says which coverage_rule it is by
_SAME = 1e-6  # closer to 1 than this, a cosine costs nothing


def bounds_of(metric: str) -> tuple[float, float] | None:
    """Return the least and greatest value of a metric of ragstone's; None for one of your own."""
    return _METRICS[metric].bounds if metric in _METRICS else None


def costs(score: Score) -> list[bool | None]:
    """Say of each verdict of a score whether it lowers it; None where the metric, or the word, is not known.

    Example:
        >>> from ragstone import Verdict
        >>> answers = [Verdict(id="1", kind="question", text="", verdict=word) for word in ("yes", "no", "perhaps")]
        >>> costs(Score(metric="summarization_score", value=0.5, reason="", verdicts=answers, version="1"))
        [False, True, None]
    """
    uncovered = _uncovered(score) if score.metric == AlignmentCoverage.name else frozenset[str]()
    found: list[bool | None] = []
    for verdict in score.verdicts:
        by_itself = WORDS.get((score.metric, verdict.kind), {}).get(verdict.verdict)
        if verdict.kind == "summary_answer" and verdict.id in uncovered:
            found.append(True)
        elif (score.metric, verdict.kind) == (ResponseRelevancy.name, "question") and by_itself is False:
            found.append(score.breakdown.get(f"cosine_{verdict.id}", 1.0) < 1.0 - _SAME)
        else:
            found.append(by_itself)
    return found


def _uncovered(score: Score) -> frozenset[str]:
    """Return the ids of the questions that count against coverage."""
    on_source = {v.id: v.verdict for v in score.verdicts if v.kind == "source_answer"}
    on_summary = {v.id: v.verdict for v in score.verdicts if v.kind == "summary_answer"}
    ids = [i for i in on_source if i in on_summary]
    if _by_agreement(score, [on_source[i] for i in ids], [on_summary[i] for i in ids]):
        return frozenset(i for i in ids if on_source[i] != on_summary[i])
    return frozenset(i for i in ids if on_source[i] == "yes" and on_summary[i] != "yes")


def _by_agreement(score: Score, on_source: Sequence[str], on_summary: Sequence[str]) -> bool:
    """Whether the score's coverage_rule is "agreement". Where texts are not stored, only its coverage tells."""
    if score.reason:
        return _AGREEMENT in score.reason
    covered, asked = coverage_counts(on_source, on_summary, "both_yes")
    told = score.breakdown.get("coverage")
    return told is not None and (not asked or abs(covered / asked - told) > _SAME)
