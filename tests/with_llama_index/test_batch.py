"""Our evaluators in LlamaIndex's BatchEvalRunner."""

import asyncio

import pytest
from llama_index.core.evaluation import BatchEvalRunner

from ragstone.testing import FakeLLM
from ragstone_llama_index import (
    AlignmentCoverageEvaluator,
    ContextRelevancyEvaluator,
    ResponseRelevancyEvaluator,
    SummarizationScoreEvaluator,
)

from .models import Chatting, Completing, Placing, fenced, truth
from .monitored import engine

COUNT = 40
FAILING = 37


def evaluators(llm):
    return {
        "summary": SummarizationScoreEvaluator(llm),
        "alignment": AlignmentCoverageEvaluator(llm, n_questions=1),
        "response": ResponseRelevancyEvaluator(llm, Placing()),
        "context": ContextRelevancyEvaluator(llm),
    }


def inputs(count):
    return {
        "queries": [f"Which say word{i}?" for i in range(count)],
        "response_strs": [f"It has word{i} here." for i in range(count)],
        "contexts_list": [[f"It has word{i} here. More of it follows."] for i in range(count)],
    }


def fails_for_one(request):
    """A judge that is never there for one sample of many."""
    if f"word{FAILING} " in request.user or f"word{FAILING}?" in request.user:
        return ConnectionError("gone")
    return truth(request)


def sync_run(runner, **given):
    return runner.evaluate_response_strs(**given)


def async_run(runner, **given):
    return asyncio.run(runner.aevaluate_response_strs(**given))


def notebook_run(runner, **given):
    async def cell():
        return runner.evaluate_response_strs(**given)

    return asyncio.run(cell())


@pytest.mark.parametrize(
    ("run", "model"), [(sync_run, Completing), (async_run, Chatting), (notebook_run, Chatting), (async_run, FakeLLM)]
)
def test_one_failing_sample_costs_the_others_nothing(run, model):
    results = run(BatchEvalRunner(evaluators(model(fails_for_one))), **inputs(COUNT))
    assert set(results) == {"summary", "alignment", "response", "context"}
    for of_metric in results.values():
        assert [result.response for result in of_metric] == inputs(COUNT)["response_strs"]  # in order
        failed = of_metric.pop(FAILING)
        assert (failed.invalid_result, failed.score) == (True, None)
        assert failed.invalid_reason == "judge_error: ConnectionError: gone"
        assert [result.unscored for result in of_metric] == [None] * (COUNT - 1)


def test_a_failing_judge_is_not_asked_again():
    """LlamaIndex retries what is raised three times, with seconds in between."""
    llm = FakeLLM(fails_for_one)
    sync_run(BatchEvalRunner({"context": ContextRelevancyEvaluator(llm)}), **inputs(COUNT))
    of_failing = [request for request in llm.requests if fenced(request)[0]["question"] == f"Which say word{FAILING}?"]
    assert (len(llm.requests), len(of_failing)) == (COUNT, 1)


@pytest.mark.parametrize("run", [sync_run, async_run, notebook_run])
def test_the_same_evaluators_again_and_again(run):
    """A notebook: each run has an event loop of its own; the model's object is awaited from the first alone."""
    llm = Chatting(truth)
    made = evaluators(llm)
    for _ in range(3):
        results = run(BatchEvalRunner(made, workers=4), **inputs(3))
        assert {result.unscored for of_metric in results.values() for result in of_metric} == {None}
    assert len({loop for loop in llm.script.loops if loop is not None}) <= 1


@pytest.mark.parametrize("streaming", [False, True])
def test_a_real_query_engine(streaming):
    texts = [f"It has word{i} here." for i in range(3)]
    runner = BatchEvalRunner({"context": ContextRelevancyEvaluator(Chatting(truth))}, workers=4)
    results = runner.evaluate_queries(engine(texts=texts, streaming=streaming), queries=inputs(3)["queries"])
    assert [result.score for result in results["context"]] == [pytest.approx(1 / 3)] * 3
    assert [sorted(result.contexts) for result in results["context"]] == [texts] * 3
