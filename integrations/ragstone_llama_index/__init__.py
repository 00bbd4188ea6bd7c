"""ragstone for LlamaIndex: its models as judges, the metrics as its evaluators, and live traffic scored.

Nothing of LlamaIndex is loaded until a name is used: `import llama_index.core` takes seconds.
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone_llama_index.embedder import LlamaIndexEmbedder
    from ragstone_llama_index.evaluator import MetricEvaluator, MetricResult
    from ragstone_llama_index.legacy import MonitorCallbackHandler
    from ragstone_llama_index.llm import LlamaIndexLLM
    from ragstone_llama_index.query_engine import aevaluate_query_engine, evaluate_query_engine
    from ragstone_llama_index.spans import instrument, uninstrument
    from ragstone_llama_index.tracing import JUDGE_TAG

__all__ = [
    "JUDGE_TAG",
    "LlamaIndexEmbedder",
    "LlamaIndexLLM",
    "MetricEvaluator",
    "MetricResult",
    "MonitorCallbackHandler",
    "aevaluate_query_engine",
    "evaluate_query_engine",
    "instrument",
    "uninstrument",
]

_HOME = {
    "JUDGE_TAG": "tracing",
    "LlamaIndexEmbedder": "embedder",
    "LlamaIndexLLM": "llm",
    "MetricEvaluator": "evaluator",
    "MetricResult": "evaluator",
    "MonitorCallbackHandler": "legacy",
    "aevaluate_query_engine": "query_engine",
    "evaluate_query_engine": "query_engine",
    "instrument": "spans",
    "uninstrument": "spans",
}


def _has_core() -> bool:
    try:
        return find_spec("llama_index.core") is not None
    except ModuleNotFoundError:  # there is no llama_index at all
        return False


if not _has_core():
    raise ImportError('ragstone_llama_index needs llama-index-core: pip install "ragstone[llama-index]"')


if not TYPE_CHECKING:  # else a checker would take any name for one that there is

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
