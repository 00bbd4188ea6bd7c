"""Figures worked by hand, and by slower ways that share no code."""

import math
import random

import numpy as np
import pytest
from agreement.measures import sentence_f1, sentence_precision, sentence_recall

from agreement import measures as st


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


@pytest.mark.parametrize("seed", range(2))
def test_auroc_is_the_share_of_pairs(seed):
    draw = random.Random(seed)
    targets = [0, 1, *(draw.randint(0, 1) for _ in range(28))]
    values = [draw.randint(0, 6) / 6 for _ in targets]
    assert value(st.auroc(values, targets, [None] * 30)) == pytest.approx(slow_auc(values, targets))


def test_intervals_do_not_collapse_where_all_rows_are_right():
    targets, alone = [1, 0] * 10, [None] * 20
    accurate, ordered = (st.estimate(of(targets, targets, alone)) for of in (st.accuracy, st.auroc))
    assert (accurate.value, accurate.low) == (1.0, pytest.approx(20 / (20 + 1.96**2), abs=1e-4))  # Wilson 1927
    assert (ordered.value, ordered.low) == (1.0, pytest.approx(10 / (10 + 1.96**2), abs=1e-4))  # of the rarer label
    half = st.estimate(st.pairwise([1.0, 0.0, 0.0, 1.0], [1, 0, 1, 0], list("aabb")))
    assert (half.value, half.low, half.high) == (0.5, pytest.approx(0.0945, abs=1e-4), pytest.approx(0.9055, abs=1e-4))


@pytest.mark.parametrize("of", [st.accuracy, st.auroc])
def test_rows_of_one_document_are_drawn_together(of):
    """Ten copies of one row are no ten rows: the interval is as wide as that of one of each."""
    draw = random.Random(0)
    targets = [i % 2 for i in range(20)]
    values = [draw.random() + t / 3 for t in targets]
    once = st.estimate(of(values, targets, list("abcdefghijklmnopqrst")))
    copied = st.estimate(of(values * 10, targets * 10, list("abcdefghijklmnopqrst") * 10))
    assert (copied.value, copied.units) == (pytest.approx(once.value), 20)
    assert (copied.low, copied.high) == (pytest.approx(once.low), pytest.approx(once.high))


@pytest.mark.parametrize("seed", range(2))
def test_spearman_is_pearson_of_mean_ranks(seed):
    draw = random.Random(seed)
    values = [draw.randint(0, 5) for _ in range(20)]
    targets = [draw.randint(0, 5) for _ in range(20)]
    assert st.spearman(values, targets) == pytest.approx(slow_rho(values, targets))


def test_within_takes_documents_that_people_told_apart():
    """One in which all values are equal counts as 0: what says nothing of hard documents must not gain by it."""
    values = [1, 2, 3, 5, 5, 5, 1, 2, 3]
    targets = [1, 2, 3, 1, 2, 3, 7, 7, 7]
    found = st.estimate(st.within(values, targets, list("aaabbbccc")))
    assert (found.value, found.units) == (0.5, 2)
    everywhere = st.within([1, 2, 3, 3, 2, 1, 1, 2, 3], targets, list("aaabbbccc"))
    assert st.difference(everywhere, st.within(values, targets, list("aaabbbccc"))).value == -0.5


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


def test_difference_needs_the_same_units():
    with pytest.raises(ValueError, match="2 units cannot be compared with 3"):
        st.difference(st.mean([1, 2]), st.mean([1, 2, 3]))
    assert st.difference(st.mean([]), st.mean([])) is None
