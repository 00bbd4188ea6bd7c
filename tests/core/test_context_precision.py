"""ContextPrecision against average precision as others write it, and its expectation against all verdicts."""

import itertools
import random

import pytest

from ragstone import ContextPrecision, LLMReply, Sample
from ragstone.metrics.context_precision import expected_precision
from ragstone.testing import FakeLLM

from ..support.judges import fenced  # noqa: TID252


def sample(n, **more):
    return Sample(user_input="Who?", retrieved_contexts=[f"Text {i}." for i in range(n)], **{"response": "Ann."} | more)


def saying(verdicts):
    return FakeLLM(lambda _: {"answers": {str(i): "yes" if v else "no" for i, v in enumerate(verdicts, 1)}})


def as_ragas_writes_it(verdicts):
    precisions = [sum(verdicts[: i + 1]) / (i + 1) * v for i, v in enumerate(verdicts)]
    return sum(precisions) / (sum(verdicts) + 1e-10)


def as_deepeval_writes_it(verdicts):
    total, hits = 0.0, 0
    for k, useful in enumerate(verdicts, 1):
        if useful:
            hits += 1
            total += hits / k
    return total / hits if hits else 0


@pytest.mark.parametrize("seed", range(30))
def test_it_is_average_precision(seed):
    chance = random.Random(seed)
    verdicts = [chance.random() < 0.5 for _ in range(1 + seed % 12)]
    outcome = ContextPrecision(llm=saying(verdicts)).score(sample(len(verdicts)))
    assert (
        outcome.value == pytest.approx(as_ragas_writes_it(verdicts)) == pytest.approx(as_deepeval_writes_it(verdicts))
    )
    assert outcome.usage.llm_calls == 1
    assert outcome.breakdown["useful"] == sum(verdicts)
    assert outcome.breakdown.get("first_useful") == (verdicts.index(True) + 1 if any(verdicts) else None)


def test_equal_contexts_count_at_their_own_ranks_and_blank_ones_are_not_asked_about():
    llm = saying([1, 0, 1])
    outcome = ContextPrecision(llm=llm).score(
        Sample(user_input="Who?", retrieved_contexts=["Ann did.", " \u200b", "It rained.", "Ann did."], response="Ann.")
    )
    assert [v.verdict for v in outcome.verdicts] == ["useful", "useless", "useless", "useful"]
    assert outcome.value == pytest.approx((1 + 2 / 4) / 2)
    assert [(e.chunk, e.start, e.end) for v in outcome.verdicts for e in v.evidence] == [
        (0, 0, 8),
        (1, 0, 2),
        (2, 0, 10),
        (3, 0, 8),
    ]
    assert fenced(llm.requests[0])[0]["contexts"] == "[1] Ann did.\n[2] It rained.\n[3] Ann did."


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
    llm = saying([1])
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
    llm = saying([1])
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


def test_one_by_one_with_probabilities():
    shares = {"Text 0.": 0.2, "Text 1.": 0.9}

    def reply(request):
        p = shares[fenced(request)[0]["context"]]
        return LLMReply("yes" if p > 0.5 else "no", probabilities={"yes": p, "no": 1 - p})

    llm = FakeLLM(reply, asking="one_by_one")
    outcome = ContextPrecision(llm=llm).score(sample(2))
    assert (outcome.value, outcome.usage.llm_calls) == (0.5, 2)
    assert outcome.breakdown["expected"] == pytest.approx(expected_precision([0.2, 0.9]))
    assert list(fenced(llm.requests[0])[0]) == ["question", "answer", "context"], "what requests share comes first"
    assert ContextPrecision(llm=llm, scoring="expected").score(sample(2)).value == outcome.breakdown["expected"]
