"""ragstone for LlamaIndex: its models as judges, the metrics as its evaluators, and live traffic scored.

Nothing of LlamaIndex is loaded until a name is used: `import llama_index.core` takes seconds.
"""

import importlib
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone_llama_index.evaluator import (
        MetricEvaluator,
        MetricResult,
        aevaluate_query_engine,
        evaluate_query_engine,
    )
    from ragstone_llama_index.legacy import MonitorCallbackHandler
    from ragstone_llama_index.models import LlamaIndexEmbedder, LlamaIndexLLM
    from ragstone_llama_index.recorder import contexts
    from ragstone_llama_index.shared_model import JUDGE_TAG
    from ragstone_llama_index.spans import instrument, uninstrument

__all__ = [
    "JUDGE_TAG",
    "LlamaIndexEmbedder",
    "LlamaIndexLLM",
    "MetricEvaluator",
    "MetricResult",
    "MonitorCallbackHandler",
    "aevaluate_query_engine",
    "contexts",
    "evaluate_query_engine",
    "instrument",
    "uninstrument",
]

_core = None
with suppress(ModuleNotFoundError):  # there is no llama_index at all
    _core = find_spec("llama_index.core")
if _core is None:
    raise ImportError('ragstone_llama_index needs llama-index-core: pip install "ragstone[llama-index]"')


if not TYPE_CHECKING:  # else a checker would take any name for one that there is
    _MODULES = dict.fromkeys(("MetricEvaluator", "MetricResult"), "evaluator")
    _MODULES |= dict.fromkeys(("aevaluate_query_engine", "evaluate_query_engine"), "evaluator")
    _MODULES |= dict.fromkeys(("instrument", "uninstrument"), "spans")
    _MODULES |= dict.fromkeys(("LlamaIndexEmbedder", "LlamaIndexLLM"), "models")
    _MODULES |= {"JUDGE_TAG": "shared_model", "MonitorCallbackHandler": "legacy", "contexts": "recorder"}

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
