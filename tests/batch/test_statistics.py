"""The statistics against references written out by hand, and where they have no answer."""

import itertools
import math
import random
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.reporting.batch.statistics import (
    bootstrap_interval,
    draw_noise,
    noise_error,
    permutation_p,
    sign_test_p,
)

coarse = st.integers(0, 4).map(lambda n: n / 4)


def reference_bootstrap(values, resamples, seed=1):
    draw = random.Random(seed)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(resamples))
    return means[int(0.025 * resamples)], means[int(0.975 * resamples)]


@pytest.mark.parametrize(
    "values",
    [
        [random.Random(2).random() for _ in range(40)],  # all different: drawn by place
        [0.0] * 30 + [0.5] * 5 + [1.0] * 25,  # few different: drawn by count
    ],
)
def test_the_interval_is_that_of_plain_resampling(values):
    found, reference = bootstrap_interval(np.array(values)), reference_bootstrap(values, 4_000)
    spread = statistics.pstdev(values) / math.sqrt(len(values))
    assert found == pytest.approx(reference, abs=spread / 4)


def reference_permutation(differences):
    found = abs(sum(map(Fraction, differences)))
    sums = [
        abs(sum(sign * Fraction(d) for sign, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(s >= found for s in sums) / len(sums)


@given(st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=9))
@settings(deadline=None)
def test_the_permutation_of_few_is_exact(differences):
    assert permutation_p(np.array(differences)) == pytest.approx(reference_permutation(differences))


@pytest.mark.parametrize(("shift", "coarsely"), [(0.1, False), (0.3, True)])
def test_the_permutation_of_more_is_close_to_exact(shift, coarsely):
    draw = random.Random(8)
    differences = [draw.gauss(shift, 0.5) for _ in range(14)]
    if coarsely:
        differences = [round(2 * d) / 2 for d in differences]  # few sizes: by count
    assert permutation_p(np.array(differences)) == pytest.approx(reference_permutation(differences), abs=0.02)


def test_sums_that_are_the_same_count():
    """16 equal steps, 10 up and 6 down: the sum is 4 of them, and half of what reaches it is exactly it."""
    exact = 2 * sum(math.comb(16, i) for i in range(7)) / 2**16
    jittered = np.array([0.1] * 10 + [-0.1] * 6)
    assert permutation_p(jittered) == pytest.approx(exact, abs=0.015)
    assert permutation_p(jittered * (1 + 1e-15 * np.arange(16))) == pytest.approx(exact, abs=0.015)


def test_the_permutation_of_nothing_and_of_no_difference():
    assert permutation_p(np.array([])) is None
    assert permutation_p(np.zeros(5)) == 1.0
    assert permutation_p(np.zeros(500)) == 1.0
    assert permutation_p(np.full(500, 0.1)) == 1 / 10_001


def reference_sign(wins, losses):
    n, k = wins + losses, min(wins, losses)
    extreme = sum(Fraction(math.comb(n, i), 2**n) for i in range(n + 1) if min(i, n - i) <= k)
    return float(extreme)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_adds_up_both_tails(wins, losses):
    if wins + losses:
        assert sign_test_p(wins, losses) == pytest.approx(reference_sign(wins, losses))
    assert sign_test_p(wins, losses) == sign_test_p(losses, wins)


def test_the_sign_test_of_none_and_of_very_many():
    assert sign_test_p(0, 0) is None
    assert sign_test_p(560, 480) == pytest.approx(reference_sign(560, 480), rel=1e-8)
    assert sign_test_p(50_000, 50_000) == 1.0
    assert sign_test_p(50_500, 49_500) == pytest.approx(math.erfc(999 / math.sqrt(2 * 100_000)), rel=1e-3)
    assert 0.0 <= sign_test_p(100_000, 0) < 1e-300


draws = st.lists(
    st.tuples(st.integers(0, 5), coarse, st.sampled_from([-1, 0, 1])), min_size=1, max_size=30
)  # (row, value, passed)


@given(draws)
@settings(deadline=None)
def test_the_noise_is_that_within_rows(found):
    rows, values, passed = map(list, zip(*found, strict=True))
    noise = draw_noise(np.array(rows), np.array(values), np.array(passed, np.int8))
    by_row = [[v for r, v in zip(rows, values, strict=True) if r == row] for row in sorted(set(rows))]
    repeated = [of for of in by_row if len(of) > 1]
    if not repeated:
        assert noise is None
        return
    squares = sum((v - statistics.fmean(of)) ** 2 for of in repeated for v in of)
    assert noise.rows == len(repeated)
    assert noise.sd == pytest.approx(math.sqrt(squares / sum(len(of) - 1 for of in repeated)))
    shares = []
    for row in set(rows):
        verdicts = [p for r, p in zip(rows, passed, strict=True) if r == row and p >= 0]
        pairs = list(itertools.combinations(verdicts, 2))
        if pairs:
            shares.append(statistics.fmean(a == b for a, b in pairs))
    assert noise.agreement == (pytest.approx(statistics.fmean(shares)) if shares else None)


def test_the_error_of_the_noise_is_what_scoring_again_gives():
    draw = np.random.default_rng(3)
    counts = np.array([1, 2, 3] * 10)
    means = [np.mean([draw.normal(0.5, 0.2, k).mean() for k in counts]) for _ in range(2_000)]
    assert noise_error(0.2, counts) == pytest.approx(np.std(means), rel=0.1)
