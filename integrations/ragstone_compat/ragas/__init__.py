"""Scripts for ragas run on ragstone where their imports name `ragstone_compat.ragas` in the place of `ragas`.

    from ragstone_compat.ragas import EvaluationDataset, evaluate
    from ragstone_compat.ragas.metrics import Faithfulness, answer_relevancy
    from ragstone_compat.ragas.llms import LangchainLLMWrapper

What is not there is an ImportError that names what to use instead.
"""

import sys

from ragstone import __version__ as __version__
from ragstone_compat.ragas import dataset_schema, embeddings, integrations, llms, metrics, missing
from ragstone_compat.ragas.dataset_schema import EvaluationDataset as EvaluationDataset
from ragstone_compat.ragas.dataset_schema import SingleTurnSample as SingleTurnSample
from ragstone_compat.ragas.evaluation import aevaluate as aevaluate
from ragstone_compat.ragas.evaluation import evaluate as evaluate
from ragstone_compat.ragas.metrics import collections
from ragstone_compat.ragas.missing import refuse as __getattr__  # noqa: F401 - for what is not there
from ragstone_compat.ragas.run_config import RunConfig as RunConfig

_METRICS = (
    "answer_correctness", "answer_relevance", "answer_similarity", "aspect_critic", "context_precision",
    "context_recall", "context_relevancy", "factual_correctness", "faithfulness", "simple_criteria", "summarization",
)  # fmt: skip
_COLLECTIONS = (
    "answer_correctness", "answer_relevancy", "context_precision", "context_recall", "factual_correctness",
    "faithfulness", "summary_score",
)  # fmt: skip
_NOT_THERE = (
    "backends", "cache", "callbacks", "experiment", "integrations.helicone", "messages", "optimizers", "prompt",
    "settings", "testset", "testset.evolutions", "testset.generator", "testset.graph", "testset.synthesizers",
    "testset.transforms",
)  # fmt: skip
# Scripts also import from modules that ragas has inside, and from some that have no counterpart.
sys.modules.update(
    {
        **{f"{__name__}.metrics._{name}": metrics for name in _METRICS},
        **{f"{__name__}.metrics.{name}": metrics for name in ("critique", "result")},
        **{f"{__name__}.metrics.collections.{name}": collections for name in _COLLECTIONS},
        **{f"{__name__}.metrics.collections.{name}.metric": collections for name in _COLLECTIONS},
        **{f"{__name__}.{name}": missing for name in _NOT_THERE},
        **{f"{__name__}.integrations.{name}": integrations for name in ("langchain", "llama_index")},
        f"{__name__}.embeddings.base": embeddings,
        f"{__name__}.utils": dataset_schema,
        f"{__name__}.llms.base": llms,
    }
)
