"""From a database to what a page shows."""

import sqlite3

import pytest

from ragstone import Score, Unscored, Usage
from ragstone.reporting.live import report
from ragstone.reporting.live.facts import Bin
from ragstone.reporting.live.gather import gather
from ragstone.sinks import Record

from .data import NOON, database, health, records


def record(i=0, value=None, *, at=NOON, metric="mine", version="1", judge="j", rate=1.0, reason="timeout", **usage):
    if value is None:
        outcome = Unscored(metric=metric, reason=reason, detail=f"why {i}", version=version, usage=Usage(**usage))
    else:
        outcome = Score(metric=metric, value=value, reason="r", version=version, usage=Usage(**usage))
    return Record(
        sample_id=f"s{i}", outcome=outcome, judge=judge, submitted_at=at, scored_at=at + 1, rate=rate
    )  # fmt: skip


@pytest.fixture
def found(tmp_path):
    return lambda given, *processes, since=None: gather(database(tmp_path / "a.db", given, *processes), since)


def test_nothing_and_one_score(found):
    empty = found([], health())
    assert (empty.groups, empty.outcomes, empty.first, empty.costs, len(empty.queues)) == ((), 0, None, {}, 1)
    one = found([record(value=0.5)])
    (group,) = one.groups
    assert (group.scored, group.unscored, group.estimate.mean, group.estimate.low) == (1, 0, 0.5, None)
    assert [b for b in group.distribution if b.count] == [Bin(0.5, 0.55, 1, 1.0)]
    assert len(group.series) == len(group.lowest) == 1
    assert (group.weighted, group.passed) == (False, None)


def test_all_unscored(found):
    reasons = ["timeout", "judge_error", "timeout"]
    all_ = found(record(i, reason=reason, at=NOON + i) for i, reason in enumerate(reasons))
    (group,) = all_.groups
    assert (group.scored, group.unscored, group.estimate) == (0, 3, None)
    assert (group.series, group.lowest) == ((), ())
    assert [(r.reason, r.count, r.sample_id, r.detail) for r in group.reasons] == [
        ("timeout", 2, "s2", "why 2"),  # the latest
        ("judge_error", 1, "s1", "why 1"),
    ]


def test_versions_and_judges_are_never_mixed_and_the_newest_stands_first(found):
    given = [
        record(0, 0.1, version="1", judge="a", at=NOON - 9_000),
        record(1, 0.2, version="2", judge="a", at=NOON - 5_000),
        record(2, 0.3, version="2", judge="b", at=NOON),
        record(3, 0.9, metric="another", at=NOON - 99_000),
    ]
    groups = found(given).groups
    assert [(g.metric, g.version, g.judge, g.estimate.mean) for g in groups] == [
        ("another", "1", "j", 0.9),
        ("mine", "2", "b", 0.3),
        ("mine", "2", "a", 0.2),
        ("mine", "1", "a", 0.1),
    ]


def test_samples_weigh_as_many_as_they_stand_for(found):
    given = [record(i, 0.0) for i in range(10)] + [record(i + 10, 1.0, rate=0.1) for i in range(10)]
    (group,) = found(given).groups
    assert group.weighted
    assert group.estimate.mean == pytest.approx(100 / 110)
    assert (group.distribution[0].count, group.distribution[-1].count) == (10, 10)
    assert group.distribution[-1].share == pytest.approx(100 / 110)
    assert group.series[0].estimate.mean == pytest.approx(100 / 110)


def test_since_leaves_out_what_was_submitted_before(found):
    given = [record(i, i / 10, at=NOON + i) for i in range(10)]
    kept = found(given, since=NOON + 5)
    assert kept.outcomes == 5
    assert kept.groups[0].estimate.mean == pytest.approx(0.7)
    assert (kept.first, kept.since) == (NOON + 5, NOON + 5)


def test_the_lowest_are_ten_and_of_equal_ones_the_latest(found):
    given = [record(i, 0.25 if i % 2 else 0.5, at=NOON + i) for i in range(40)]
    (group,) = found(given).groups
    assert [low.sample_id for low in group.lowest] == [f"s{i}" for i in range(39, 19, -2)]


def test_tokens_that_were_not_told_are_counted_as_such(found):
    given = [
        record(0, 0.5, llm_calls=2, input_tokens=100, output_tokens=9),
        record(1, 0.5, llm_calls=1, input_tokens=None, output_tokens=None),
        record(2, None, llm_calls=4, embed_calls=1, input_tokens=50, output_tokens=None),
        record(3, 0.5, at=NOON + 86_400),
    ]
    day, next_day = found(given).costs.values()
    assert (day.outcomes, day.llm_calls, day.embed_calls) == (3, 7, 1)
    assert (day.input_tokens, day.output_tokens, day.untold) == (150, 9, 2)
    assert (next_day.outcomes, next_day.untold) == (1, 0)


def change(path, sql, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(sql, values)
    connection.close()


CHANGED = [
    ("value", "high"), ("value", float("inf")), ("value", None), ("value", 1e308), ("submitted_at", 1e18),
    ("scored_at", "noon"), ("rate", 0), ("rate", "half"), ("rate", 1e-320), ("llm_calls", -3),
    ("input_tokens", "many"), ("passed", 7), ("verdicts", "{"), ("verdicts", '[{"id": 1}]'),
    ("verdicts", "[" * 100_000), ("breakdown", "[1]"), ("breakdown", '{"a": "b", "c": NaN}'), ("sample", "[]"),
    ("sample", '{"response": 5}'), ("sample", '{"response": "\\ud83d \\u0000"}'), ("reason", b"\xff\xfe"),
    ("judge", b"\xff"), ("status", "odd"), ("sample_id", b"\x00\xff"),
]  # fmt: skip


def test_what_a_hand_has_changed_stops_nothing(tmp_path):
    path = database(tmp_path / "a.db", records(len(CHANGED)), health())
    for i, (column, value) in enumerate(CHANGED):
        change(path, f"UPDATE outcomes SET {column} = ? WHERE sample_id = 'run-{i:05d}'", value)
    change(path, "UPDATE health SET counts = '[', reasons = '{\"dropped\": 5}', longest_queue = 'x', started_at = 'y'")
    assert report(path).count("</section>") == 7
    whole = gather(path)
    assert whole.outcomes == 4 * len(CHANGED)
    for group in whole.groups:
        assert sum(b.count for b in group.distribution) == group.scored
        assert group.estimate is None or -1 <= group.estimate.mean <= 1
