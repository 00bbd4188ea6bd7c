"""An outbox that cannot be used, for a while or at all: the app does not notice, scoring goes on, all is accounted."""

import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ragstone import ContextRelevancy
from ragstone.monitor import keeper

from .apps import ran
from .live_app import (
    OUTBOX,
    RESULTS,
    SQLiteSink,
    accounted,
    calls,
    change,
    kept,
    live,
    results,
    rows,
    sample,
    soon,
    submit,
    undelivered,
    waiting,
)

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def impatient(monkeypatch):
    """The outbox is given up, and tried again, sooner than in earnest."""
    monkeypatch.setattr("ragstone.monitor.outbox_file._BUSY_SECONDS", 0.2)
    monkeypatch.setattr(keeper, "_SECONDS_AFTER_FAILURE", 0.05)


@contextmanager
def locked(path=OUTBOX):
    """Another connection holds the whole file."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def all_scored_once(n):
    assert results() == list(range(n))
    assert set(calls().values()) == {1}


# --- locked ---------------------------------------------------------------------------------------------------


def test_locked_for_a_while(impatient):
    monitor = live()
    submit(monitor, range(10))
    assert monitor.flush()
    with locked():
        submit(monitor, range(10, 200))
        soon(lambda: len(results()) == 200)  # from memory, while the file is held
        assert monitor.stats().errors["outbox"] >= 1
    submit(monitor, range(200, 300))
    assert monitor.flush()
    assert monitor.close()
    all_scored_once(300)
    accounted(monitor)
    assert monitor.stats().scored == 300
    assert (waiting(), undelivered()) == ([], 0)


@pytest.mark.slow
def test_locked_for_seven_seconds():
    """With the patience that it really has."""
    monitor = live()
    submit(monitor, [0])
    assert monitor.flush()
    with locked():
        until_then = time.monotonic() + 7
        i = 0
        while time.monotonic() < until_then:
            i += 1
            monitor.submit(sample(i))
            time.sleep(0.01)
        soon(lambda: len(results()) > i / 2)
    assert monitor.flush()
    assert monitor.close()
    all_scored_once(i + 1)
    assert monitor.stats().scored == i + 1
    assert (waiting(), undelivered()) == ([], 0)


def test_locked_when_what_it_has_is_done(impatient):
    """Rows of samples that were done meanwhile go when the file can be written again."""
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]})
    kept(monitor, range(50))
    with locked():
        gate.set()
        soon(lambda: len(results()) == 50)
    soon(lambda: not waiting())
    assert monitor.close()
    all_scored_once(50)
    accounted(monitor)


def test_locked_when_the_judge_fails(impatient, monkeypatch):
    """What the file has is tried again later; what it never had is an outcome, as without an outbox."""
    monkeypatch.setattr(keeper, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(keeper, "_SECONDS_BETWEEN_LOOKS", 0.01)
    gate, down = threading.Event(), [True]

    def fails(request):
        gate.wait()
        return ConnectionError("down") if down[0] else {"ids": [1]}

    monitor = live(reply=fails)
    kept(monitor, range(20))
    with locked():
        submit(monitor, range(20, 40))
        soon(lambda: not monitor._process._keeper.arrived)
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


def test_locked_from_the_start(impatient):
    live().close()
    with closing(sqlite3.connect(OUTBOX)) as made:
        made.execute("PRAGMA journal_mode = WAL")
    with locked():
        monitor = live()
        submit(monitor, range(50))
        soon(lambda: len(results()) == 50)
    assert monitor.close()
    all_scored_once(50)
    accounted(monitor)


def test_readers_do_not_hold_it_up():
    monitor = live()
    submit(monitor, range(50))
    assert monitor.flush()
    with closing(sqlite3.connect(OUTBOX, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM samples").fetchall()
        submit(monitor, range(50, 100))
        assert monitor.flush()
        reader.execute("COMMIT")
    assert monitor.close()
    assert monitor.stats().errors == {}
    all_scored_once(100)


# --- not usable at all ----------------------------------------------------------------------------------------


def garbage():
    Path(OUTBOX).write_bytes(b"no database" * 1000)


def another_programs():
    change(OUTBOX, "CREATE TABLE customers (name TEXT)")


def newer():
    live_once = live()
    submit(live_once, [1_000])
    live_once.close()
    change(OUTBOX, "PRAGMA user_version = 9")
    Path(RESULTS).unlink()


def a_folder():
    Path(OUTBOX).mkdir()


def no_folder():
    Path("gone").rmdir()


@pytest.mark.parametrize("spoil", [garbage, another_programs, newer])
def test_a_file_that_is_no_outbox(spoil, impatient):
    spoil()
    before = Path(OUTBOX).read_bytes()
    monitor = live()
    submit(monitor, range(20))
    assert monitor.flush()
    assert monitor.close()
    assert results() == list(range(20))
    accounted(monitor)
    assert monitor.stats().errors["outbox"] >= 1
    assert monitor.stats().scored == 20
    assert Path(OUTBOX).read_bytes() == before


def test_a_folder_in_its_place(impatient):
    monitor = live()
    a_folder()
    submit(monitor, range(20))
    assert monitor.close()
    assert results() == list(range(20))
    accounted(monitor)


def test_its_folder_is_gone(impatient):
    Path("gone").mkdir()
    monitor = live(outbox="gone/outbox.db")
    no_folder()
    submit(monitor, range(20))
    assert monitor.close()
    assert results() == list(range(20))
    accounted(monitor)


def test_a_judge_that_is_down_and_an_outbox_that_is_none(impatient):
    """As without an outbox: each ends in an outcome, none is kept in memory for later."""
    garbage()
    monitor = live(reply=lambda request: ConnectionError("down"))
    submit(monitor, range(20))
    assert monitor.flush()
    assert monitor.close()
    assert results("unscored") == list(range(20))
    assert monitor.stats().reasons == {"unscored": {"judge_error": 20}}
    accounted(monitor)


def test_spooling_to_an_outbox_that_is_none(impatient):
    garbage()
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]}, when_full="spool", max_queue=5, workers=1)
    submit(monitor, range(100))
    soon(lambda: not monitor._process._keeper.arrived)
    gate.set()
    assert monitor.close()
    stats = monitor.stats()
    assert stats.reasons["dropped"] == {"outbox_failed": stats.dropped}
    assert stats.scored == len(results()) == 100 - stats.dropped
    assert 5 <= stats.scored <= 10
    accounted(monitor)


def test_a_file_that_is_deleted_while_it_is_used():
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]})
    kept(monitor, range(10))
    for path in Path().glob(f"{OUTBOX}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    submit(monitor, range(10, 20))
    soon(lambda: len(waiting()) == 10)  # in a new one
    gate.set()
    assert monitor.close()
    all_scored_once(20)
    accounted(monitor)
    assert waiting() == []


def test_it_says_so_once(caplog):
    garbage()
    monitor = live()
    submit(monitor, range(20))
    monitor.close()
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said[0] == (
        f"the app is not affected; outbox: OutboxError: {Path(OUTBOX).absolute()}: is no SQLite file "
        "(file is not a database); name another file as the outbox (1)"
    )
    assert len(said) <= 2


# --- no room, no right ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 200 KB."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", where], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount a small disk")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


def test_a_full_disk(small_disk, impatient):
    gate = threading.Event()
    monitor = live(reply=lambda request: gate.wait() and {"ids": [1]}, outbox=small_disk / OUTBOX)
    submit(monitor, range(10))
    soon(lambda: len(rows(small_disk / OUTBOX, "SELECT id FROM samples")) == 10)
    for i in range(10, 300):
        monitor.submit(sample(i, metadata={"large": "x" * 2_000}))
    soon(lambda: monitor.stats().errors.get("outbox"))
    assert 10 <= len(rows(small_disk / OUTBOX, "SELECT id FROM samples")) < 300
    gate.set()
    assert monitor.close()
    all_scored_once(300)
    assert monitor.stats().scored == 300
    accounted(monitor)


def test_a_full_disk_that_is_freed(small_disk, impatient):
    ballast = small_disk / "ballast"
    monitor = live(outbox=small_disk / OUTBOX)
    submit(monitor, [0])
    assert monitor.flush()
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(b"x" * 300_000)
    submit(monitor, range(1, 400))
    soon(lambda: len(results()) == 400)
    ballast.unlink()
    # And enough of it that SQLite's log of many small transactions, which a busy machine makes, does not fill it again.
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    soon(lambda: time.monotonic() > monitor._process._keeper._use_at)
    gate = threading.Event()
    monitor._settings.metrics["context_relevancy", ContextRelevancy.version].llm._reply = lambda request: (
        gate.wait() and {"ids": [1]}
    )
    submit(monitor, range(400, 420))
    soon(lambda: len(rows(small_disk / OUTBOX, "SELECT id FROM samples")) >= 20)
    gate.set()
    assert monitor.close()
    assert results() == list(range(420))
    accounted(monitor)
    assert rows(small_disk / OUTBOX, "SELECT id FROM samples") == []


def test_a_disk_that_cannot_be_written_to(small_disk, impatient):
    submit_once = live(outbox=small_disk / OUTBOX)
    submit(submit_once, [1_000])
    submit_once.close()
    Path(RESULTS).unlink()
    Path("calls.txt").unlink()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    monitor = live(outbox=small_disk / OUTBOX)
    submit(monitor, range(20))
    assert monitor.close()
    all_scored_once(20)
    accounted(monitor)
    assert monitor.stats().errors["outbox"] >= 1


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


# --- many at once ---------------------------------------------------------------------------------------------


def test_many_threads_submit_pause_flush_and_close():
    monitor = live(when_full="spool", max_queue=50)

    def work(n):
        for i in range(n * 200, n * 200 + 200):
            monitor.submit(sample(i))
            if i % 50 == 0:
                monitor.pause()
                monitor.flush(0.01)
                monitor.resume()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.flush()
    assert monitor.close()
    all_scored_once(1_000)
    accounted(monitor)


def test_several_monitors_on_one_outbox():
    monitors = [live(when_full="spool", max_queue=20, sinks=SQLiteSink(RESULTS)) for _ in range(4)]
    for n, monitor in enumerate(monitors):
        submit(monitor, range(n * 100, n * 100 + 100))
    for monitor in monitors:
        monitor.flush()
    soon(lambda: len(results()) == 400)
    for monitor in monitors:
        monitor.close()
        accounted(monitor)
    all_scored_once(400)
    assert sum(monitor.stats().scored for monitor in monitors) == 400


def test_submit_does_not_wait_for_the_file(impatient):
    """While the file is held, and so the keeper: what is submitted only stands in a queue."""
    monitor = live()
    submit(monitor, [0])
    assert monitor.flush()
    with monitor._process._keeper._lock:
        submit(monitor, range(1, 1_000))
        assert len(monitor._process._keeper.arrived) == 999
    assert monitor.close()
    all_scored_once(1_000)
