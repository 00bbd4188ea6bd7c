"""What one kind of sink does, beyond what every sink does: files that are moved, torn, full or no place, and functions."""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragstone.live import CallableSink, JSONLSink, Record, SQLiteSink
from ragstone.live.sink import SinkError
from ragstone.results.record import decode

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import Case, score, unscored
from .scripts import DISK, run_together, start


@pytest.fixture
def lines(tmp_path: Path) -> JSONLSink:
    return JSONLSink(tmp_path / "outcomes.jsonl")


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text("ascii").splitlines()]


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
    for kind, path, message in (
        (SQLiteSink, ":memory:", "name a file"),
        (SQLiteSink, "", "name a file"),
        (JSONLSink, "", "path: is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(path)
    (tmp_path / "text").write_text("sample_id,metric\n" * 100)
    for kind, path, message in (
        (SQLiteSink, tmp_path / "nowhere" / "ragstone.db", r"no folder .*nowhere; create it"),
        (SQLiteSink, tmp_path, r"is a folder; name a file in it, such as .*ragstone\.db"),
        (SQLiteSink, tmp_path / "text", "is damaged, or not a ragstone results database .*; move it away"),
        (JSONLSink, tmp_path / "nowhere" / "x.jsonl", r"no folder .*nowhere; create it"),
        (JSONLSink, tmp_path, r"is a folder; name a file in it, such as .*outcomes\.jsonl"),
    ):
        with pytest.raises(SinkError, match=message):
            kind(path).write([score()])
    assert (tmp_path / "text").read_text() == "sample_id,metric\n" * 100
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_disk_full(make: Callable[[str], Case], lines: JSONLSink) -> None:
    store = make("impatient")
    for sink in (store.sink, lines):
        assert finish(start(DISK, sink)).split("\n")[:-1] == ["SinkError True"] * 3
    assert store.query("SELECT sample_id FROM outcomes ORDER BY sample_id") == [("after",), ("before",)]
    assert store.query("PRAGMA integrity_check") == [("ok",)]
    assert ids(lines.path) == ["before", "after"]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_the_log_does_not_fill_a_small_disk(tmp_path: Path) -> None:
    """A log that did could not be moved into the file any more, and no later write would find room."""
    sink = SQLiteSink(tmp_path / "ragstone.db")
    for _ in range(800):
        sink.write([score()])
    assert (tmp_path / "ragstone.db-wal").stat().st_size < 1.5e6
    sink.close()


def test_a_line_is_the_record_and_a_torn_one_is_ended(lines: JSONLSink) -> None:
    records = [score("é\u2028", origin={"trace_id": "t"}), unscored()]
    lines.path.write_bytes(b'{"id": "whole"}\n{"sample_')
    lines.write(records)
    assert lines.path.read_bytes().endswith(b"\n")
    whole, torn, *written = lines.path.read_bytes().splitlines()
    assert (json.loads(whole)["id"], torn) == ("whole", b'{"sample_')
    assert [decode(line) for line in written] == records


def test_moved_away(lines: JSONLSink) -> None:
    lines.write([score("a")])
    old = lines.path.rename(lines.path.with_suffix(".1"))
    lines.write([score("b")])
    assert (ids(old), ids(lines.path)) == (["a"], ["b"])


WRITER = """
ready()
for i in range(50):
    sink.write([record(f"{number}-{i}-{j}") for j in range(3)] + [record("shared", f"{number}-{i}")])
"""


def test_four_processes(lines: JSONLSink) -> None:
    run_together(WRITER, [lines] * 4)
    found = ids(lines.path)  # every line is whole
    assert len(found) == 4 * 50 * 4
    for start_of_batch in range(0, len(found), 4):  # and every batch is together
        assert len({one.rpartition("-")[0] for one in found[start_of_batch : start_of_batch + 3]}) == 1


async def keep_later(records: list[Record]) -> None:
    pass


class LaterKeeper:
    async def __call__(self, records: list[Record]) -> None:
        pass


class Later:
    def __await__(self) -> Iterator[None]:
        yield


def test_a_function_gets_a_list_of_its_own() -> None:
    records = (score("a"), score("b"))
    CallableSink(lambda own: own.clear()).write(records)
    calls: list[list[Record]] = []
    sink = CallableSink(calls.append)
    sink.write([])
    sink.write(records)
    assert calls == [list(records)]


def test_what_is_no_plain_function_is_refused() -> None:
    for function in ("print", keep_later, LaterKeeper(), functools.partial(keep_later)):
        with pytest.raises(TypeError, match=r"is async; pass a plain function|is str; pass a function"):
            CallableSink(function)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="returned an awaitable"):
        CallableSink(lambda records: Later()).write([score()])
