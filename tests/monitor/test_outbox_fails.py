"""An outbox that cannot be used, for a while or at all: the app does not notice, scoring goes on, all is accounted."""

import shutil
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ragstone.monitor import outbox_pipeline

from ..support.waiting import soon  # noqa: TID252
from .live_app import (
    OUTBOX,
    accounted,
    calls,
    kept,
    live,
    ran,
    results,
    submit,
    undelivered,
    waiting,
)

GARBAGE = b"no database" * 1000
pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def impatient(monkeypatch):
    """The outbox is given up, and tried again, sooner than in earnest."""
    monkeypatch.setattr("ragstone.store.outbox._PATIENCE", 0.2)
    monkeypatch.setattr(outbox_pipeline, "_SECONDS_AFTER_FAILURE", 0.05)


@contextmanager
def locked(path=OUTBOX):
    """Another connection holds the whole file."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def test_locked_for_a_while(impatient):
    """Also what it had when it was locked and was done meanwhile: its rows go when the file can be written again."""
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]})
    kept(monitor, range(50))
    with locked():
        gate.set()
        submit(monitor, range(50, 200))
        soon(lambda: len(results()) == 200)  # from memory, while the file is held
        assert monitor.stats().errors["outbox"] >= 1
    soon(lambda: not waiting())
    submit(monitor, range(200, 300))
    assert monitor.close()
    assert results() == list(range(300))
    assert set(calls().values()) == {1}
    accounted(monitor)
    assert (waiting(), undelivered()) == ([], 0)


def test_locked_when_the_judge_fails(impatient, monkeypatch):
    """What the file has is tried again later; what it never had is an outcome, as without an outbox."""
    monkeypatch.setattr(outbox_pipeline, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(outbox_pipeline, "_SECONDS_BETWEEN_LOOKS", 0.01)
    gate, down = threading.Event(), [True]

    def fails(request):
        gate.wait()
        return ConnectionError("down") if down[0] else {"ids": [1]}

    monitor = live(reply=fails)
    kept(monitor, range(20))
    with locked():
        submit(monitor, range(20, 40))
        soon(lambda: not monitor._pipeline._arrivals)
        gate.set()
        soon(lambda: len(results("unscored")) == 20)
        assert results("unscored") == list(range(20, 40))
        soon(lambda: monitor.stats().pending == 0)
        assert monitor.stats().reasons == {"unscored": {"judge_error": 20}, "spooled": {"outbox": 20}}
        down[0] = False
    soon(lambda: len(results()) == 20)
    assert results() == list(range(20))
    assert monitor.close()
    accounted(monitor)
    assert waiting() == []


def test_locked_when_the_monitor_closes(impatient):
    monitor = live(reply=lambda request: time.sleep(10_000))
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


@pytest.mark.parametrize("gone", [False, True], ids=["garbage", "no_folder"])
def test_a_file_that_is_no_outbox(impatient, gone):
    Path("folder").mkdir()
    path = Path("folder", OUTBOX)
    path.write_bytes(GARBAGE)
    monitor = live(outbox=path)
    if gone:
        shutil.rmtree("folder")
    submit(monitor, range(20))
    assert monitor.flush()
    assert monitor.close()
    assert results() == list(range(20))
    accounted(monitor)
    assert monitor.stats().errors["outbox"] >= 1
    assert path.parent.exists() == (not gone)
    assert gone or path.read_bytes() == GARBAGE


def test_files_that_may_not_grow():
    """Where no disk can be mounted: a process whose files may have 100 KB at most."""
    pytest.importorskip("resource")
    code = """
import resource, threading
collected = []
gate = threading.Event()
monitor = live(reply=lambda request: gate.wait() and {"ids": [1]}, sinks=CallableSink(collected.extend))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for i in range(200):
    monitor.submit(sample(i, metadata={"large": "x" * 2_000}))
soon(lambda: monitor.stats().errors.get("outbox"))
gate.set()
assert monitor.close()
assert sorted(int(record.sample_id[1:]) for record in collected) == list(range(200))
accounted(monitor)
"""
    status, errors = ran(code)
    assert status == 0, errors


def test_submit_does_not_wait_for_the_file():
    """While the file is held, and so its worker: what is submitted only stands in a queue."""
    monitor = live()
    monitor._pipeline.start()
    with monitor._pipeline._turn:
        submit(monitor, range(500))
        assert len(monitor._pipeline._arrivals) == 500
    assert monitor.close()
    assert results() == list(range(500))
