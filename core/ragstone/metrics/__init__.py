"""The metrics, and the base that a metric of your own builds on. Each is listed here, and nowhere else."""

from ragstone.metrics.alignment_coverage import AlignmentCoverage
from ragstone.metrics.base import Metric
from ragstone.metrics.context_recall import ContextRecall
from ragstone.metrics.context_relevancy import ContextRelevancy
from ragstone.metrics.criterion import Criterion
from ragstone.metrics.factual_correctness import FactualCorrectness
from ragstone.metrics.faithfulness import Faithfulness
from ragstone.metrics.response_completeness import ResponseCompleteness
from ragstone.metrics.response_relevancy import ResponseRelevancy
from ragstone.metrics.summarization_score import SummarizationScore

__all__ = [
    "AlignmentCoverage",
    "ContextRecall",
    "ContextRelevancy",
    "Criterion",
    "FactualCorrectness",
    "Faithfulness",
    "Metric",
    "ResponseCompleteness",
    "ResponseRelevancy",
    "SummarizationScore",
]
