import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ragstone.limits.budget import Entry
from ragstone.sinks import SQLiteSink
from ragstone.store import sqlite as sqlite_database
from ragstone.store.base import SinkError

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import score
from .scripts import start


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[SQLiteSink]:
    sink = SQLiteSink(tmp_path / "ragstone.db")
    yield sink
    sink.close()


def query(sink: SQLiteSink, statement: str) -> list[tuple]:
    with closing(sqlite3.connect(sink.path)) as connection, connection:
        return connection.execute(statement).fetchall()


def count(sink: SQLiteSink) -> int:
    return query(sink, "SELECT count(*) FROM outcomes")[0][0]


def test_the_path_does_not_change_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SQLiteSink()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    sink.write([score()])
    sink.close()
    assert sink.path == tmp_path / "ragstone.db"
    assert count(sink) == 1


def test_paths_that_are_refused(tmp_path: Path) -> None:
    for path in (":memory:", ""):
        with pytest.raises(ValueError, match="name a file"):
            SQLiteSink(path)
    text = "sample_id,metric\n" * 100
    (tmp_path / "text").write_text(text)
    for path, message in (
        (tmp_path / "nowhere" / "ragstone.db", r"there is no folder .*nowhere; make it"),
        (tmp_path, r"is a folder; name a file in it, such as .*ragstone\.db"),
        (tmp_path / "text", "no SQLite database or a damaged one: move it away"),
    ):
        with pytest.raises(SinkError, match=message):
            SQLiteSink(path).write([score()])
    assert (tmp_path / "text").read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_held_by_another(sink: SQLiteSink, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.write([score("before")])
    sink.close()
    monkeypatch.setattr(sqlite_database, "_PATIENCE", 0.2)
    with closing(sqlite3.connect(sink.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for attempt in (
            lambda: sink.write([score("after")]),
            lambda: sink.ledger().spend([Entry("calls_per_day", 0, 1, 10)]),
        ):
            with pytest.raises(SinkError, match="another process has held it"):
                attempt()
        other.execute("ROLLBACK")
    assert count(sink) == 1
    sink.write([score("after")])
    assert count(sink) == 2


DISK = """
import resource
sink.write([record("before")])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
size = max(path.stat().st_size for path in sink.path.parent.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
batch = [record(f"run-{i}", "x" * 1000) for i in range(500)]
for _ in range(3):
    try:
        sink.write(batch)
    except Exception as error:
        print(type(error).__name__, "room" in str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
sink.write([record("after")])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_disk_full(sink: SQLiteSink) -> None:
    assert finish(start(DISK, sink)).split("\n")[:-1] == ["SinkError True"] * 3
    assert query(sink, "SELECT sample_id FROM outcomes ORDER BY sample_id") == [("after",), ("before",)]
    assert query(sink, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_deleted_while_open(sink: SQLiteSink) -> None:
    sink.write([score("before")])
    for path in sink.path.parent.iterdir():
        path.unlink()
    sink.write([score("after")])
    assert count(sink) == 1
    for path in sink.path.parent.iterdir():
        path.unlink()
    other = SQLiteSink(sink.path)
    other.write([score("other")])
    other.close()
    sink.write([score("after")])
    assert count(sink) == 2


ENDLESS = """
ready()
i = 0
while True:
    sink.write([record(f"{number}-{i}-{j}", "x" * 500) for j in range(5)])
    i += 1
    if i == 20:
        print("going", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_while_writing(sink: SQLiteSink) -> None:
    for number in range(2):
        process = start(ENDLESS, sink, number)
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "going\n"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    sink.write([score("after")])
    whole = query(sink, "SELECT count(*) FROM outcomes WHERE sample_id <> 'after'")[0][0]
    assert whole % 5 == 0  # every batch, or nothing of it
    assert whole >= 200
    assert query(sink, "PRAGMA integrity_check") == [("ok",)]


def test_tokens_that_the_provider_does_not_tell_are_null(sink: SQLiteSink) -> None:
    record = score()
    usage = record.outcome.usage.model_copy(update={"input_tokens": None, "output_tokens": 7})
    sink.write([replace(record, outcome=record.outcome.model_copy(update={"usage": usage}))])
    assert query(sink, "SELECT input_tokens, output_tokens FROM outcomes") == [(None, 7)]
