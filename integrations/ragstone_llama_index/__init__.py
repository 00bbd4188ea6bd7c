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
    )
    from ragstone_llama_index.handler import (
        contexts as contexts,
        instrument as instrument,
        uninstrument as uninstrument,
    )
    from ragstone_llama_index.models import (
        LlamaIndexEmbedder as LlamaIndexEmbedder,
        LlamaIndexLLM as LlamaIndexLLM,
    )
    from ragstone_llama_index.query_engine import (
        aevaluate_query_engine as aevaluate_query_engine,
        evaluate_query_engine as evaluate_query_engine,
    )
    from ragstone_llama_index.read import Reading as Reading, sample_of as sample_of
    from ragstone_llama_index.shared_model import JUDGE_TAG as JUDGE_TAG
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone_llama_index.evaluator": "MetricEvaluator MetricResult",
            "ragstone_llama_index.handler": "contexts instrument uninstrument",
            "ragstone_llama_index.models": "LlamaIndexEmbedder LlamaIndexLLM",
            "ragstone_llama_index.query_engine": "aevaluate_query_engine evaluate_query_engine",
            "ragstone_llama_index.read": "Reading sample_of",
            "ragstone_llama_index.shared_model": "JUDGE_TAG",
        },
    )
