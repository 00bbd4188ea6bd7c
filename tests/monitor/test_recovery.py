"""Judges and sinks that are down and come back: nothing is lost, and nothing is tried for ever."""

import asyncio
import threading

import pytest

from ragstone.monitor import Budget, outbox_pipeline, worker

from ..support.waiting import soon  # noqa: TID252
from .kit import Second
from .live_app import (
    OUTBOX,
    RESULTS,
    ContextRelevancy,
    Down,
    accounted,
    asked,
    calls,
    hangs,
    judge,
    kept,
    live,
    results,
    rows,
    sample,
    submit,
    undelivered,
    waiting,
)

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def due_at_once(monkeypatch):
    """What was put off is due at once."""
    monkeypatch.setattr(outbox_pipeline, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(outbox_pipeline, "_LONGEST_WAIT", 0.02)
    monkeypatch.setattr(outbox_pipeline, "_SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr("ragstone.monitor.delivery._LONGEST_WAIT", 0.05)


class Fickle:
    """Something that is down until it is not."""

    def __init__(self):
        self.down = True
        self.times = 0

    def __call__(self, request=None):
        self.times += 1
        return ConnectionError("refused") if self.down else {"ids": [1]}


def test_it_waits_longer_each_time(monkeypatch):
    """30 s, twice that, and so on up to an hour; eleven tries."""
    now, waits = 1_000_000.0, []
    monkeypatch.setattr("ragstone.store.outbox.time.time", lambda: now)
    monkeypatch.setattr(outbox_pipeline, "_SECONDS_BETWEEN_LOOKS", 0.005)
    monitor = live(reply=Fickle())
    monitor.submit(sample(1))
    for attempt in range(1, worker.MOST_ATTEMPTS):
        soon(lambda n=attempt: rows(OUTBOX, "SELECT 1 FROM samples WHERE attempts = ? AND owner IS NULL", n))
        ((due,),) = rows(OUTBOX, "SELECT not_before FROM samples")
        waits.append(due - now)
        now = due - 1
        monitor.flush()
        assert rows(OUTBOX, "SELECT attempts FROM samples") == [(attempt,)], "not before its time"
        now = due + 1
    soon(lambda: results("unscored"))
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600], "about four hours, as documented"
    assert rows(RESULTS, "SELECT reason, detail FROM outcomes") == [("judge_error", "ConnectionError: refused")]
    assert monitor.close()
    assert monitor.stats().reasons == {"unscored": {"judge_error": 1}}
    assert waiting() == []


def test_a_judge_that_hangs_is_tried_again(due_at_once):
    gate = threading.Event()

    def hangs_once(request):
        if calls()[asked(request)] == 1:
            gate.wait()
        return {"ids": [1]}

    monitor = live(reply=hangs_once, timeout=0.2, workers=2)
    submit(monitor, range(4))
    soon(lambda: len(results()) == 4)
    assert monitor.close()
    gate.set()
    assert monitor.stats().scored == 4


def test_a_judge_that_is_down_for_a_while_and_only_its_metric_is_tried_again(due_at_once):
    fickle, reliable = Fickle(), Fickle()
    reliable.down = False
    monitor = live(metrics=[ContextRelevancy(llm=judge(0, reliable)), Second(llm=judge(0, fickle))])
    submit(monitor, range(5))
    soon(lambda: fickle.times >= 15)
    assert results("unscored") == []
    fickle.down = False
    soon(lambda: len(results()) == 10)
    assert reliable.times == 5
    assert monitor.close()
    assert (monitor.stats().accepted, monitor.stats().scored, monitor.stats().spooled) == (10, 10, 0)
    assert waiting() == []


def test_flush_does_not_wait_for_what_is_put_off_and_the_next_start_may_try_it():
    monitor = live(reply=Fickle())
    submit(monitor, range(3))
    result = monitor.flush()
    assert (result.done, result.remaining, result.undelivered) == (False, 3, 0)
    assert monitor.close().remaining == 3
    accounted(monitor)
    with live() as monitor:
        monitor.flush()
        assert results() == [], "its time has not come"
        assert monitor.flush(put_off=True)
        assert monitor.stats().scored == 3
    assert results() == [0, 1, 2]


def test_a_sink_that_is_down_across_a_restart():
    with live(sinks=Down(RESULTS)) as monitor:
        submit(monitor, range(100))
        soon(lambda: undelivered() == 100)
        monitor.close(0.1)
    assert monitor.close().undelivered == 0, "the outbox has them"
    (sink,) = monitor.stats().sinks.values()
    assert sink.lost == 0
    with live() as monitor:
        submit(monitor, range(100, 150))
        assert monitor.flush()
    assert results() == list(range(150))
    assert undelivered() == 0
    assert set(calls().values()) == {1}


@pytest.mark.parametrize("entered", ["with", "lifespan"])
def test_what_is_left_is_taken_up_at_the_start_with_no_new_sample(entered):
    with live(reply=hangs) as monitor:
        kept(monitor, range(20))
        monitor.close(0.0)

    async def served():
        async with monitor.lifespan():
            await asyncio.to_thread(soon, lambda: results() == list(range(20)))

    monitor = live()
    if entered == "lifespan":
        asyncio.run(served())
    else:
        with monitor:
            soon(lambda: results() == list(range(20)))


def test_more_than_memory_holds_while_a_sink_is_down(due_at_once, monkeypatch):
    monkeypatch.setattr(outbox_pipeline, "MOST_WAITING", 50)
    monkeypatch.setattr("ragstone.monitor.delivery.MOST_WAITING", 50)
    sink = Down(RESULTS)
    monitor = live(sinks=sink)
    submit(monitor, range(500))
    soon(lambda: undelivered() == 500)
    (standing,) = monitor.stats().sinks.values()
    assert standing.waiting <= 50
    sink.down = False
    assert monitor.flush()
    assert results() == list(range(500))
    monitor.close()
    assert undelivered() == 0
    assert set(calls().values()) == {1}
    (standing,) = monitor.stats().sinks.values()
    assert standing.lost == 0


def test_what_was_over_budget_is_not_kept():
    with live(budget=Budget(calls_per_day=3), workers=1) as monitor:
        submit(monitor, range(10))
        assert monitor.flush()
        assert (monitor.stats().scored, monitor.stats().over_budget) == (3, 7)
    assert waiting() == []
    accounted(monitor)
