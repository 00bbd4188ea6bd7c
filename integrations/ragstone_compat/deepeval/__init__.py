"""Scripts for DeepEval run on ragstone where their imports name `ragstone_compat.deepeval` in the place of `deepeval`.

    from ragstone_compat.deepeval import assert_test, evaluate
    from ragstone_compat.deepeval.metrics import FaithfulnessMetric, GEval
    from ragstone_compat.deepeval.test_case import LLMTestCase

What is not there can be imported and named; where it is used, it says what to use instead. `deepeval test run` is not
there: run `pytest`.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ragstone_compat import missing
from ragstone_compat.deepeval import dataset, metrics, models, test_case
from ragstone_compat.deepeval import evaluate as _evaluate
from ragstone_compat.deepeval.evaluate import assert_test as assert_test
from ragstone_compat.deepeval.evaluate import evaluate as evaluate

__getattr__ = partial(missing.missing_name, __name__)
_MODULES = {
    "dataset": dataset,
    "dataset.dataset": dataset,
    "dataset.golden": dataset,
    "evaluate": _evaluate,
    "evaluate.configs": _evaluate,
    "evaluator": _evaluate,
    "metrics": metrics,
    "metrics.answer_relevancy": metrics,
    "metrics.answer_relevancy.answer_relevancy": metrics,
    "metrics.base_metric": metrics,
    "metrics.contextual_precision": metrics,
    "metrics.contextual_recall": metrics,
    "metrics.contextual_relevancy": metrics,
    "metrics.faithfulness": metrics,
    "metrics.faithfulness.faithfulness": metrics,
    "metrics.g_eval": metrics,
    "metrics.g_eval.g_eval": metrics,
    "metrics.summarization": metrics,
    "models": models,
    "models.base_model": models,
    "models.gpt_model": models,
    "models.llms": models,
    "models.llms.openai_model": models,
    "test_case": test_case,
    "test_case.llm_test_case": test_case,
}
missing.register(__name__, _MODULES)


def login(*_: object, **__: object) -> None:
    """Say that nothing is sent anywhere."""
    print("ragstone: login: nothing is sent anywhere, so there is nothing to log in to", file=sys.stderr)


login_with_confident_api_key = login_with_api_key = login


def log_hyperparameters(*_: object, **__: object) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing: there is no hosted platform to log to."""
    return lambda function: function
