"""What a judge raises becomes an outcome, with its reason and what was spent; what is no failure passes."""

import asyncio

import pytest

from ragstone import AlignmentCoverage, ContextRelevancy, Sample
from ragstone.metrics.safely import ascore_safely, score_safely
from ragstone.testing import FakeLLM

from .judges import step, truth

SAMPLE = Sample(user_input="Which say word1?", retrieved_contexts=["It has word1 here."], response="It has word1 here.")


def both(metric):
    return [score_safely(metric, SAMPLE), asyncio.run(ascore_safely(metric, SAMPLE))]


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (ConnectionError("refused"), "judge_error", "ConnectionError: refused"),
        (TimeoutError("no reply in 5 s"), "timeout", "TimeoutError: no reply in 5 s"),
        (ValueError("x" * 9_999), "judge_error", "ValueError: " + "x" * 500),
    ],
)
def test_an_error_is_an_outcome(error, reason, detail):
    for outcome in both(ContextRelevancy(llm=FakeLLM(lambda request: error))):
        assert (outcome.reason, outcome.detail) == (reason, detail)
        assert outcome.usage.llm_calls == 1


def test_what_was_spent_before_it_failed_is_known():
    def second_round_fails(request):
        return truth(request) if step(request) in ("claims", "questions") else ConnectionError("gone")

    for outcome in both(AlignmentCoverage(llm=FakeLLM(second_round_fails), source="retrieved_contexts")):
        assert outcome.reason == "judge_error"
        assert outcome.usage.llm_calls == 5


def test_an_outcome_passes():
    for outcome in both(ContextRelevancy(llm=FakeLLM(truth))):
        assert outcome.value == 1.0


def test_what_is_no_exception_is_not_swallowed():
    def stop(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_safely(ContextRelevancy(llm=FakeLLM(stop)), SAMPLE)
