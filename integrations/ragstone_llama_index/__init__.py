"""ragstone for LlamaIndex: its models as judges, the metrics as its evaluators, and live traffic scored.

Nothing of LlamaIndex is loaded until a name is used: `import llama_index.core` takes seconds.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.adapters.preview import Preview as Preview
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
    from ragstone_llama_index.previews import apreview as apreview, preview as preview
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
            "ragstone.adapters.preview": "Preview",
            "ragstone_llama_index.evaluator": "MetricEvaluator MetricResult",
            "ragstone_llama_index.handler": "contexts instrument uninstrument",
            "ragstone_llama_index.models": "LlamaIndexEmbedder LlamaIndexLLM",
            "ragstone_llama_index.previews": "apreview preview",
            "ragstone_llama_index.query_engine": "aevaluate_query_engine evaluate_query_engine",
            "ragstone_llama_index.read": "Reading sample_of",
            "ragstone_llama_index.shared_model": "JUDGE_TAG",
        },
        framework="llama_index.core",
        extra="llama-index",
    )
