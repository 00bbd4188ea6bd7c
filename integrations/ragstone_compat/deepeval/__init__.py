"""Scripts for DeepEval run on ragstone where their imports name `ragstone_compat.deepeval` in the place of `deepeval`.

    from ragstone_compat.deepeval import assert_test, evaluate
    from ragstone_compat.deepeval.metrics import FaithfulnessMetric, GEval
    from ragstone_compat.deepeval.test_case import LLMTestCase

What is not there is an ImportError that names what to use instead. `deepeval test run` is not there: run `pytest`.
"""

from collections.abc import Callable
from typing import Any

from ragstone_compat.deepeval.evaluate import assert_test as assert_test
from ragstone_compat.deepeval.evaluate import evaluate as evaluate
from ragstone_compat.deepeval.missing import missing

__getattr__ = missing(__name__)


def log_hyperparameters(*_: object, **__: object) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing: there is no hosted platform to log to."""
    return lambda function: function
