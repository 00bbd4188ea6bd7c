"""The arithmetic, against independent references: numpy, statistics, tables of Student's t, simulation."""

import math
import random
from datetime import datetime, timezone

import numpy as np
import pytest

from ragstone.reporting.live.figures import (
    DAY,
    HOUR,
    WEEK,
    Estimate,
    Mean,
    bin_edges,
    bin_of,
    bucket_start,
    t_quantile,
)


def mean_of(values, weights=None):
    mean = Mean()
    for value, weight in zip(values, weights or [1.0] * len(values), strict=True):
        mean.add(value, weight)
    return mean


def test_students_t():  # printed in every textbook
    table = {1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 31: 2.040, 60: 2.000, 120: 1.980, 10**9: 1.960}
    assert {freedom: t_quantile(freedom) for freedom in table} == pytest.approx(table, abs=6e-4)


def test_different_weights():
    draw = random.Random(1)
    x, w = ([draw.random() for _ in range(200)], [draw.choice((1.0, 4.0)) for _ in range(200)])
    found = mean_of(x, w).estimate()
    x, w = np.array(x), np.array(w)
    m = np.average(x, weights=w)
    error = math.sqrt((w**2 * (x - m) ** 2).sum() / w.sum() ** 2 * 200 / 199)
    freedom = int(w.sum() ** 2 / (w**2).sum() - 1)
    assert found.mean == pytest.approx(m)
    assert found.high - found.mean == pytest.approx(t_quantile(freedom) * error)


def test_none_one_and_equal():
    assert Mean().estimate() is None
    assert mean_of([0.3], [7.0]).estimate() == Estimate(1, 0.3)
    for value in (0.1, 1 / 3, 1e9 + 0.1):
        assert mean_of([value] * 1_000).estimate() == Estimate(1_000, value, value, value)


def test_an_interval_stays_within_the_bounds_of_the_scores():
    found = mean_of([0.0, 0.1, 1.0]).estimate((0.0, 1.0))
    assert (found.low, found.high) == (0.0, pytest.approx(1.0))


def test_buckets_begin_on_the_hour_at_midnight_and_on_monday():
    at = datetime(2026, 9, 24, 15, 37, 59, 999_999, tzinfo=timezone.utc).timestamp()  # a Thursday
    begins = [datetime.fromtimestamp(bucket_start(at, width), timezone.utc) for width in (HOUR, DAY, WEEK)]
    assert [f"{time:%a %d %H:%M:%S}" for time in begins] == ["Thu 24 15:00:00", "Thu 24 00:00:00", "Mon 21 00:00:00"]


def test_bins_are_those_of_numpy():
    values = [i / 100 for i in range(101)]  # all edges among them
    for low, high in ((0.0, 1.0), (-1.0, 1.0)):
        counts = [0] * 20
        for value in values:
            counts[bin_of(value, low, high)] += 1
        edges = np.round(bin_edges(low, high), 9)
        assert counts == np.histogram(np.round(values, 9), bins=edges)[0].tolist()
