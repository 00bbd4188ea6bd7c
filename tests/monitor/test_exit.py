"""Processes that end without `close`: no judge can be asked any more, and what is left lies in the outbox."""

import signal

import pytest

from ..support.waiting import soon  # noqa: TID252
from .live_app import OUTBOX, app, calls, change, live, ran, results, rows, sample, undelivered, waiting

# The judge hangs, so that nothing but what is in the outbox can be scored later.
HANGING = "monitor = live(reply=hangs)\n"
pytestmark = pytest.mark.usefixtures("own_folder")


def finish(n):
    """The next start scores all that was left."""
    with live() as monitor:
        assert monitor.flush(put_off=True)
    assert results() == list(range(n))
    assert (waiting(), undelivered()) == ([], 0)


ENDINGS = {
    "Ctrl-C": ("import signal; signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "KeyboardInterrupt\n"),
    "SIGTERM": ("import signal; signal.raise_signal(signal.SIGTERM)", -signal.SIGTERM, ""),
}


@pytest.mark.parametrize(("ending", "status", "says"), ENDINGS.values(), ids=ENDINGS)
def test_the_outbox_has_them_all(ending, status, says):
    found, errors = ran(HANGING + f"kept(monitor, range(100))\n{ending}")
    assert (found, errors[-len(says) :] if says else errors) == (status, says)
    assert sorted(waiting()) == sorted(f"s{i}" for i in range(100))
    finish(100)


def test_what_was_not_written_yet_is_written_at_the_end():
    """1,000 samples submitted in the last moment, a judge that hangs: the process ends, the outbox has them all."""
    code = "monitor = live(reply=hangs, max_queue=10, when_full='spool', workers=2)\nsubmit(monitor, range(1_000))"
    assert ran(code) == (0, "")
    assert len(waiting()) == 1_000
    finish(1_000)


def test_what_was_judged_before_is_not_judged_again():
    code = """
monitor = live(reply=lambda request: {"ids": [1]} if asked(request) < 50 else hangs(request), workers=2)
submit(monitor, range(200))
soon(lambda: sum(calls().values()) >= 52)
"""
    assert ran(code) == (0, "")
    finish(200)
    assert max(calls().values()) == 2
    assert {n for n, times in calls().items() if times == 2} == {50, 51}


def test_close_with_a_judge_that_hangs():
    code = """
monitor = live(reply=hangs)
submit(monitor, range(100))
result = monitor.close(0.5)
say(result.done, result.remaining)
accounted(monitor)
monitor.submit(sample(1_000))
say(monitor.stats().reasons)
"""
    with app(code) as process:
        assert process.hear() == "False 100"
        assert process.hear() == "{'dropped': {'closed': 1}, 'spooled': {'outbox': 100}}"
        assert process.end() == (0, "the app is not affected; dropped: closed (1)\n")
    assert len(waiting()) == 100
    finish(100)


def test_closed_is_closed():
    """After `close` no thread of the monitor's takes anything up again."""
    with live() as monitor:
        monitor.submit(sample(0))
    with live(reply=lambda request: ConnectionError("down")) as other:
        soon(lambda: other.flush() is not None)
        for i in range(1, 4):
            other.submit(sample(i))
    change(OUTBOX, "UPDATE samples SET not_before = 0")
    for closed in (monitor, other):
        closed._process._keeper.turn(hurry=True)
    assert rows(OUTBOX, "SELECT owner FROM samples") == [(None,)] * 3
    finish(4)


def test_an_outbox_that_hangs_at_the_end():
    """Somebody holds the file while the process ends: it ends, and says what it could not keep."""
    code = """
monitor = live(reply=hangs)
kept(monitor, range(10))
import sqlite3
other = sqlite3.connect(OUTBOX, isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
submit(monitor, range(10, 20))
"""
    status, errors = ran(code)
    assert status == 0
    assert "Traceback" not in errors
    assert "the app is not affected; " in errors
    assert len(waiting()) == 10
    finish(10)
