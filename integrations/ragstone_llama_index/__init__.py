"""ragstone for LlamaIndex: its models as judges, the metrics as its evaluators, and live traffic scored.

Nothing of LlamaIndex is loaded until a name is used: `import llama_index.core` takes seconds.
"""

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

_core = None
with suppress(ModuleNotFoundError):  # there is no llama_index at all
    _core = find_spec("llama_index.core")
if _core is None:
    raise ImportError('ragstone_llama_index needs llama-index-core: pip install "ragstone[llama-index]"')

if TYPE_CHECKING:
    from ragstone_llama_index.evaluator import (
        MetricEvaluator as MetricEvaluator,
        MetricResult as MetricResult,
        aevaluate_query_engine as aevaluate_query_engine,
        evaluate_query_engine as evaluate_query_engine,
    )
    from ragstone_llama_index.legacy import MonitorCallbackHandler as MonitorCallbackHandler
    from ragstone_llama_index.models import (
        LlamaIndexEmbedder as LlamaIndexEmbedder,
        LlamaIndexLLM as LlamaIndexLLM,
    )
    from ragstone_llama_index.recorder import contexts as contexts
    from ragstone_llama_index.shared_model import JUDGE_TAG as JUDGE_TAG
    from ragstone_llama_index.spans import instrument as instrument, uninstrument as uninstrument
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone_llama_index.evaluator": (
                "MetricEvaluator MetricResult aevaluate_query_engine evaluate_query_engine"
            ),
            "ragstone_llama_index.legacy": "MonitorCallbackHandler",
            "ragstone_llama_index.models": "LlamaIndexEmbedder LlamaIndexLLM",
            "ragstone_llama_index.recorder": "contexts",
            "ragstone_llama_index.shared_model": "JUDGE_TAG",
            "ragstone_llama_index.spans": "instrument uninstrument",
        },
    )
