import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragstone.live import SQLiteSink
from ragstone.live.ledger import Entry, spend
from ragstone.live.sink import SinkError

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import Case, score
from .scripts import DISK, ENDLESS, start


@pytest.fixture
def store(make: Callable[[str], Case]) -> Case:
    return make("impatient")


def count(store: Case) -> int:
    return store.query("SELECT count(*) FROM outcomes")[0][0]


def test_the_path_does_not_change_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SQLiteSink()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    sink.write([score()])
    sink.close()
    assert sink.path == tmp_path / "ragstone.db"
    assert list(other.iterdir()) == []


def test_paths_that_are_refused(tmp_path: Path) -> None:
    for path in (":memory:", ""):
        with pytest.raises(ValueError, match="name a file"):
            SQLiteSink(path)
    text = "sample_id,metric\n" * 100
    (tmp_path / "text").write_text(text)
    for path, message in (
        (tmp_path / "nowhere" / "ragstone.db", r"no folder .*nowhere; create it"),
        (tmp_path, r"is a folder; name a file in it, such as .*ragstone\.db"),
        (tmp_path / "text", "is damaged, or not a ragstone results database .*; move it away"),
    ):
        with pytest.raises(SinkError, match=message):
            SQLiteSink(path).write([score()])
    assert (tmp_path / "text").read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_held_by_another(store: Case) -> None:
    store.sink.write([score("before")])
    with closing(sqlite3.connect(store.sink.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for attempt in (
            lambda: store.sink.write([score("after")]),
            lambda: spend(store.sink.database, [Entry("calls_per_day", 0, 1, 10)]),
        ):
            with pytest.raises(SinkError, match=r"another process has held it for 0\.2 seconds"):
                attempt()
        other.execute("ROLLBACK")
    assert count(store) == 1
    store.sink.write([score("after")])
    assert count(store) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_disk_full(store: Case) -> None:
    assert finish(start(DISK, store.sink)).split("\n")[:-1] == ["SinkError True"] * 3
    assert store.query("SELECT sample_id FROM outcomes ORDER BY sample_id") == [("after",), ("before",)]
    assert store.query("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_the_log_does_not_fill_a_small_disk(tmp_path: Path) -> None:
    """A log that did could not be moved into the file any more, and no later write would find room."""
    sink = SQLiteSink(tmp_path / "ragstone.db")
    for _ in range(800):
        sink.write([score()])
    assert (tmp_path / "ragstone.db-wal").stat().st_size < 1.5e6
    sink.close()


def test_deleted_while_open(store: Case) -> None:
    def delete() -> None:
        for path in store.sink.path.parent.iterdir():
            path.unlink()

    store.sink.write([score("before")])
    delete()
    store.sink.write([score("after")])
    assert count(store) == 1
    delete()
    other = SQLiteSink(store.sink.path)
    other.write([score("other")])
    other.close()
    store.sink.write([score("after")])
    assert count(store) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_while_writing(store: Case) -> None:
    for number in range(2):
        process = start(ENDLESS, store.sink, number)
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "going\n"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    store.sink.write([score("after")])
    whole = store.query("SELECT count(*) FROM outcomes WHERE sample_id <> 'after'")[0][0]
    assert whole % 5 == 0  # every batch, or nothing of it
    assert whole >= 200
    assert store.query("PRAGMA integrity_check") == [("ok",)]
