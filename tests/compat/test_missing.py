"""What ragas and DeepEval have and ragstone has not: scripts that import or mention it go on, until they use it."""

import copy
import pickle
import re
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from ragstone_compat.ragas.executor import run_async_tasks
from ragstone_compat.ragas.prompt import PydanticPrompt
from ragstone_compat.ragas.testset import transforms

from ragstone_compat.ragas import evaluate
from ragstone_compat.ragas import testset as sets
from ragstone_compat.ragas.metrics import ContextEntityRecall, Faithfulness, noise_sensitivity

ENTITIES = "ragas.metrics has no ContextEntityRecall: use LLMContextRecall"


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("ragas.metrics", "NoiseSensitivity", "use Faithfulness and ContextPrecision"),
        ("ragas.metrics._noise_sensitivity", "NoiseSensitivity", "use Faithfulness and ContextPrecision"),
        ("ragas.metrics.collections", "ContextEntityRecall", "use LLMContextRecall"),
        ("ragas.testset.evolutions", "simple", "make one with ragas"),
        ("ragas.testset.transforms", "default_transforms", "make one with ragas"),
        ("ragas.metrics.base", "MetricType", "a subclass of ragstone.Metric"),
        ("ragas.embeddings", "UnknownEmbeddings", "ragstone has nothing for it"),
        ("ragas.langchain.evalchain", "RagasEvaluatorChain", "has no RagasEvaluatorChain: "),
        ("deepeval.metrics", "HallucinationMetric", "use FaithfulnessMetric"),
        ("deepeval.metrics.base_metric", "BaseConversationalMetric", "score each answer as an LLMTestCase"),
        ("deepeval.tracing", "observe", "by a ragstone.Monitor"),
        ("deepeval.models", "AnthropicModel", 'pass model="langchain:anthropic:MODEL"'),
        ("deepeval.test_case", "MLLMTestCase", "scores texts, not images"),
        ("deepeval.scorer", "Scorer", "ragstone has nothing for it"),
    ],
)
def test_what_is_not_there_says_what_to_use(module: str, name: str, instead: str) -> None:
    names: dict[str, Any] = {}
    exec(f"from ragstone_compat.{module} import {name} as there", names)
    there = names["there"]
    with pytest.raises(NotImplementedError, match=re.escape(instead)):
        there(threshold=0.5)


def test_a_missing_module_is_no_other_ones_right_spelling() -> None:
    for name in ("multi_modal_relevances", "multi_modal_relevance"):
        import_module(f"ragstone_compat.ragas.metrics.{name}")


def test_what_is_not_there_can_be_mentioned() -> None:
    assert not isinstance(3, ContextEntityRecall)
    assert isinstance(3, (ContextEntityRecall, int))
    assert [ContextEntityRecall | None, None | ContextEntityRecall, list[ContextEntityRecall]]
    assert {noise_sensitivity: 0.5, PydanticPrompt[str, int]: 1}
    assert getattr(ContextEntityRecall, "__wrapped__", None) is None
    assert ENTITIES in repr(ContextEntityRecall)
    assert repr(pickle.loads(pickle.dumps(ContextEntityRecall))) == repr(copy.deepcopy(ContextEntityRecall))


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: ContextEntityRecall.score(3), ENTITIES),
        (lambda: setattr(ContextEntityRecall, "llm", 3), ENTITIES),
        (lambda: list(ContextEntityRecall), ENTITIES),
        (lambda: types.resolve_bases((PydanticPrompt[str, int], object)), "pass instructions= to a metric"),
        (lambda: evaluate([{"question": "Who?"}], [ContextEntityRecall]), ENTITIES),
        (lambda: sets.TestsetGenerator.from_langchain(3), "ragstone makes no test sets"),
        (lambda: transforms(3), "ragstone makes no test sets"),
        (lambda: run_async_tasks([]), "ragas.executor has no run_async_tasks"),
        (lambda: Faithfulness().multi_turn_ascore(3), "score each answer as an LLMTestCase or a SingleTurnSample"),
    ],
)
def test_what_is_not_there_is_refused_where_it_is_used(use: Callable[[], Any], said: str) -> None:
    with pytest.raises((NotImplementedError, AttributeError, TypeError), match=re.escape(said)):
        use()


@pytest.mark.parametrize(("library", "name"), [("ragas.exceptions", "RagasException"), ("deepeval.errors", "Any")])
def test_what_scripts_catch_is_an_exception(library: str, name: str) -> None:
    caught = getattr(import_module(f"ragstone_compat.{library}"), name)
    with pytest.raises(caught):
        raise caught("said")


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("ragas", "evalute", "evaluate"),
        ("ragas.metrics", "faithfulnes", "faithfulness"),
        ("ragas.metrics", "Faithfullness", "Faithfulness"),
        ("deepeval.test_case", "LLMTestCases", "LLMTestCase"),
    ],
)
def test_a_misspelt_name_is_refused_where_it_is_imported(module: str, name: str, meant: str) -> None:
    with pytest.raises(ImportError, match=f"{module} has no {name}; did you mean {meant}"):
        exec(f"from ragstone_compat.{module} import {name}")


def test_nothing_is_found_outside_the_libraries() -> None:
    for name in ("ragstone_compat.raga", "ragas_of_nobody", "ragstone_compat.ragas.metrics.__main__"):
        with pytest.raises(ModuleNotFoundError):
            import_module(name)
