"""Figures worked by hand, and by slower ways that share no code."""

import math
import random

import numpy as np
import pytest
from agreement.sentences import sentence_f1, sentence_precision, sentence_recall

from agreement import statistics as st


def value(measure):
    found = st.estimate(measure)
    return None if found is None else found.value


def slow_auc(values, targets):
    pairs = [
        (a, b)
        for a, x in zip(values, targets, strict=True)
        for b, y in zip(values, targets, strict=True)
        if x and not y
    ]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


def slow_ranks(values):
    return [sum(v < w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]


def slow_rho(values, targets):
    a, b = slow_ranks(values), slow_ranks(targets)
    return float(np.corrcoef(a, b)[0, 1])


def test_pairwise():
    groups = ["a", "a", "b", "b", "c", "c", "d", "d"]
    targets = [1, 0, 0, 1, 1, 0, 1, 0]
    assert value(st.pairwise([2, 1, 2, 1, 1, 1, 5, -5], targets, groups)) == (1 + 0 + 0.5 + 1) / 4


def test_pairwise_leaves_out_half_a_pair():
    measure = st.pairwise([2, 1, 9], [1, 0, 0], ["a", "a", "b"])
    assert (value(measure), measure.units) == (1.0, 1)
    assert st.estimate(st.pairwise([1.0], [1], ["a"])) is None


@pytest.mark.parametrize("seed", range(5))
def test_auroc_is_the_share_of_pairs(seed):
    draw = random.Random(seed)
    targets = [0, 1, *(draw.randint(0, 1) for _ in range(28))]
    values = [draw.randint(0, 6) / 6 for _ in targets]
    assert value(st.auroc(values, targets)) == pytest.approx(slow_auc(values, targets))


def test_auroc_extremes():
    assert value(st.auroc([1, 2, 3, 4], [0, 0, 1, 1])) == 1.0
    assert value(st.auroc([4, 3, 2, 1], [0, 0, 1, 1])) == 0.0
    assert value(st.auroc([1, 1, 1], [0, 1, 1])) == 0.5
    assert st.estimate(st.auroc([1, 2, 3], [1, 1, 1])) is None
    assert st.estimate(st.auroc([], [])) is None


@pytest.mark.parametrize("seed", range(5))
def test_spearman_is_pearson_of_mean_ranks(seed):
    draw = random.Random(seed)
    values = [draw.randint(0, 5) for _ in range(20)]
    targets = [draw.randint(0, 5) for _ in range(20)]
    assert st.spearman(values, targets) == pytest.approx(slow_rho(values, targets))


def test_spearman_by_the_formula_for_no_ties():
    values, targets = [3.0, 1.0, 4.0, 1.5, 5.0], [2.0, 7.0, 1.0, 8.0, 0.5]
    d2 = sum((a - b) ** 2 for a, b in zip(slow_ranks(values), slow_ranks(targets), strict=True))
    assert st.spearman(values, targets) == pytest.approx(1 - 6 * d2 / (5 * 24))
    assert st.spearman([0.0, 1e-300, 2e-300], [1, 2, 3]) == pytest.approx(1.0)


def test_within_takes_documents_that_people_told_apart():
    """One in which all values are equal counts as 0: what says nothing of hard documents must not gain by it."""
    values = [1, 2, 3, 5, 5, 5, 1, 2, 3]
    targets = [1, 2, 3, 1, 2, 3, 7, 7, 7]
    found = st.estimate(st.within(values, targets, list("aaabbbccc")))
    assert (found.value, found.units) == (0.5, 2)
    everywhere = st.within([1, 2, 3, 3, 2, 1, 1, 2, 3], targets, list("aaabbbccc"))
    assert st.difference(everywhere, st.within(values, targets, list("aaabbbccc"))).value == -0.5


def test_a_constant_within_is_nothing():
    found = st.estimate(st.within([5, 5, 5, 5], [1, 2, 1, 2], list("aabb")))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


def test_pooled_draws_documents_whole():
    rows = 40
    draw = random.Random(1)
    values = [draw.random() for _ in range(rows)]
    targets = [v + draw.random() for v in values]
    alone = st.estimate(st.pooled(values, targets, [None] * rows))
    # The same rows ten times over, but still forty units: no more is known, so the interval must not shrink.
    groups = [f"g{i}" for i in range(rows)] * 10
    copies = st.estimate(st.pooled(values * 10, targets * 10, groups))
    assert copies.value == pytest.approx(alone.value)
    assert copies.units == alone.units == rows
    assert copies.high - copies.low == pytest.approx(alone.high - alone.low, rel=0.1)


@pytest.mark.parametrize(
    ("chosen", "relevant", "f1", "precision", "recall"),
    [
        ([], [], 1.0, None, None),
        ([(0, 0)], [], 0.0, 0.0, None),
        ([], [(0, 0)], 0.0, None, 0.0),
        ([(0, 0)], [(0, 0)], 1.0, 1.0, 1.0),
        ([(0, 0), (0, 1), (1, 0)], [(0, 1), (2, 0)], 0.4, 1 / 3, 0.5),
    ],
)
def test_sentences(chosen, relevant, f1, precision, recall):
    sets = frozenset(chosen), frozenset(relevant)
    for found, expected in (
        (sentence_f1(*sets), f1),
        (sentence_precision(*sets), precision),
        (sentence_recall(*sets), recall),
    ):
        assert math.isnan(found) if expected is None else found == pytest.approx(expected)


def test_accuracy_and_error():
    assert value(st.accuracy([0.5, 0.49, 0.9, 0.1], [1, 1, 0, 0])) == 0.5
    assert value(st.absolute_error([0.5, 1.0], [0.0, 1.0])) == 0.25


def test_interval_of_a_mean_is_the_normal_one():
    draw = np.random.default_rng(3)
    values = draw.normal(size=400)
    found = st.estimate(st.mean(values))
    reach = 1.96 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - reach, abs=0.02)
    assert found.high == pytest.approx(values.mean() + reach, abs=0.02)
    assert st.estimate(st.mean(values)) == found  # seeded


