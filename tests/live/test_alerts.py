"""Alerts: false alarms stay rare, drops are seen, each score counts once in all processes together, and news comes once."""

import logging
import random
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragstone import Metric, Monitor, Sample, Score
from ragstone.live import Alarm, Alert, Record, Sampling, SQLiteSink
from ragstone.live.alarms import Tally, alerts_in, count_new
from ragstone.live.betting import ALPHA, bet, bets_against, evidence, share
from ragstone.live.database import RESULTS as KIND
from ragstone.report import Report
from ragstone.results.record import Watched
from ragstone.results.sqlite import SqliteFile

from ..support.command import command  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Kept, live
from .live_app import RESULTS, rows

pytestmark = pytest.mark.usefixtures("own_folder")
ALERT = Alert("told", below=0.8)


@dataclass(frozen=True, kw_only=True)
class Told(Metric):
    """The number that the response is."""

    name = "told"
    version = "1"
    required_fields = ("response",)
    needs_llm = False

    def _flow(self, sample: Sample) -> Any:
        yield from ()
        return self._score(float(sample.response or ""), "Told.")


class Other(Told):
    name = "other"


def told(**options: Any) -> Monitor:
    return live(Told(), **{"sinks": SQLiteSink(RESULTS), "alerts": ALERT, **options})


def give(monitor: Monitor, scores: list[float], first: int = 0, **metadata: Any) -> None:
    for i, score in enumerate(scores, first):
        monitor.submit(Sample(id=f"s{i}", response=str(score), metadata=metadata))
    assert monitor.flush(PATIENCE)


def counted(path: str = RESULTS) -> dict[tuple[str, float], int]:
    with closing(SQLiteSink(path)) as sink:
        count_new(sink.database)
        return {(metric, below): samples for metric, _, below, samples, *_ in alerts_in(sink.database)}


def alarms_of(path: str = RESULTS) -> list[Alarm]:
    with closing(SQLiteSink(path)) as sink:
        count_new(sink.database)
        return [alarm for *_, alarm in alerts_in(sink.database) if alarm is not None]


# --- arithmetic -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.05, 0.5, 0.75, 0.99])
@pytest.mark.parametrize("samples", [0, 1, 49, 50, 51, 5_000])
def test_nobody_wins_on_average_while_the_mean_is_as_promised(mean: float, samples: int) -> None:
    bets = bets_against(mean)
    stakes = np.linspace(0.0, 3.0, len(bets)) if samples else np.zeros(len(bets))
    after = [evidence(bet(stakes, bets, mean, samples, np.asarray(x)), samples + 1) for x in (0.0, 1.0)]
    assert evidence(stakes, samples) == pytest.approx((1 - mean) * after[0] + mean * after[1])
    assert min(after) >= 0


def test_the_shares_add_up_to_one_and_alpha_is_what_is_promised() -> None:
    assert sum(share(k) for k in range(1, 100_000)) == pytest.approx(1 - 1 / np.log2(100_001))
    assert evidence(np.zeros(3), 0) == 1
    assert ALPHA <= 0.05


def streams(rng: np.random.Generator, mean: float, shape: tuple[int, int]) -> Any:
    return rng.beta(1.0833 * mean / 0.75, 0.3611 * (1 - mean) / 0.25, shape)  # a standard deviation of .28 to .3


def first_alarms(scores: Any) -> Any:
    bets, raised = bets_against(0.75), np.full(len(scores), 10**6)
    stakes = np.zeros((len(scores), len(bets)))
    for n in range(scores.shape[1]):
        stakes = bet(stakes, bets, 0.75, n, scores[:, n : n + 1])
        raised[(evidence(stakes, n + 1) >= 1 / ALPHA) & (raised > n)] = n + 1
    return raised


def test_healthy_streams_stay_silent_and_drops_are_seen() -> None:
    rng = np.random.default_rng(7)
    healthy = streams(rng, 0.75, (200, 3_000))
    assert np.mean(first_alarms(healthy) < 10**6) <= 0.05
    assert np.median(first_alarms(streams(rng, 0.65, (200, 600)))) <= 150
    late = first_alarms(np.hstack([healthy, streams(rng, 0.65, (200, 1_000))]))
    assert np.median(late[late > 3_000] - 3_000) <= 400


