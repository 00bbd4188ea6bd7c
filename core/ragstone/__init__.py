"""ragstone: the touchstone for retrieval-augmented generation."""

from typing import TYPE_CHECKING

from ragstone import metrics
from ragstone._version import __version__
from ragstone.judge import LLM, BaseEmbedder, BaseLLM, Embedder, LLMReply, LLMRequest
from ragstone.metrics import *  # noqa: F403 - so that a new metric is named in one place
from ragstone.outcome import Evidence, Outcome, Score, Suspicion, Unscored, Usage, Verdict
from ragstone.sample import Sample, Turn

if TYPE_CHECKING:
    from ragstone.batch.evaluate import aevaluate, evaluate
    from ragstone.clients import OpenAICompatible
    from ragstone.live import Monitor, trace_id
    from ragstone.report import Report

__all__ = [
    "LLM",
    "BaseEmbedder",
    "BaseLLM",
    "Embedder",
    "Evidence",
    "LLMReply",
    "LLMRequest",
    "Monitor",
    "OpenAICompatible",
    "Outcome",
    "Report",
    "Sample",
    "Score",
    "Suspicion",
    "Turn",
    "Unscored",
    "Usage",
    "Verdict",
    "__version__",
    "aevaluate",
    "evaluate",
    "trace_id",
]
__all__ += metrics.__all__

# Loaded by those who use them: they would add a third to everybody's import.
_LATER = {
    "Monitor": "ragstone.live",
    "OpenAICompatible": "ragstone.clients",
    "Report": "ragstone.batch",
    "aevaluate": "ragstone.batch",
    "evaluate": "ragstone.batch",
    "trace_id": "ragstone.live",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
