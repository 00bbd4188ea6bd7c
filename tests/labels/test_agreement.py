"""How far a judge and people agree: against references, against a truth that is known, and at the edges."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from ragstone.labels.agreement import kappa_of, sensitivity_specificity

RNG = np.random.default_rng(7)
GRADES = [(RNG.integers(0, 5, 80) / 4).tolist() for _ in range(2)]
FLAGS = [RNG.integers(0, 2, 80).astype(float).tolist() for _ in range(2)]


@pytest.mark.parametrize(
    ("people", "judge", "kappa"),
    [
        (*FLAGS, cohen_kappa_score(*FLAGS)),
        (*GRADES, cohen_kappa_score(*[[round(4 * x) for x in of] for of in GRADES], weights="quadratic")),
        ([1.0, 0.0], [0.0, 1.0], -1.0),
    ],
)
def test_kappa_is_that_of_its_definition(people, judge, kappa):
    found = kappa_of(people, judge)
    assert (found.n, found.mean) == (len(people), pytest.approx(kappa, abs=1e-12))


def test_kappas_interval_holds_the_truth_as_often_as_it_says():
    truth, misses = 0.8 - 0.2, 0
    rng = np.random.default_rng(1)
    for _ in range(60):
        people = rng.integers(0, 2, 100)
        found = kappa_of(people.tolist(), np.where(rng.random(100) < 0.8, people, 1 - people).tolist())
        misses += not found.low <= truth <= found.high
    assert misses <= 9  # of 60: 3 are expected


@pytest.mark.parametrize("value", [1.0, 0.25])
def test_where_all_is_one_value_nothing_beyond_chance_is_defined(value):
    assert kappa_of([value] * 5, [value] * 5) is None


def test_sensitivity_and_specificity_are_of_yes_and_no_alone():
    people, judge = [1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0, 1]
    yes, no = sensitivity_specificity(people, judge)
    assert (yes.mean, yes.n, no.mean, no.n) == (0.75, 4, 2 / 3, 3)
    assert sensitivity_specificity(people, [0.9, *judge[1:]]) == (None, None)
    yes, no = sensitivity_specificity([1, 1], [1, 0])
    assert (yes.mean, no) == (0.5, None)
    always, _ = sensitivity_specificity([1] * 5, [1] * 5)
    assert always.low == pytest.approx(0.025**0.2, abs=1e-4)