def watched(below: float, low: float = 0.0, high: float = 1.0) -> Watched:
    return Watched(below, low, high)


def timed(values: Iterable[float]) -> list[tuple[float, float]]:
    return [(value, float(i)) for i, value in enumerate(values)]


@pytest.mark.parametrize(("bounds", "scale"), [((0.0, 1.0), 1.0), ((1.0, 5.0), 4.0)], ids=["shares", "stars"])
def test_bounds_are_mapped(bounds: Any, scale: float) -> None:
    tally = Tally()
    values = [bounds[0] + scale * value for value in [1.0] * 500 + [0.2, 0.6] * 50]
    assert tally.count(timed(values), watched(bounds[0] + scale * 0.8, *bounds))
    assert 505 < tally.samples < 530, "what comes after the alarm is not counted"
    assert tally.total == pytest.approx(sum(values[: tally.samples]))


@pytest.mark.parametrize("seed", range(20))
def test_the_drop_is_where_most_is_lacking(seed: int) -> None:
    values = random.Random(seed).choices([0.0, 0.3, 0.7, 0.9, 1.0], k=1 + seed)
    tally = Tally()
    while tally.samples < len(values):
        tally.count(timed(values)[tally.samples :], watched(0.8))
    lacks = [sum(0.8 - value for value in values[start:]) for start in range(len(values))]
    if max(lacks) > 0:
        assert lacks[int(tally.since)] == pytest.approx(max(lacks))
        assert tally.recent == len(values) - int(tally.since)
        assert tally.recent_total == pytest.approx(sum(values[int(tally.since) :]))


# --- what is counted ------------------------------------------------------------------------------------------------


def test_an_alarm_comes_once_to_all_and_stays_silent_over_restarts(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Alarm] = []

    class Alarmed(Kept):
        def alarm(self, alarm: Alarm) -> None:
            seen.append(alarm)

    calls: list[Alarm] = []
    options: dict[str, Any] = {"sinks": [Alarmed(), SQLiteSink(RESULTS)], "on_alarm": calls.append, "workers": 1}
    with caplog.at_level(logging.WARNING, "ragstone"):
        with told(**options, store_text=True) as monitor:
            give(monitor, [1.0] * 300)
            assert (seen, counted()) == ([], {("told", 0.8): 300})
        with told(**options, store_text=True) as monitor:
            give(monitor, [0.3 + 0.001 * i for i in range(100)], 300)
            soon(lambda: calls and seen)
            give(monitor, [0.0] * 50, 400)
        with told(**options) as monitor:
            give(monitor, [0.0] * 50, 450)
    assert len(calls) == len(seen) == 1
    (alarm,) = calls
    assert seen == calls
    assert (alarm.metric, alarm.below) == ("told", 0.8)
    assert 300 < alarm.samples < 330
    assert [each.sample_id for each in alarm.lowest] == [f"s{i}" for i in range(300, 310)][: len(alarm.lowest)]
    assert [line for line in caplog.messages if "told below 0.8" in line] == [str(alarm)]

    done = command("live", "alarms", RESULTS)
    assert "ALARM" in done.stdout
    assert str(alarm) in done.stdout
    assert command("live", "alarms", RESULTS, "--reset").stdout.endswith("1 alert started anew\n")
    with told(**options) as monitor:
        give(monitor, [0.0] * 50, 500)
        soon(lambda: len(calls) == 2)
    assert calls[1].samples < 20


@pytest.mark.parametrize("place", ["memory", "outbox", "other_process"])
def test_only_samples_that_the_rate_chose_count(place: str) -> None:
    options: dict[str, Any] = {"outbox": None if place == "memory" else "outbox.db"}

    def run(**more: Any) -> None:
        if place == "other_process":
            with told(**options, **more, workers=0) as taking:
                give(taking, [1.0] * 200)
            with taking.judging(2) as judging:
                assert judging.flush(PATIENCE)
        else:
            with told(**options, **more) as monitor:
                give(monitor, [1.0] * 200)

    run(sampling=Sampling(rate=0.5))
    assert 70 < counted()["told", 0.8] < 130
    run(sampling=Sampling(rate=0.5, always=[lambda _: True]), sinks=SQLiteSink("other.db"))
    assert rows("other.db", "SELECT count(*) FROM outcomes") == [(200,)]
    assert counted() == counted("other.db")


