"""Fitting: nothing is judged by what it was fitted on, few labels are refused, and ties and extremes do no harm."""

import random

import numpy as np
import pytest

from ragstone.labels import CalibrationError
from ragstone.labels.calibration import sigmoid
from ragstone.labels.fit import Labelled, accuracy, cross_fit, f1, folds


def rows(n, seed=0, *, slope=3.0, shift=1.0, items=6):
    """Sentences whose judge says yes too readily: his logit is the true one plus `shift`."""
    chance = random.Random(seed)
    made = []
    for i in range(n):
        true = [chance.gauss(-1.0, 1.5) for _ in range(items)]
        labels = [float(chance.random() < sigmoid(z)) for z in true]
        judged = [sigmoid(z / slope + shift) for z in true]
        made.append(Labelled(f"question {i}", judged, labels))
    return made


def test_it_mends_a_judge_who_says_yes_too_readily():
    result = cross_fit(rows(100), "sentence")
    f1_, error = result.agreement
    assert f1_.difference.low > 0.0
    assert error.difference.high < 0.0
    assert f1_.before.value < f1_.after.value
    assert not result.warnings
    assert result.fitted.weight > 0.0
    both = np.array([[False, False], [True, False]])
    assert f1(np.array([True, False, True]), [1.0, 1.0, 0.0]) == pytest.approx(0.5)
    assert f1(both, [1.0, 0.0]).tolist() == [0.0, 1.0]
    assert f1(both, [0.0, 0.0]).tolist() == [1.0, 0.0]
    assert accuracy(both, [1.0, 1.0]).tolist() == [0.0, 0.5]


def test_a_group_is_never_on_both_sides():
    groups = [f"g{i % 7}" for i in range(50)]
    tested = []
    for train, test in folds(groups, 10):
        assert not {groups[i] for i in train} & {groups[i] for i in test}
        assert sorted(train + test) == list(range(50))
        tested += test
    assert sorted(tested) == list(range(50))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([], "too few"),
        (rows(4), "too few"),
        ([Labelled("q", each.judged, each.labels) for each in rows(30)], "in 1 independent"),
        ([Labelled(each.group, each.judged, [1.0] * 6) for each in rows(30)], "all 180 are yes"),
    ],
)
def test_labels_that_are_too_few_or_alike_are_refused(made, message):
    with pytest.raises(CalibrationError, match=message):
        cross_fit(made, "sentence")


@pytest.mark.parametrize("say", [lambda _: 0.7, lambda p: 1.0 - p], ids=["always the same", "the opposite"])
def test_a_judge_who_says_nothing_of_the_labels_leaves_the_share_of_yes(say):
    made = [Labelled(each.group, [say(p) for p in each.judged], each.labels) for each in rows(30)]
    result = cross_fit(made, "sentence")
    assert result.fitted.weight == 0.0
    share = sum(sum(each.labels) for each in made) / 180
    assert made[0].mapped(result.fitted) == pytest.approx([share] * 6, abs=0.01)
    assert any("the judge says nothing" in warning for warning in result.warnings)


def test_before_is_what_the_metric_chose_wherever_it_cuts():
    made = [Labelled(each.group, each.judged, each.labels, [label > 0 for label in each.labels]) for each in rows(30)]
    assert cross_fit(made, "sentence").agreement[0].before.value == 1.0
