"""The names that users import, and what they say of themselves. What importing costs: tests/packaging, tests/gates."""

import importlib
import inspect
from typing import get_origin

import pytest

import ragstone

WITH_ALL = [
    "ragstone",
    "ragstone.judging",
    "ragstone.metrics",
    "ragstone.live",
    "ragstone.report",
    "ragstone.testing",
    "ragstone.text",
]
PROMISED = (
    "Sample Score Unscored Verdict Usage SummarizationScore AlignmentCoverage ResponseRelevancy "
    "ResponseCompleteness ContextRelevancy Faithfulness LLM Embedder Metric Monitor OpenAICompatible Report aevaluate evaluate"
)
NO_EXAMPLE = {"LLM", "Embedder", "Outcome", "BadReply", "CannotScore", "EmbedRequest", "Meter", "__version__"}


def test_what_is_promised_is_there():
    for name in WITH_ALL:
        module = importlib.import_module(name)
        assert all(hasattr(module, n) for n in module.__all__)
    assert set(ragstone.__all__) >= set(PROMISED.split())
    assert dir(ragstone) == ragstone.__all__, "completion shows what is loaded later, too, and nothing else"


@pytest.mark.parametrize("name", WITH_ALL)
def test_everything_public_says_what_it_is(name):
    module = importlib.import_module(name)
    for thing in (getattr(module, n) for n in module.__all__):
        if get_origin(thing) or not (
            inspect.isclass(thing) or inspect.isfunction(thing)
        ):  # 3.10 takes aliases for classes
            continue
        own = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
        assert (own or "").strip(), thing
        if name == "ragstone" and thing.__name__ not in NO_EXAMPLE:
            assert ">>>" in own, thing
