"""Spooling and sharing: more than memory has room for, and several monitors on one outbox."""

import os
import signal
import threading
import tracemalloc

import pytest

from ragstone.live.settings import Waits

from ..support.waiting import soon  # noqa: TID252
from .kit import Second
from .live_app import (
    OUTBOX,
    ContextRelevancy,
    accounted,
    app,
    calls,
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


def test_they_wait_on_disk_not_in_memory():
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]}, when_full="spool", size=10, workers=1)
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
    assert held < 6_000_000, "ten wait, one is judged; the rest is on disk"
    soon(lambda: monitor.stats().pending == 11)
    assert monitor.stats().spooled == 150 - 11
    gate.set()
    assert monitor.close()
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

    both = live(metrics=[ContextRelevancy(llm=judge()), Second(llm=judge())])
    both.pause()
    kept(both, range(5))
    both.close()
    assert both.stats().reasons["spooled"] == {"outbox": 10}
    with live() as one:
        assert one.flush()
        assert (one.stats().accepted, one.stats().scored) == (5, 5)
    assert sorted(waiting()) == [f"s{i}" for i in range(5)]
    with live(metrics=Newer(llm=judge())) as other:  # another version takes the metric's place
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


fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


FORK = """
monitor = live(0.001)
submit(monitor, [5_000])
monitor.flush()
monitor.pause()
kept(monitor, range(100))
child = os.fork()
if child == 0:
    monitor.submit(sample(1_000))
    soon(lambda: 1_000 in results())
    submit(monitor, range(1_001, 1_050))
    done = monitor.close()
    os._exit(0 if done and monitor.stats().scored == 50 else 1)
assert len(waiting()) >= 100
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert sorted(waiting()) == sorted(f"s{i}" for i in range(100)), "the child takes nothing of its living parent's"
monitor.resume()
assert monitor.close()
assert monitor.stats().scored == 101, monitor.stats()
"""


@fork
def test_a_fork_after_the_start():
    with app(FORK, "-W", "ignore") as process:
        assert process.end() == (0, "")
    assert results() == [*range(100), *range(1_000, 1_050), 5_000]
    assert set(calls().values()) == {1}
    assert rows(OUTBOX, "PRAGMA integrity_check") == [("ok",)]
    assert waiting() == []
