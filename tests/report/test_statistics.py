"""The statistics against references written out by hand, and where they have no answer."""

import itertools
import math
import random
import statistics
from datetime import datetime, timezone
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.report.statistics import (
    DAY,
    HOUR,
    MINUTE,
    WEEK,
    Interval,
    Mean,
    Timeline,
    beta_quantile,
    bucket_start,
    permutation_p,
    t_quantile,
)


@given(st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=9))
@settings(deadline=None)
def test_the_permutation_of_few_is_exact(differences):
    turned = itertools.product(*((d, -d) for d in map(Fraction, differences)))
    reached = [abs(sum(each)) >= abs(sum(map(Fraction, differences))) for each in turned]
    assert permutation_p(np.array(differences)) == pytest.approx(statistics.fmean(reached))
    assert (permutation_p(np.array([])), permutation_p(np.full(500, 0.1))) == (None, 1 / 10_001)


def test_sums_that_are_the_same_count():
    """16 equal steps, 10 up and 6 down: the sum is 4 of them, and half of what reaches it is exactly it."""
    exact = 2 * sum(math.comb(16, i) for i in range(7)) / 2**16
    jittered = np.array([0.1] * 10 + [-0.1] * 6)
    assert permutation_p(jittered) == pytest.approx(exact, abs=0.015)
    assert permutation_p(jittered * (1 + 1e-15 * np.arange(16))) == pytest.approx(exact, abs=0.015)


def mean_of(values, weights=None):
    mean = Mean()
    for value, weight in zip(values, weights or [1.0] * len(values), strict=True):
        mean.add(value, weight)
    return mean


def test_means_of_different_weights_also_merged():
    draw = random.Random(1)
    x, w = [draw.random() for _ in range(200)], [draw.choice((1.0, 4.0)) for _ in range(200)]
    estimate = mean_of(x, w).estimate()
    merged = Mean()
    for part in (slice(0, 0), slice(0, 50), slice(50, 51), slice(51, 200)):
        merged.merge(mean_of(x[part], w[part]))
    assert merged.estimate().low == pytest.approx(estimate.low)
    x, w = np.array(x), np.array(w)
    m = np.average(x, weights=w)
    error = math.sqrt((w**2 * (x - m) ** 2).sum() / w.sum() ** 2 * 200 / 199)
    freedom = int(w.sum() ** 2 / (w**2).sum() - 1)
    assert estimate.mean == pytest.approx(m)
    assert estimate.high - estimate.mean == pytest.approx(t_quantile(freedom) * error)
    assert Mean().estimate((0.0, 1.0)) is None
    assert mean_of([0.3], [7.0]).estimate((0.0, 1.0)) == Interval(1, 0.3)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 0.5, 1.0])
@pytest.mark.parametrize("n", [2, 3, 20, 1_000])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-3])
def test_equal_numbers_have_an_interval_with_a_width(value, n, weights, jitter):
    values = [min(1.0, value + jitter * (i % 2)) for i in range(n)]
    found = mean_of(values, [1.0 + 3 * (i % 2) for i in range(n)] if weights else None)
    e = found.estimate((0.0, 1.0))
    assert 0.0 <= e.low <= e.mean <= e.high <= 1.0
    assert e.high - e.low > 1 / n
    assert found.estimate() == found.estimate((0.0, math.inf)) == Interval(n, e.mean)  # nobody knows what they hide
    wider = found.estimate((-1.0, 1.0))  # as of a cosine
    assert wider.low < e.low or value == 0.0 == e.low


