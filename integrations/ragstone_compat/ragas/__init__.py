"""Scripts for ragas run on ragstone where their imports name `ragstone_compat.ragas` in the place of `ragas`.

    from ragstone_compat.ragas import EvaluationDataset, evaluate
    from ragstone_compat.ragas.metrics import Faithfulness, answer_relevancy
    from ragstone_compat.ragas.llms import LangchainLLMWrapper

What is not there can be imported and named; where it is used, it says what to use instead.
"""

from functools import partial

from ragstone import __version__ as __version__
from ragstone_compat import missing
from ragstone_compat.ragas import (
    dataset_schema,
    embeddings,
    evaluation,
    integrations,
    llms,
    metrics,
    run_config,
)
from ragstone_compat.ragas.dataset_schema import EvaluationDataset as EvaluationDataset
from ragstone_compat.ragas.dataset_schema import SingleTurnSample as SingleTurnSample
from ragstone_compat.ragas.evaluation import aevaluate as aevaluate
from ragstone_compat.ragas.evaluation import evaluate as evaluate
from ragstone_compat.ragas.metrics import base
from ragstone_compat.ragas.run_config import RunConfig as RunConfig

__getattr__ = partial(missing.missing_name, __name__)
_METRICS = (
    "answer_correctness", "answer_relevance", "answer_similarity", "aspect_critic", "context_precision",
    "context_recall", "context_relevancy", "factual_correctness", "faithfulness", "simple_criteria", "summarization",
)  # fmt: skip
_COLLECTIONS = (
    "answer_correctness", "answer_relevancy", "context_precision", "context_recall", "factual_correctness",
    "faithfulness", "summary_score",
)  # fmt: skip
_MODULES = {
    **{f"metrics._{name}": metrics for name in _METRICS},
    **{f"metrics.{name}": metrics for name in ("critique", "result")},
    **{f"metrics.collections.{name}": metrics for name in _COLLECTIONS},
    **{f"metrics.collections.{name}.metric": metrics for name in _COLLECTIONS},
    **{f"integrations.{name}": integrations for name in ("langchain", "llama_index")},
    "dataset_schema": dataset_schema,
    "embeddings": embeddings,
    "embeddings.base": embeddings,
    "evaluation": evaluation,
    "integrations": integrations,
    "llms": llms,
    "llms.base": llms,
    "metrics": metrics,
    "metrics.base": base,
    "metrics.collections": metrics,
    "run_config": run_config,
    "utils": dataset_schema,
}
missing.register(__name__, _MODULES)
