"""ragstone: the touchstone for retrieval-augmented generation."""

from ragstone._version import __version__
from ragstone.judge import LLM, BaseEmbedder, BaseLLM, Embedder, LLMReply, LLMRequest
from ragstone.metrics import (
    AlignmentCoverage,
    ContextRelevancy,
    Metric,
    ResponseRelevancy,
    SummarizationScore,
)
from ragstone.outcome import Evidence, Outcome, Score, Unscored, Usage, Verdict
from ragstone.sample import Sample

__all__ = [
    "LLM",
    "AlignmentCoverage",
    "BaseEmbedder",
    "BaseLLM",
    "ContextRelevancy",
    "Embedder",
    "Evidence",
    "LLMReply",
    "LLMRequest",
    "Metric",
    "Outcome",
    "ResponseRelevancy",
    "Sample",
    "Score",
    "SummarizationScore",
    "Unscored",
    "Usage",
    "Verdict",
    "__version__",
]
