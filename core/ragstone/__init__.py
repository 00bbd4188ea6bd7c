"""ragstone: the touchstone for retrieval-augmented generation."""

from typing import TYPE_CHECKING

from ragstone._version import __version__
from ragstone.judge import LLM, BaseEmbedder, BaseLLM, Embedder, LLMReply, LLMRequest
from ragstone.metrics import (
    AlignmentCoverage,
    ContextRelevancy,
    Metric,
    ResponseRelevancy,
    SummarizationScore,
)
from ragstone.outcome import Evidence, Outcome, Score, Suspicion, Unscored, Usage, Verdict
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.batch import Report, aevaluate, evaluate
    from ragstone.monitor import Monitor

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
    "Monitor",
    "Outcome",
    "Report",
    "ResponseRelevancy",
    "Sample",
    "Score",
    "SummarizationScore",
    "Suspicion",
    "Unscored",
    "Usage",
    "Verdict",
    "__version__",
    "aevaluate",
    "evaluate",
]

# Loaded by those who use them: they would add a third to everybody's import.
_LATER = {
    "Monitor": "ragstone.monitor",
    "Report": "ragstone.batch",
    "aevaluate": "ragstone.batch",
    "evaluate": "ragstone.batch",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
