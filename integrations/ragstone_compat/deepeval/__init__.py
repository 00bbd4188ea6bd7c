"""Scripts for DeepEval run on ragstone where their imports name `ragstone_compat.deepeval` in the place of `deepeval`.

    from ragstone_compat.deepeval import assert_test, evaluate
    from ragstone_compat.deepeval.metrics import FaithfulnessMetric, GEval
    from ragstone_compat.deepeval.test_case import LLMTestCase

What is not there is an ImportError that names what to use instead. `deepeval test run` is not there: run `pytest`.
"""

import sys
from collections.abc import Callable
from typing import Any

from ragstone_compat.deepeval import evaluate as _evaluate
from ragstone_compat.deepeval import missing as _missing
from ragstone_compat.deepeval import models
from ragstone_compat.deepeval.evaluate import assert_test as assert_test
from ragstone_compat.deepeval.evaluate import evaluate as evaluate

__getattr__ = _missing.missing(__name__)
_NOT_THERE = (
    "integrations", "integrations.langchain", "metrics.dag", "metrics.ragas", "prompt", "red_teaming", "simulator",
    "synthesizer", "test_run", "tracing", "vulnerability",
)  # fmt: skip
# Scripts also import from modules that DeepEval has or had inside, and from some that have no counterpart.
sys.modules.update(
    {
        **{f"{__name__}.models.{name}": models for name in ("gpt_model", "llms", "llms.openai_model")},
        **{f"{__name__}.{name}": _missing for name in _NOT_THERE},
        f"{__name__}.evaluator": _evaluate,
    }
)


def login(*_: object, **__: object) -> None:
    """Say that nothing is sent anywhere."""
    print("ragstone: login: nothing is sent anywhere, so there is nothing to log in to", file=sys.stderr)


login_with_confident_api_key = login_with_api_key = login


def log_hyperparameters(*_: object, **__: object) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing: there is no hosted platform to log to."""
    return lambda function: function
