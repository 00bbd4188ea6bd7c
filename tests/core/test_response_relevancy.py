"""ResponseRelevancy against its formula, with vectors that the test chooses."""

import math

import numpy as np
import pytest

from ragstone import BaseEmbedder, ResponseRelevancy, Sample
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import graded, script, step, truth

SAMPLE = Sample(user_input="asked", response="The response.")


class Placed(BaseEmbedder):
    """Returns the rows it was made with, whatever the texts."""

    model = "placed"

    def __init__(self, rows):
        self.rows, self.texts = rows, []

    def embed(self, texts, /):
        self.texts.append(list(texts))
        return self.rows


def judge(*flags):
    return FakeLLM(
        script(questions={"questions": [{"question": f"q{i}", "noncommittal": flag} for i, flag in enumerate(flags)]})
    )


def at(*angles):
    """Unit vectors in the plane: the asked question at 0 degrees, the generated ones at these."""
    radians = np.radians([0.0, *angles])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def score(flags, angles, rule="all"):
    embedder = Placed(at(*angles))
    metric = ResponseRelevancy(llm=judge(*flags), embedder=embedder, strictness=len(flags), noncommittal=rule)
    return metric.score(SAMPLE), embedder


@pytest.mark.parametrize(
    ("angles", "flags", "rule", "value"),
    [
        ([60, 60, 60], [False, False, False], "all", 0.5),
        ([0, 60, 90], [False, False, False], "all", 0.5),
        ([180, 180], [False, False], "any", -1.0),
        ([0, 60, 90], [True, True, False], "all", 0.5),
        ([0, 60, 90], [True, True, True], "all", 0.0),
        ([0, 60, 90], [True, False, False], "any", 0.0),
        ([0, 60, 90], [True, False, False], "majority", 0.5),
        ([60, 60], [True, False], "majority", 0.5),  # half is no majority
        ([120], [True], "off", -0.5),
        ([0], [True], "off", 1.0),
        ([180], [True], "all", 0.0),
    ],
)
def test_rows_computed_by_hand(angles, flags, rule, value):
    outcome, embedder = score(flags, angles, rule)
    assert outcome.value == pytest.approx(value, abs=1e-6)
    assert math.copysign(1, outcome.value) == 1 or outcome.value < 0, "never -0.0"
    assert outcome.breakdown["noncommittal"] == pytest.approx(sum(flags) / len(flags))
    assert [v.verdict for v in outcome.verdicts] == ["noncommittal" if f else "committal" for f in flags]
    low = [angle != 0 or (flag and value == 0.0) for angle, flag in zip(angles, flags, strict=True)]
    assert [v.lowers_score for v in outcome.verdicts] == low
    assert embedder.texts == [["asked", *(f"q{i}" for i in range(len(flags)))]], "one embedding call for N+1 texts"
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls) == (1, 1)


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
    outcome = ResponseRelevancy(llm=judge(False), embedder=Placed(rows), strictness=1).score(SAMPLE)
    assert outcome.value == pytest.approx(value)
    assert type(outcome.value) is float
    assert all(number or math.copysign(1, number) == 1 for number in (outcome.value, *outcome.breakdown.values()))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.array([[1.0, 0], [0, 0]]), "zero vector"),
        (np.array([[1.0, np.inf], [1, 0]]), "NaN or infinity"),
        (np.ones((3, 3)), "shape (3, 3)"),
        ([[1.0], [1.0, 2.0]], "no array"),
        (None, "shape ()"),
    ],
    ids=range(5),
)
def test_what_is_no_vector_is_named(rows, said):
    outcome = ResponseRelevancy(llm=judge(False), embedder=Placed(rows), strictness=1).score(SAMPLE)
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


def one_by_one(probability, angle, **options):
    """A judge that is asked one by one, and gives these probabilities of a refusal."""

    def reply(request):
        if not request.choices:
            return {"questions": ["q"]}
        refused = probability(request)
        return graded(lambda _: {"refused": refused, "answered": 1 - refused})(request)

    llm = FakeLLM(reply, asking="one_by_one")
    return ResponseRelevancy(llm=llm, embedder=Placed(at(angle)), strictness=1, **options).score(SAMPLE)


@pytest.mark.parametrize(
    ("p", "rule", "scoring", "value"),
    [
        (0.25, "all", "count", -0.5),
        (0.25, "any", "expected", -0.375),
        (0.75, "majority", "count", 0.0),
        (0.75, "all", "expected", -0.125),
        (0.75, "off", "expected", -0.5),
        (1.0, "all", "expected", 0.0),
    ],
)
def test_probabilities(p, rule, scoring, value):
    outcome = one_by_one(lambda request: p, 120, noncommittal=rule, scoring=scoring)
    assert outcome.value == pytest.approx(value, abs=1e-6)
    assert outcome.value or math.copysign(1, outcome.value) == 1, "never -0.0"
    assert outcome.breakdown["expected"] == pytest.approx(-0.5 if rule == "off" else -0.5 * (1 - p), abs=1e-6)
    assert outcome.verdicts[0].probability == pytest.approx(1 - p)
    assert outcome.usage.llm_calls == 1 + 2


@pytest.mark.parametrize(
    ("first", "last", "p"), [(0.9, 0.5, 0.75), (0.9, 0.1, 0.5), (0.2, 0.5, 1 / 3), (1.0, 0.0, 0.5), (0.0, 0.9, 0.0)]
)
def test_the_mean_of_the_log_odds_of_both_orders_decides(first, last, p):
    outcome = one_by_one(lambda request: first if request.user.startswith("<question") else last, 0)
    assert outcome.verdicts[0].probability == pytest.approx(1 - p)
    assert outcome.breakdown["noncommittal"] == float(p > 0.5 + 1e-9)


@pytest.mark.parametrize(("first", "last"), [("refused", "answered"), ("answered", "refused"), ("refused", "refused")])
def test_without_probabilities_a_refusal_is_one_in_both_orders(first, last):
    def reply(request):
        if not request.choices:
            return {"questions": ["q"]}
        return first if request.user.startswith("<question") else last

    metric = ResponseRelevancy(llm=FakeLLM(reply, asking="one_by_one"), embedder=Placed(at(0)), strictness=1)
    assert [step(request) for request in next(metric.flow(SAMPLE))] == ["questions", "noncommittal", "noncommittal"]
    assert metric.score(SAMPLE).breakdown["noncommittal"] == float(first == last == "refused")
