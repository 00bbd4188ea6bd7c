"""Our evaluators in LlamaIndex's BatchEvalRunner."""

import asyncio

import pytest
from llama_index.core.evaluation import BatchEvalRunner

from ragstone.testing import FakeLLM
from ragstone_llama_index import (
    AlignmentCoverageEvaluator,
    ContextRelevancyEvaluator,
    ResponseRelevancyEvaluator,
)

from .models import Chatting, Completing, Placing, truth

COUNT, FAILING = 12, 7


def evaluators(llm):
    return {
        "alignment": AlignmentCoverageEvaluator(llm, n_questions=1),
        "response": ResponseRelevancyEvaluator(llm, Placing()),
        "context": ContextRelevancyEvaluator(llm),
    }


INPUTS = {
    "queries": [f"Which say word{i}?" for i in range(COUNT)],
    "response_strs": [f"It has word{i} here." for i in range(COUNT)],
    "contexts_list": [[f"It has word{i} here. More of it follows."] for i in range(COUNT)],
}


def fails_for_one(request):
    """A judge that is never there for one sample of many."""
    if f"word{FAILING} " in request.user or f"word{FAILING}?" in request.user:
        return ConnectionError("gone")
    return truth(request)


def sync_run(runner):
    return runner.evaluate_response_strs(**INPUTS)


def async_run(runner):
    return asyncio.run(runner.aevaluate_response_strs(**INPUTS))


def notebook_run(runner):
    async def cell():
        return sync_run(runner)

    return asyncio.run(cell())


@pytest.mark.parametrize(
    ("run", "model"), [(sync_run, Completing), (async_run, Chatting), (notebook_run, Chatting), (async_run, FakeLLM)]
)
def test_one_failing_sample_costs_the_others_nothing_run_after_run(run, model):
    """Each run has an event loop of its own; the model's object is awaited from the first alone."""
    llm = model(fails_for_one)
    made = evaluators(llm)
    for _ in range(2):
        results = run(BatchEvalRunner(made))
        assert set(results) == {"alignment", "response", "context"}
        for of_metric in results.values():
            assert [result.response for result in of_metric] == INPUTS["response_strs"]  # in order
            failed = of_metric.pop(FAILING)
            assert (failed.score, failed.invalid_reason) == (None, "judge_error: ConnectionError: gone")
            assert [result.unscored for result in of_metric] == [None] * (COUNT - 1)
    if model is Chatting:
        assert len({loop for loop in llm.script.loops if loop is not None}) <= 1


def test_a_failing_judge_is_not_asked_again():
    """LlamaIndex retries what is raised three times, with seconds in between."""
    llm = FakeLLM(fails_for_one)
    sync_run(BatchEvalRunner({"context": ContextRelevancyEvaluator(llm)}))
    assert len(llm.requests) == COUNT
