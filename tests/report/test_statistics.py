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
    NORMAL_95,
    WEEK,
    GroupedMean,
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
    assert merged.estimate().narrower == pytest.approx(estimate.narrower)
    x, w = np.array(x), np.array(w)
    m = np.average(x, weights=w)
    error = math.sqrt((w**2 * (x - m) ** 2).sum() / w.sum() ** 2 * 200 / 199)
    size = w.sum() ** 2 / (w**2).sum()
    skew = np.average((x - m) ** 3, weights=w**2) / np.average((x - m) ** 2, weights=w**2) ** 1.5
    half = t_quantile(int(size - 1)) * error
    lean = skew * (2 * NORMAL_95**2 + 1) / 6 / math.sqrt(size) * error
    assert estimate.mean == pytest.approx(m)
    assert estimate.narrower == pytest.approx((m - half + lean, m + half + lean))
    assert estimate.size == pytest.approx(size)
    assert Mean().estimate((0.0, 1.0)) is None
    assert mean_of([0.3], [7.0]).estimate((0.0, 1.0)) == Interval(1, 0.3, size=pytest.approx(1.0, abs=1e-5))


@pytest.mark.parametrize("value", [0.0, 1 / 3, 1.0])
@pytest.mark.parametrize("n", [2, 20, 1_000])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-3])
def test_equal_numbers_have_an_interval_with_a_width(value, n, weights, jitter):
    values = [min(1.0, value + jitter * (i % 2)) for i in range(n)]
    found = mean_of(values, [1.0 + 3 * (i % 2) for i in range(n)] if weights else None)
    e = found.estimate((0.0, 1.0))
    assert 0.0 <= e.low <= e.mean <= e.high <= 1.0
    assert e.high - e.low > 1 / n
    assert found.estimate().low is found.estimate((0.0, math.inf)).low is None  # nobody knows what they hide
    wider = found.estimate((-1.0, 1.0))  # as of a cosine
    assert wider.low < e.low or value == 0.0 == e.low


def gaffke(values, weights, draws=20_000):
    """Gaffke's interval within 0 and 1 by its definition: the quantiles of means with random weights, one unseen."""
    parts = np.random.default_rng(1).exponential(size=(draws, len(values) + 1))
    weights = np.append(weights, np.square(weights).sum() / np.sum(weights))  # the unseen one: a random row's group
    parts = parts * weights / (parts @ weights)[:, None]
    return [np.quantile(parts @ np.append(values, end), tail) for end, tail in ((0.0, 0.025), (1.0, 0.975))]


@given(
    st.lists(
        st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.sampled_from([1.0, 1.0, 3.0])), min_size=5, max_size=60
    )
)
@settings(deadline=None, max_examples=40)
def test_the_interval_is_about_gaffkes_and_no_nearer_than_what_nobody_saw(drawn):
    x, w = map(np.array, zip(*drawn, strict=True))
    e = mean_of(x, w.tolist()).estimate((0.0, 1.0))
    unseen = 0.025 ** (1 / e.size)
    assert e.low <= e.mean * unseen + 1e-9
    assert e.high >= 1 - (1 - e.mean) * unseen - 1e-9
    low, high = gaffke(x, w)
    assert e.high - e.low == pytest.approx(high - low, rel=0.2 if len(set(w)) > 1 else 0.12)


def grouped(groups):
    """A mean of groups of numbers."""
    mean = GroupedMean()
    for name, values in enumerate(groups):
        for value in values:
            mean.add(value, group=f"document={name}")
    return mean


def test_groups_are_drawn_whole():
    """Ten questions on each of 20 documents that are all right or all wrong: as much as 20 questions, not 200."""
    groups = [[float(i % 4 > 0)] * 10 for i in range(20)]
    e, alone = grouped(groups).estimate((0.0, 1.0)), mean_of([1.0] * 15 + [0.0] * 5).estimate((0.0, 1.0))
    assert (e.n, e.groups, e.size, e.lacks) == (200, "20 documents", 20, "")
    assert (e.mean, e.low, e.high) == pytest.approx((0.75, alone.low, alone.high))
    uneven = grouped([[1.0] * 30, *[[0.0] * 2] * 5]).estimate((0.0, 1.0))
    assert (uneven.mean, uneven.size) == (pytest.approx(0.75), pytest.approx(40**2 / 920))


def test_where_there_is_no_interval_it_says_why():
    few = grouped([[0.0] * 10, [1.0] * 10] * 2)
    assert [few.estimate(bounds).lacks for bounds in (None, (0.0, 1.0))] == ["4 documents"] * 2
    assert [few.estimate((0.0, 1.0)).ends(rarest) for rarest in (0.0, 0.9)] == [None, None]
    assert grouped([[0.0, 1.0]] * 5).estimate().lacks == "bounds unknown"
    assert [mean_of(x).estimate().lacks for x in ([0.5], [0.5, 0.6], [1e300, -1e300])] == [
        "one value",
        *["bounds unknown"] * 2,
    ]


@pytest.mark.parametrize(("n", "spread", "stands"), [(60, 0.05, True), (500, 0.3, False)])
def test_a_narrower_interval_stands_beside_a_much_wider_one(n, spread, stands):
    e = mean_of(np.random.default_rng(2).normal(0.5, spread, n).clip(0, 1)).estimate((0.0, 1.0))
    assert (e.narrower is not None) == stands
    assert e.ends(0.0) == (e.low, e.high)
    assert e.ends(0.1) == (e.narrower or (e.low, e.high))
    assert e.ends(0.01) == (e.low, e.high)  # 60 draws miss that more often than not


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
