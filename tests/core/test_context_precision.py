"""ContextPrecision: the answer that contexts are useful for, and its expectation against all verdicts."""

import itertools
import random

import pytest

from ragstone import ContextPrecision, Sample
from ragstone.metrics.context_precision import expected_precision
from ragstone.testing import FakeLLM

from ..support.judges import fenced  # noqa: TID252


def sample(n, **more):
    return Sample(user_input="Who?", retrieved_contexts=[f"Text {i}." for i in range(n)], **{"response": "Ann."} | more)


def as_deepeval_writes_it(verdicts):
    total, hits = 0.0, 0
    for k, useful in enumerate(verdicts, 1):
        if useful:
            hits += 1
            total += hits / k
    return total / hits if hits else 0


@pytest.mark.parametrize(
    ("options", "more", "answer"),
    [
        ({}, {"reference": "Bob."}, "Bob."),
        ({}, {}, "Ann."),
        ({}, {"reference": ""}, "Ann."),
        ({}, {"reference": " \u200b"}, "Ann."),
        ({"against": "response"}, {"reference": "Bob."}, "Ann."),
        ({"against": "reference"}, {"reference": "Bob."}, "Bob."),
    ],
)
def test_contexts_are_useful_for_the_reference_else_for_the_response(options, more, answer):
    llm = FakeLLM({"answers": {"1": "yes"}})
    ContextPrecision(llm=llm, **options).score(sample(1, **more))
    assert fenced(llm.requests[0])[0]["answer"] == answer


@pytest.mark.parametrize(
    ("options", "given", "detail"),
    [
        ({}, {"response": None}, "reference, response: are missing"),
        ({}, {"reference": " ", "response": ""}, "reference, response: are missing"),
        ({"against": "reference"}, {}, "reference: is missing"),
        ({}, {"retrieved_contexts": []}, "retrieved_contexts"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_asked(options, given, detail):
    llm = FakeLLM({"answers": {"1": "yes"}})
    outcome = ContextPrecision(llm=llm, **options).score(sample(1).model_copy(update=given))
    assert (outcome.reason, llm.requests) == ("missing_input", []) or outcome.reason == "empty_input"
    assert detail in outcome.detail


@pytest.mark.parametrize("seed", range(5))
def test_the_expected_score_is_the_mean_over_all_verdicts(seed):
    chance = random.Random(seed)
    shares = [chance.choice([0.0, 1.0, chance.random(), chance.random()]) for _ in range(10)]
    exact = 0.0
    for verdicts in itertools.product((0, 1), repeat=10):
        weight = 1.0
        for p, verdict in zip(shares, verdicts, strict=True):
            weight *= p if verdict else 1 - p
        exact += weight * as_deepeval_writes_it(verdicts)
    assert expected_precision(shares) == pytest.approx(exact, abs=1e-9)
