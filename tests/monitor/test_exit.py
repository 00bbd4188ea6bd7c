"""Processes that end without `close`: no judge can be asked any more, and what is left lies in the outbox."""

import signal

import pytest

from .live_app import app, calls, live, ran, results, undelivered, waiting

# The judge hangs, so that nothing but what is in the outbox can be scored later.
HANGING = "monitor = live(reply=hangs)\n"
pytestmark = pytest.mark.usefixtures("own_folder")


def finish(n):
    """The next start scores all that was left."""
    with live() as monitor:
        assert monitor.flush(put_off=True)
    assert results() == list(range(n))
    assert (waiting(), undelivered()) == ([], 0)


@pytest.mark.parametrize(("ending", "says"), [(signal.SIGINT, "KeyboardInterrupt\n"), (signal.SIGTERM, "")])
def test_the_outbox_has_them_all(ending, says):
    status, errors = ran(HANGING + f"kept(monitor, range(100))\nimport signal; signal.raise_signal({int(ending)})")
    assert (status, errors[-len(says) :] if says else errors) == (-ending, says)
    assert sorted(waiting()) == sorted(f"s{i}" for i in range(100))
    finish(100)


def test_what_was_not_written_yet_is_written_and_what_was_judged_is_not_judged_again():
    """1,000 samples, most of them submitted in the last moment, and a judge that hangs."""
    code = """
reply = lambda request: {"ids": [1]} if asked(request) < 50 else hangs(request)
monitor = live(reply=reply, max_queue=10, when_full="spool", workers=2)
submit(monitor, range(60))
soon(lambda: sum(calls().values()) >= 52)
submit(monitor, range(60, 1_000))
"""
    assert ran(code) == (0, "")
    assert len(waiting()) + undelivered() >= 950
    finish(1_000)
    assert {n for n, times in calls().items() if times > 1} == {50, 51}


def test_close_with_a_judge_that_hangs():
    code = """
submit(monitor, range(100))
result = monitor.close(0.5)
say(result.done, result.remaining)
accounted(monitor)
monitor.submit(sample(1_000))
say(monitor.stats().reasons)
"""
    with app(HANGING + code) as process:
        assert process.hear() == "False 100"
        assert process.hear() == "{'dropped': {'closed': 1}, 'spooled': {'outbox': 100}}"
        assert process.end() == (0, "the app is not affected; dropped: closed (1)\n")
    assert len(waiting()) == 100
    finish(100)


def test_an_outbox_that_hangs_at_the_end():
    """Somebody holds the file while the process ends: it ends, and says what it could not keep."""
    code = """
import sqlite3, ragstone.store.outbox
ragstone.store.outbox._PATIENCE = 0.5
monitor = live(reply=hangs)
kept(monitor, range(10))
other = sqlite3.connect(OUTBOX, isolation_level=None, timeout=60)
other.execute("BEGIN EXCLUSIVE")
submit(monitor, range(10, 20))
"""
    status, errors = ran(code)
    assert status == 0
    assert "Traceback" not in errors
    assert "the app is not affected; " in errors
    assert len(waiting()) == 10
    finish(10)
