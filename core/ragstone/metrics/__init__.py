"""The four metrics, and the base that a metric of your own builds on."""

from ragstone.metrics.alignment_coverage import AlignmentCoverage
from ragstone.metrics.base import Metric
from ragstone.metrics.context_relevancy import ContextRelevancy
from ragstone.metrics.response_relevancy import ResponseRelevancy
from ragstone.metrics.summarization_score import SummarizationScore

__all__ = ["AlignmentCoverage", "ContextRelevancy", "Metric", "ResponseRelevancy", "SummarizationScore"]
