"""`get_prompts` and `update_prompts` do what LlamaIndex's users expect: a changed prompt is what the judge reads."""

import pytest
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate

from ragstone import ContextRelevancy
from ragstone.testing import FakeLLM
from ragstone_llama_index import ContextRelevancyEvaluator, MetricEvaluator

from ..core.judges import metrics, step, truth  # noqa: TID252
from ..core.test_prompts import SAMPLE  # noqa: TID252

BRACES = 'Mine. {context_str} {"a": 1} %s'
GIVEN = {"query": SAMPLE.user_input, "response": SAMPLE.response, "contexts": list(SAMPLE.retrieved_contexts)}


def templates(evaluator: MetricEvaluator) -> dict[str, str]:
    return {name: prompt.get_template() for name, prompt in evaluator.get_prompts().items()}


def test_they_are_the_metric_s_instructions_by_step_and_every_one_can_be_changed() -> None:
    for metric in (*metrics(truth), *metrics(truth, "one_by_one")):
        evaluator = MetricEvaluator(metric)
        assert templates(evaluator) == dict(metric.prompts)
        evaluator.update_prompts({name: PromptTemplate(f"Mine: {name}.") for name in metric.prompts})
        evaluator.evaluate(**GIVEN)
        assert metric.llm.requests
        for request in metric.llm.requests:
            assert request.system.startswith(f"Mine: {step(request)}.")
        assert MetricEvaluator(metric).metric.version == type(metric).version  # it stays with that evaluator


def test_a_changed_prompt_is_what_the_judge_reads_and_shows_in_the_version() -> None:
    judge = FakeLLM(truth)
    evaluator = ContextRelevancyEvaluator(judge)
    before = evaluator.evaluate(**GIVEN)
    evaluator.update_prompts({"sentences": PromptTemplate(BRACES)})
    after = evaluator.evaluate(**GIVEN)
    first, second = judge.requests
    assert second.system.startswith(f"{BRACES}\n")
    assert second.user == first.user, "data, reminder and form of the reply are not the prompt's"
    assert after.version.startswith(f"{before.version}+")
    assert templates(evaluator)["sentences"] == BRACES
    evaluator.update_prompts({"sentences": PromptTemplate("Be {tone}. {other}").partial_format(tone="strict")})
    evaluator.evaluate(**GIVEN)
    assert judge.requests[2].system.startswith("Be strict. {other}\n")


def test_a_wrong_one_is_refused_at_once() -> None:
    evaluator = ContextRelevancyEvaluator(FakeLLM(truth))
    mapped = PromptTemplate("{a}", template_var_mappings={"a": "b"})
    for name, prompt, error, message in (
        ("eval_template", PromptTemplate("x"), ValueError, "'eval_template' is no step; there are sentences, copies"),
        ("sentences", PromptTemplate(" "), ValueError, "is blank"),
        ("sentences", mapped, TypeError, "sentences: has mappings of variables"),
        ("sentences", ChatPromptTemplate([]), TypeError, "sentences: is ChatPromptTemplate; pass a PromptTemplate"),
    ):
        with pytest.raises(error, match=message):
            evaluator.update_prompts({name: prompt})
    assert evaluator.metric.version == ContextRelevancy.version