def test_mean_leaves_out_what_is_undefined():
    nan = float("nan")
    assert st.estimate(st.mean([nan, 1.0, 3.0])).value == 2.0
    assert st.estimate(st.mean([nan, 1.0, 3.0])).units == 2
    assert st.estimate(st.mean([nan, nan])) is None
    assert st.estimate(st.mean([])) is None
    assert st.estimate(st.mean([1.0])) == st.Estimate(1.0, None, None, 1)


def test_difference_is_paired():
    draw = np.random.default_rng(0)
    hard = draw.normal(size=60)  # rows differ much, systems little
    one, other = st.mean(hard + 0.2 + 0.01 * draw.normal(size=60)), st.mean(hard)
    found = st.difference(one, other)
    assert found.value == pytest.approx(0.2, abs=0.01)
    assert found.low > 0.15
    assert st.difference(one, one) == st.Estimate(0.0, 0.0, 0.0, 60)
    apart = st.estimate(one).low - st.estimate(other).high
    assert apart < 0 < found.low


def test_difference_of_aurocs_draws_the_same_rows():
    draw = random.Random(0)
    targets = [i % 2 for i in range(40)]
    values = [draw.random() + t / 2 for t in targets]
    found = st.difference(st.auroc(values, targets), st.auroc([2 * v for v in values], targets))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    worse = st.difference(st.auroc(values, targets), st.auroc([-v for v in values], targets))
    assert worse.low > 0


def test_difference_needs_the_same_units():
    with pytest.raises(ValueError, match="2 units cannot be compared with 3"):
        st.difference(st.mean([1, 2]), st.mean([1, 2, 3]))
    assert st.difference(st.mean([]), st.mean([])) is None


def test_no_interval_where_most_draws_are_undefined():
    found = st.estimate(st.auroc([0.1, 0.9], [0, 1]))  # half of the draws take one row twice
    assert found.value == 1.0
    single = st.estimate(st.pooled([1, 2, 2, 2, 2, 2, 2], [1, 2, 2, 2, 2, 2, 2], [None] * 7))
    assert single.value == pytest.approx(1.0)


def test_sentence_auroc_pools_and_draws_rows():
    values = [[0.9, 0.1], [0.8, 0.2, 0.3]]
    targets = [[True, False], [True, False, False]]
    found = st.estimate(st.sentence_auroc(values, targets))
    assert (found.value, found.units) == (1.0, 2)
