"""Judges, sinks and an outbox that are down and come back, more than memory holds, several monitors on one outbox."""

import asyncio
import math
import signal
import sqlite3
import threading
import time
import tracemalloc
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from ragstone.live import CallableSink, FlushResult
from ragstone.live.settings import Waits

from ..support.waiting import soon  # noqa: TID252
from .kit import Second
from .live_app import (
    OUTBOX,
    RESULTS,
    ContextRelevancy,
    Down,
    accounted,
    app,
    asked,
    calls,
    change,
    hangs,
    kept,
    live,
    noting_judge,
    results,
    rows,
    sample,
    submit,
    undelivered,
    waiting,
)

pytestmark = pytest.mark.usefixtures("own_folder")


SOON = Waits(judge=(0.01, 0.02), looks=0.01, sink=(0.01, 0.05))
"""What was put off is due at once."""

IMPATIENT = Waits(locked=0.2, outbox=0.05)
"""The outbox is given up, and tried again, sooner than in earnest."""


class Fickle:
    """Something that is down until it is not."""

    def __init__(self):
        self.down = True
        self.times = 0

    def __call__(self, request=None):
        self.times += 1
        return ConnectionError("refused") if self.down else {"ids": [1]}


def test_it_waits_longer_each_time():
    """30 s, twice that, and so on up to an hour; eleven tries."""
    waits = []
    monitor = live(reply=Fickle(), waits=Waits(looks=0.005))
    before = time.time()
    monitor.submit(sample(1))
    for attempt in range(1, 11):
        soon(lambda n=attempt: rows(OUTBOX, "SELECT 1 FROM samples WHERE attempts = ? AND owner IS NULL", n))
        ((due,),) = rows(OUTBOX, "SELECT not_before FROM samples")
        waits.append(math.floor(due - before))
        monitor.flush()
        assert rows(OUTBOX, "SELECT attempts FROM samples") == [(attempt,)], "not before its time"
        before = time.time()
        change(OUTBOX, "UPDATE samples SET not_before = 0")
    soon(lambda: results("unscored"))
    documented = [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert all(wait <= found < wait + 20 for wait, found in zip(documented, waits, strict=True)), waits
    assert rows(RESULTS, "SELECT reason, detail FROM outcomes") == [("judge_error", "ConnectionError: refused")]
    assert monitor.close()
    assert monitor.stats().reasons == {"unscored": {"judge_error": 1}}
    assert waiting() == []


def test_a_judge_that_hangs_is_tried_again():
    gate = threading.Event()

    def hangs_once(request):
        if calls()[asked(request)] == 1:
            gate.wait()
        return {"ids": [1]}

    monitor = live(reply=hangs_once, timeout=0.2, workers=2, waits=SOON)
    submit(monitor, range(4))
    soon(lambda: len(results()) == 4)
    assert monitor.close()
    gate.set()
    assert monitor.stats().scored == 4


def test_a_judge_that_is_down_for_a_while_and_only_its_metric_is_tried_again():
    fickle, reliable = Fickle(), Fickle()
    reliable.down = False
    both = [ContextRelevancy(llm=noting_judge(0, reliable)), Second(llm=noting_judge(0, fickle))]
    monitor = live(metrics=both, waits=SOON)
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
    assert live().close().remaining == 3, "it never started"
    assert live(metrics=Second(llm=noting_judge())).close(), "they wait for another metric"
    with live() as monitor:
        assert monitor.flush().remaining == 3
        assert results() == [], "its time has not come"
        with live(workers=0) as writes:
            writes.submit(sample(9))
            assert writes.flush(), "it leaves judging to others"
        assert monitor.flush(put_off=True)
        assert monitor.stats().scored == 4
    assert monitor.close()
    assert results() == [0, 1, 2, 9]


def test_what_a_clock_that_was_ahead_put_off_is_tried_at_once():
    fickle = Fickle()
    with live(reply=fickle, waits=replace(SOON, judge=(60.0, 60.0))) as monitor:
        submit(monitor, range(3))
        soon(lambda: monitor.stats().spooled == 3)
        fickle.down = False
        change(OUTBOX, "UPDATE samples SET not_before = not_before + 31536000")
        soon(lambda: results() == [0, 1, 2])


def test_what_others_put_off_is_tried_at_once_only_by_the_flush_that_says_so():
    with live() as other, live(reply=Fickle()) as monitor:
        assert other.flush(put_off=True)
        submit(monitor, range(3))
        soon(lambda: monitor.stats().spooled == 3)
        assert other.flush() == FlushResult(remaining=3, undelivered=0)
        assert (other.stats().samples, results()) == (0, [])
        assert other.flush(put_off=True)
        assert results() == [0, 1, 2]


def test_a_sink_that_is_down_across_a_restart():
    with live(sinks=Down(RESULTS)) as monitor:
        submit(monitor, range(100))
        soon(lambda: undelivered() == 100)
        monitor.close(0.1)
    assert monitor.close() == FlushResult(remaining=0, undelivered=100), "the outbox has them"
    (sink,) = monitor.stats().sinks.values()
    assert (sink.waiting, sink.lost) == (100, 0)
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


def test_more_than_memory_holds_while_a_sink_is_down_comes_to_it_once():
    down, taken = [True], []

    def function(records):
        if down:
            raise OSError("down")
        taken.extend(int(record.sample_id[1:]) for record in records)

    monitor = live(sinks=CallableSink(function, "taken"), waits=replace(SOON, outcomes=5))
    submit(monitor, range(60))
    soon(lambda: undelivered() == 60)
    soon(lambda: monitor.stats().sinks["taken"].waiting == 60)
    assert monitor.flush(0.1).undelivered == 60
    down.clear()
    for i in range(60, 400):  # while it takes what waited
        monitor.submit(sample(i))
        time.sleep(0.002)
    assert monitor.flush()
    assert sorted(taken) == list(range(400))
    monitor.close()
    assert undelivered() == 0
    assert set(calls().values()) == {1}
    assert monitor.stats().sinks["taken"].lost == 0


@contextmanager
def locked(path=OUTBOX):
    """Another connection holds the whole file."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def test_locked_for_a_while():
    """What the file has is judged; outcomes and new samples wait until it can be written again."""
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]}, waits=IMPATIENT)
    kept(monitor, range(50))
    with locked():
        gate.set()
        submit(monitor, range(50, 200))
        soon(lambda: len(calls()) == 50)
        soon(lambda: monitor.stats().errors.get("outbox"))
        assert (monitor.stats().pending, results()) == (200, [])
    soon(lambda: not waiting())
    submit(monitor, range(200, 300))
    assert monitor.close()
    assert results() == list(range(300))
    assert set(calls().values()) == {1}
    accounted(monitor)
    assert (waiting(), undelivered()) == ([], 0)


def test_locked_when_the_judge_fails():
    gate, down = threading.Event(), [True]

    def fails(request):
        gate.wait()
        return ConnectionError("down") if down[0] else {"ids": [1]}

    monitor = live(reply=fails, waits=replace(IMPATIENT, judge=(0.01, 0.02), looks=0.01))
    kept(monitor, range(20))
    with locked():
        submit(monitor, range(20, 40))
        soon(lambda: monitor.stats().errors.get("outbox"))
        gate.set()
        soon(lambda: len(calls()) == 20)
        down[0] = False
    soon(lambda: len(results()) == 40)
    assert monitor.close()
    assert (monitor.stats().scored, monitor.stats().reasons) == (40, {})
    accounted(monitor)
    assert waiting() == []


def test_locked_when_the_monitor_closes():
    monitor = live(reply=lambda request: time.sleep(10_000), waits=IMPATIENT)
    kept(monitor, range(30))
    with locked():
        submit(monitor, range(30, 60))
        result = monitor.close(0.1)
        assert (result.remaining, result.done) == (60, False), "30 in the outbox, 30 dropped"
        accounted(monitor)
        reasons = monitor.stats().reasons
        assert (reasons["spooled"], sum(reasons["dropped"].values())) == ({"outbox": 30}, 30)
    assert len(waiting()) == 30
    with live() as monitor:
        assert monitor.flush()
    assert results() == list(range(30))


def test_submit_does_not_wait_for_the_file():
    """While the file is held, and so its worker: what is submitted only stands in a queue."""
    monitor = live()
    assert monitor.flush()
    with locked():
        submit(monitor, range(500))  # would take minutes if each waited for the file
        assert monitor.stats().pending > 0
    assert monitor.close(None)
    assert results() == list(range(500))


def test_a_sample_that_is_dropped_while_it_is_written_is_not_judged():
    monitor = live(size=3)
    assert monitor.flush()
    with locked():
        submit(monitor, range(3))
        time.sleep(0.2)  # these are being written: the file is waited for
        submit(monitor, range(3, 6))
        assert monitor.stats().reasons == {"dropped": {"queue_full": 3}}
    assert monitor.flush(20)
    assert results() == [3, 4, 5]
    assert set(calls()) == {3, 4, 5}
    assert monitor.close()
    assert waiting() == []
    accounted(monitor)


def test_they_wait_on_disk_not_in_memory():
    monitor = live(workers=0, size=10)
    large = "x" * 100_000
    tracemalloc.start()
    try:
        for i in range(150):  # 15 MB
            monitor.submit(sample(i, metadata={"large": f"{i} {large}"}))
            soon(lambda i=i: len(waiting()) == i + 1)
        soon(lambda: len(waiting()) == 150)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 6_000_000
    assert monitor.close()
    assert monitor.stats().spooled == 150
    with live() as judging:
        assert judging.flush()
    assert results() == list(range(150))
    accounted(monitor)


def test_an_id_that_is_in_the_outbox_is_a_duplicate():
    monitor = live(reply=lambda request: ConnectionError("down"))
    submit(monitor, [1])
    soon(lambda: monitor.stats().spooled == 1)
    monitor.submit(sample(1))
    monitor.close()
    assert monitor.stats().reasons["duplicate"] == {"same_id": 1}
    with live() as again:  # another start: it remembers no ids, the outbox does
        again.submit(sample(1))
        again.submit(sample(2))
        again.flush()
        assert again.stats().reasons["duplicate"] == {"in_outbox": 1}
    accounted(again)
    assert results() == [2]
    assert waiting() == ["s1"]


def test_a_sample_of_a_metric_that_is_gone_is_left_and_the_others_go_on():
    class Newer(Second):
        version = "99"

    both = live(metrics=[ContextRelevancy(llm=noting_judge()), Second(llm=noting_judge())])
    both.pause()
    kept(both, range(5))
    both.close()
    assert both.stats().reasons["spooled"] == {"outbox": 10}
    with live() as one:
        assert one.flush()
        assert (one.stats().accepted, one.stats().scored) == (5, 5)
    assert sorted(waiting()) == [f"s{i}" for i in range(5)]
    with live(metrics=Newer(llm=noting_judge())) as other:  # another version takes the metric's place
        assert other.flush()
        assert (other.stats().accepted, other.stats().scored) == (5, 5)
    assert waiting() == []
    assert results() == sorted([*range(5), *range(5)])
    assert rows("results.db", "SELECT version FROM outcomes WHERE metric = 'second'") == [("99",)] * 5


def test_two_processes_share_the_work():
    first = live()
    first.pause()
    kept(first, range(100))
    first.close()
    share = """
from pathlib import Path
def reply(request):
    Path(f"{os.getpid()}.busy").touch()
    soon(lambda: len(list(Path().glob("*.busy"))) == 2)
    return {"ids": [1]}
monitor = live(reply=reply, size=5)
say(monitor.flush().done, monitor.stats().scored)
hear()
"""
    with app(share) as one, app(share) as two:
        done = [process.hear().split() for process in (one, two)]
    assert [word for word, _ in done] == ["True", "True"]
    scored = [int(n) for _, n in done]
    assert sum(scored) == 100
    assert min(scored) > 0
    assert results() == list(range(100))
    assert set(calls().values()) == {1}, "none was judged twice"


def test_what_a_killed_process_had_is_adopted_by_one_that_lives():
    """Samples and outcomes both, without a restart of the living one."""
    monitor = live(waits=Waits(adoptions=0.05, looks=0.05))
    submit(monitor, [0])
    assert monitor.flush()
    down = """
monitor = live(sinks=Down(RESULTS))
submit(monitor, range(1, 50))
soon(lambda: undelivered() == 49)
monitor.pause()
kept(monitor, range(50, 100))
say("kept")
hear()
"""
    with app(down) as other:
        other.hear()
        for _ in range(3):
            monitor.flush()
        assert results() == [0], "it lives"
        other.send_signal(signal.SIGSTOP)
        monitor.flush()
        assert results() == [0], "it only sleeps"
        other.kill()
        other.wait()
        soon(lambda: len(results()) == 100)
    assert monitor.close()
    assert set(calls().values()) == {1}
    assert (waiting(), undelivered()) == ([], 0)