def test_each_metric_is_watched_apart_and_with_another_mean_anew() -> None:
    calls: list[Alarm] = []
    for below, first in ((0.8, 0), (0.9, 500)):
        alerts = [Alert("told", below=below), Alert("other", below=0.2)]
        with live([Told(), Other()], SQLiteSink(RESULTS), alerts=alerts, on_alarm=calls.append) as monitor:
            give(monitor, [0.7] * 200, first)
            soon(lambda: len(calls) == 1 + (first > 0))  # noqa: B023 - it ends before the next one
        assert {int(low.sample_id[1:]) // 500 * 500 for low in calls[-1].lowest} == {first}
    assert [(alarm.metric, alarm.below) for alarm in calls] == [("told", 0.8), ("told", 0.9)]
    assert counted() == {("other", 0.2): 400, **{("told", alarm.below): alarm.samples for alarm in calls}}


@pytest.mark.parametrize(
    ("options", "named"),
    [({}, "thread_id"), ({"group": "metadata.doc"}, "doc"), ({"group": "user_id"}, "user_id")],
)
def test_of_a_group_one_score_moves_an_alarm(options: Any, named: str) -> None:
    with told(**options) as monitor:
        for group in range(3):
            give(monitor, [1.0] * 8, 8 * group, **{named: f"g{group}"})
        give(monitor, [1.0] * 4, 24)  # of no group
    assert counted() == {("told", 0.8): 7}
    with told(**options) as monitor:  # another process
        give(monitor, [1.0] * 8, 30, **{named: "g0"})
    assert counted() == {("told", 0.8): 7}
    assert Report.load(RESULTS)["told"].groups[:2] == "7 "
    with pytest.raises(ValueError, match="group: 'doc' is no field; write metadata.doc"):
        told(group="doc")


def test_a_conversation_that_goes_on_counts_once_a_day() -> None:
    score, day = Score(metric="told", value=1.0, reason="", version="1"), 86_400.0
    with closing(SQLiteSink(RESULTS)) as sink:
        for hours in (1, 2, 20, 26, 49, 51):
            at = day + 3_600.0 * hours
            sink.write([Record(f"s{hours}", score, scored_at=at, thread_id="t", watched=watched(0.8))])
            count_new(sink.database)
    assert counted() == {("told", 0.8): 3}


def test_a_score_that_is_handed_over_again_counts_once() -> None:
    class Twice(SQLiteSink):
        fails = 2

        def write(self, records: Any) -> None:
            super().write(records)
            if self.fails:
                self.fails -= 1
                raise OSError("after all was written")

    with told(sinks=Twice(RESULTS), workers=1) as monitor:
        give(monitor, [1.0] * 100)
        assert monitor.stats().errors
    assert counted() == {("told", 0.8): 100}
    with told() as monitor:
        give(monitor, [0.5] * 100)  # of the same ids: they are replaced
    assert counted() == {("told", 0.8): 100}


def test_an_alarm_has_its_lowest_scores_where_the_clock_went_back() -> None:
    score = Score(metric="told", value=0.0, reason="", version="1")
    with closing(SQLiteSink(RESULTS)) as sink:
        for at, numbers in ((5_000.0, range(2)), (1_000.0, range(2, 40))):
            sink.write([Record(f"s{i}", score, watched=watched(0.8), scored_at=at + i) for i in numbers])
            count_new(sink.database)
    (alarm,) = alarms_of()
    assert (alarm.recent_samples, len(alarm.lowest)) == (4, 4)


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_what_a_command_finds_is_announced_by_a_monitor() -> None:
    score = Score(metric="told", value=0.0, reason="", version="1")
    with closing(SQLiteSink(RESULTS)) as sink:
        sink.write([Record(f"s{i}", score, watched=watched(0.8)) for i in range(20)])
        sink.write([Record(f"by a rule {i}", score) for i in range(20)])
    done = command("live", "alarms", RESULTS)
    assert (done.exit_code, done.stdout.count("Alarm of")) == (1, 1)
    calls: list[Alarm] = []
    with told(on_alarm=calls.append) as monitor:
        give(monitor, [0.0], 20)
    assert calls == alarms_of()
    assert [low.sample_id[0] for low in calls[0].lowest] == ["s"] * calls[0].recent_samples


@pytest.mark.parametrize("kind", ["raises", "exits", "hangs"])
def test_a_function_that_fails_harms_nothing(kind: str) -> None:
    asked = []

    def on_alarm(alarm: Alarm) -> None:
        asked.append(alarm)
        if kind == "hangs":
            time.sleep(10_000)
        raise SystemExit(1) if kind == "exits" else ValueError("no")

    monitor = told(on_alarm=on_alarm)
    give(monitor, [0.0] * 300)
    assert rows(RESULTS, "SELECT count(*) FROM outcomes") == [(300,)]
    soon(lambda: asked)
    if kind != "hangs":
        soon(lambda: monitor.stats().errors.get("on_alarm") == 1)
    assert monitor.close(1.0)
    assert len(asked) == 1


def test_forgetting_removes_ids_and_not_what_was_counted() -> None:
    with told() as monitor:
        give(monitor, [0.0] * 10)
    with closing(SQLiteSink(RESULTS)) as sink:
        sink.forget(ids=["s3"])
        (alarm,) = alarms_of()
        names = {each.sample_id for each in alarm.lowest}
        assert names
        assert names <= {f"s{i}" for i in range(10) if i != 3}
        sink.forget(before=time.time() + 60)
    assert [each.lowest for each in alarms_of()] == [()]
    assert set(counted()) == {("told", 0.8)}
    assert b"s3" not in Path(RESULTS).read_bytes()


# --- what is refused ------------------------------------------------------------------------------------------------


class Lower(Told):
    higher_is_better = False


WRONG: list[tuple[Any, str]] = [
    (lambda: Alert("told", below=float("nan")), "below: nan should be a finite number"),
    (lambda: Alert("", below=0.8), "metric: '' is blank"),
    (lambda: told(alerts=Alert("other", below=0.8)), r"alerts: 'other' is not a metric of this monitor"),
    (lambda: told(alerts=Alert("told", below=1.0)), "below: is 1.0; told needs a number between 0 and 1"),
    (lambda: told(alerts=[ALERT, Alert("told", below=0.7)]), "two watch 'told'; a metric has one alert"),
    (lambda: told(alerts="told"), r"alerts\[0\]: 'told' should be an instance of Alert"),
    (lambda: told(sinks=Kept()), "alerts: need a sink with a database"),
    (lambda: told(on_alarm=3), "on_alarm: is int"),
    (lambda: live(Lower(), SQLiteSink(RESULTS), alerts=ALERT), "told needs two bounds, and higher scores must be"),
]


def test_what_cannot_be_is_refused_at_once() -> None:
    for make, message in WRONG:
        with pytest.raises((ValueError, TypeError), match=message):
            make()


def test_a_database_that_hangs_while_alerts_count_holds_up_nothing_else() -> None:
    free = threading.Event()

    class Hangs(SqliteFile):
        def transaction(self, removing: str = "") -> Any:
            assert threading.current_thread().name != "ragstone-alerts" or free.wait(PATIENCE)
            return super().transaction(removing)

    sink = SQLiteSink(RESULTS)
    sink.database = Hangs(sink.path, KIND, 15.0)
    monitor = told(sinks=sink, outbox="outbox.db")
    for i in range(50):
        monitor.submit(Sample(id=f"s{i}", response="1.0"))
    soon(lambda: rows(RESULTS, "SELECT count(*) FROM outcomes") == [(50,)])
    soon(lambda: rows("outbox.db", "SELECT count(*) FROM samples") == [(0,)])
    free.set()
    assert monitor.flush(PATIENCE)
    assert monitor.close()
    assert counted() == {("told", 0.8): 50}
