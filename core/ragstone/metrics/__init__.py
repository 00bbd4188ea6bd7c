"""The metrics, and the base that a metric of your own builds on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.metrics.alignment_coverage import AlignmentCoverage as AlignmentCoverage
    from ragstone.metrics.base import Metric as Metric
    from ragstone.metrics.citation_support import CitationSupport as CitationSupport
    from ragstone.metrics.context_precision import ContextPrecision as ContextPrecision
    from ragstone.metrics.context_recall import ContextRecall as ContextRecall
    from ragstone.metrics.context_relevancy import ContextRelevancy as ContextRelevancy
    from ragstone.metrics.criterion import Criterion as Criterion
    from ragstone.metrics.factual_correctness import FactualCorrectness as FactualCorrectness
    from ragstone.metrics.faithfulness import Faithfulness as Faithfulness
    from ragstone.metrics.response_completeness import ResponseCompleteness as ResponseCompleteness
    from ragstone.metrics.response_relevancy import ResponseRelevancy as ResponseRelevancy
    from ragstone.metrics.retrieval_rank import RetrievalRank as RetrievalRank
    from ragstone.metrics.summarization_score import SummarizationScore as SummarizationScore
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.metrics.alignment_coverage": "AlignmentCoverage",
            "ragstone.metrics.base": "Metric",
            "ragstone.metrics.citation_support": "CitationSupport",
            "ragstone.metrics.context_precision": "ContextPrecision",
            "ragstone.metrics.context_recall": "ContextRecall",
            "ragstone.metrics.context_relevancy": "ContextRelevancy",
            "ragstone.metrics.criterion": "Criterion",
            "ragstone.metrics.factual_correctness": "FactualCorrectness",
            "ragstone.metrics.faithfulness": "Faithfulness",
            "ragstone.metrics.response_completeness": "ResponseCompleteness",
            "ragstone.metrics.response_relevancy": "ResponseRelevancy",
            "ragstone.metrics.retrieval_rank": "RetrievalRank",
            "ragstone.metrics.summarization_score": "SummarizationScore",
        },
    )