def coverage(n, share, values=(0.0, 1.0), bounds=(0.0, 1.0)):
    """The exact probability that the interval holds the mean, where a share of scores is the first value."""
    low, high = values
    truth, held = high + share * (low - high), 0.0
    for k in range(n + 1):
        e = mean_of([low] * k + [high] * (n - k)).estimate(bounds)
        held += math.comb(n, k) * share**k * (1 - share) ** (n - k) * (e.low - 1e-9 <= truth <= e.high + 1e-9)
    return held


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 30, 50, 60, 100, 200])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5])
def test_the_interval_of_two_values_holds_the_mean(n, share):
    assert coverage(n, share) >= 0.95  # at the ceiling
    assert coverage(n, 1 - share) >= 0.95  # at the floor
    assert coverage(n, share, (0.0, 0.9)) >= 0.95
    assert coverage(n, share, (0.5, 1.0)) >= 0.95
    assert coverage(n, share, (-1.0, 0.0), (-1.0, 1.0)) >= 0.95  # differences that are mostly ties
    assert coverage(n, share, (1.0, 0.0), (-1.0, 1.0)) >= 0.95


@pytest.mark.parametrize("n", [5, 10, 20, 30])
@pytest.mark.parametrize(("breaks", "mends"), [(0.05, 0.05), (0.04, 0.01), (0.1, 0.1), (0.3, 0.1)])
def test_the_interval_of_differences_holds_what_breaks_and_what_mends(n, breaks, mends):
    held = 0.0
    for down, up in itertools.product(range(n + 1), repeat=2):
        if (same := n - down - up) < 0:
            continue
        e = mean_of([-1.0] * down + [1.0] * up + [0.0] * same).estimate((-1.0, 1.0))
        ways = math.comb(n, down) * math.comb(n - down, up)
        chance = ways * breaks**down * mends**up * (1 - breaks - mends) ** same
        held += chance * (e.low <= mends - breaks <= e.high)
    assert held >= 0.95


@pytest.mark.parametrize(("n", "k"), [(5, 4), (20, 1), (20, 19), (400, 40)])
def test_yes_and_no_have_clopper_and_pearsons_interval(n, k):
    """At its ends, so many and more, and so many and less, have a probability of 2.5 %."""
    e = mean_of([1.0] * k + [0.0] * (n - k)).estimate((0.0, 1.0))

    def at_most(k, p):
        return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

    assert 1 - at_most(k - 1, e.low) == pytest.approx(0.025, abs=1e-4)
    assert at_most(k, e.high) == pytest.approx(0.025, abs=1e-4)


def test_the_beta_quantile_against_closed_forms():
    for n in (1, 5, 400):  # of Beta(n, 1): p^(1/n), of Beta(1, n): 1 - (1 - p)^(1/n)
        assert beta_quantile(n, 1) == pytest.approx(0.025 ** (1 / n), rel=1e-3)
        assert beta_quantile(1, n) == pytest.approx(1 - 0.975 ** (1 / n), rel=1e-3)
    assert beta_quantile(0.5, 0.5) == pytest.approx(math.sin(math.pi * 0.025 / 2) ** 2, rel=1e-3)


def test_buckets_begin_on_the_hour_at_midnight_and_on_monday():
    at = datetime(2026, 9, 24, 15, 37, 59, 999_999, tzinfo=timezone.utc).timestamp()  # a Thursday
    begins = [datetime.fromtimestamp(bucket_start(at, width), timezone.utc) for width in (HOUR, DAY, WEEK)]
    assert [f"{time:%a %d %H:%M:%S}" for time in begins] == ["Thu 24 15:00:00", "Thu 24 00:00:00", "Mon 21 00:00:00"]


def test_a_line_of_time_has_few_buckets_whatever_it_spans_and_loses_none():
    line, widths = Timeline(), []
    times = [float(2**i) for i in range(30)]
    random.Random(3).shuffle(times)
    for at in times:
        line.add(at, 0.5)
        widths.append(line.width)
    assert widths == sorted(widths)
    assert (widths[0], widths[-1]) == (MINUTE, WEEK)
    assert sum(mean.rows.n for mean in line.buckets.values()) == len(times)
    assert {bucket_start(at, WEEK) for at in times} == set(line.buckets)
