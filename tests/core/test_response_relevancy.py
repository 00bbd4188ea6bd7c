"""ResponseRelevancy: vectors, draws, and the cut that decides on refusals."""

import math

import numpy as np
import pytest

from ragstone import ResponseRelevancy, Sample, evaluate
from ragstone.metrics.fitted import OPEN, REFUSED
from ragstone.outcome import cause_of
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import fenced, graded, step, truth  # noqa: TID252

SAMPLE = Sample(user_input="asked", response="The response.")


def placed(rows):
    """An embedder that returns these rows, whatever the texts."""
    return FakeEmbedder(vectors=lambda texts: rows)


def asking(*flags):
    """A judge that writes a question for each flag: whether the response is noncommittal."""
    return FakeLLM({"questions": [{"question": f"q{i}", "noncommittal": flag} for i, flag in enumerate(flags)]})


def at(*angles):
    """Unit vectors in the plane: the asked question at 0 degrees, the generated ones at these."""
    radians = np.radians([0.0, *angles])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def score(flags, angles):
    return ResponseRelevancy(llm=asking(*flags), embedder=placed(at(*angles)), strictness=len(flags)).score(SAMPLE)


def test_what_lowers_a_cosine_is_the_question_that_the_answer_fits():
    outcome = score([False, False, False], [60, 90, 0])
    cause = "of the questions that the answer fits, “q1” is least like the user's (similarity 0.00)"
    assert cause_of(outcome) == cause
    assert cause in str(outcome)
    report = evaluate([SAMPLE], ResponseRelevancy(llm=asking(False), embedder=placed(at(60)), strictness=1))
    assert report.summary()["response_relevancy"].main_cause == (
        "the questions that the answer fits differ from the user's",
        1,
    )
    same = score([False], [0])
    assert cause_of(same) is None
    refused = score([True], [60])
    assert "the answer fits" not in str(refused)


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        (np.array([[1e-200, 0.0], [-1e200, 0.0]]), -1.0),  # their lengths do not matter
        (np.array([[3.0, 4.0], [4.0, 3.0]]), 0.96),
        (np.array([[1, 0], [-0.0, -1]]), 0.0),
        ([(1, 2), (2, 4)], 1.0),
    ],
    ids=range(4),
)
def test_vectors_of_any_length_and_kind_of_number(rows, value):
    outcome = ResponseRelevancy(llm=asking(False), embedder=placed(rows), strictness=1).score(SAMPLE)
    assert outcome.value == pytest.approx(value)
    assert type(outcome.value) is float
    assert all(number or math.copysign(1, number) == 1 for number in (outcome.value, *outcome.breakdown.values()))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.array([[1.0, 0], [0, 0]]), "zero vector"),
        (np.array([[1.0, np.inf], [1, 0]]), "NaN or infinity"),
        (np.ones((3, 3)), "shape (3, 3)"),
        ([[1.0], [1.0, 2.0]], "not return an array"),
        (None, "shape ()"),
    ],
    ids=range(5),
)
def test_what_is_no_vector_is_named(rows, said):
    outcome = ResponseRelevancy(llm=asking(False), embedder=placed(rows), strictness=1).score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert outcome.detail.startswith("embedder: ")
    assert said in outcome.detail
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls) == (1, 1)


def test_n_calls_ask_n_times_at_a_real_temperature_and_ask_only_the_failed_one_again():
    said = []

    def reply(request):
        said.append(request.sample_index)
        return "no" if said.count(1) == 1 and request.sample_index == 1 else truth(request)

    llm = FakeLLM(reply)
    metric = ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), strictness=4, sampling="n_calls")
    outcome = metric.score(SAMPLE)
    assert sorted(said) == [0, 1, 1, 2, 3]
    assert {request.temperature for request in llm.requests} == {0.7}
    assert len({request.system for request in llm.requests}) == 1
    assert len([name for name in outcome.breakdown if name.startswith("cosine_")]) == 4


LONG = "I wrote of something else. " * 40
STEPS = {"open": ("yes", "no"), "refused": ("answered", "refused")}  # each with its words, the second for a refusal


def one_by_one(evades, angle, sample=SAMPLE, **options):
    """The outcome of a judge that is asked one by one, and gives these probabilities of an evasion by step."""

    def reply(request):
        if not request.choices:
            return {"questions": ["q"]}
        p = evades(step(request))
        return graded(lambda _: dict(zip(STEPS[step(request)], (1 - p, p), strict=True)))(request)

    llm = FakeLLM(reply, asking="one_by_one")
    return ResponseRelevancy(llm=llm, embedder=placed(at(angle)), strictness=1, **options).score(sample)


RESPONSES = {"open": "x" * 240, "refused": "x" * 241}  # of 60 tokens, and of more


@pytest.mark.parametrize(("asked", "fitted"), [("open", OPEN), ("refused", REFUSED)])
def test_the_cut_that_ships_decides_by_the_question_that_suits_the_length(asked, fitted):
    """By the formula; certainty is no infinity."""
    last, sample = 0.0, SAMPLE.model_copy(update={"response": RESPONSES[asked]})
    for refused in (0.0, 0.2, 0.5, 0.9, 1.0):
        outcome = one_by_one({asked: refused}.__getitem__, 0, sample)
        (verdict,) = outcome.verdicts
        bounded = min(max(refused, 1e-4), 1 - 1e-4)
        z = fitted.weights[asked] * math.log(bounded / (1 - bounded)) + fitted.intercept
        p = 1 / (1 + math.exp(-z))
        assert verdict.probability == pytest.approx(1 - p)
        assert (verdict.verdict == "no_answer") is (z >= 0)
        assert (outcome.breakdown[asked], len(outcome.breakdown.keys() & STEPS)) == (refused, 1)
        assert p > last
        last = p


def test_the_ends_are_for_the_noncommittal_questions_only():
    llm = FakeLLM(truth, asking="one_by_one")
    metric = ResponseRelevancy(llm=llm, embedder=FakeEmbedder())
    metric.score(Sample(user_input="asked", response=f"Head. {LONG} Tail."))
    for request in llm.requests:
        shown = fenced(request)[0]["response"]
        assert shown.startswith("Head. ")
        assert shown.endswith(" Tail.")
        assert (LONG in shown) is (step(request) == "questions")
        assert step(request) == "questions" or len(shown) <= 360
