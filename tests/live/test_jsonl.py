import json
import os
import signal
import sys
from pathlib import Path

import pytest

from ragstone.live import JSONLSink
from ragstone.live.sink import SinkError
from ragstone.results.record import decode

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import score, unscored
from .scripts import DISK, ENDLESS, run_together, start


@pytest.fixture
def sink(tmp_path: Path) -> JSONLSink:
    return JSONLSink(tmp_path / "outcomes.jsonl")


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text("ascii").splitlines()]


def test_a_line_is_the_record(sink: JSONLSink) -> None:
    records = [score("é\u2028", origin={"trace_id": "t"}), unscored()]
    sink.write(records)
    lines = sink.path.read_bytes().split(b"\n")
    assert [decode(line) for line in lines[:-1]] == records
    assert lines[-1] == b""


def test_a_torn_line_is_ended(sink: JSONLSink) -> None:
    sink.path.write_bytes(b'{"id": "whole"}\n{"sample_')
    sink.write([score("a"), score("b")])
    lines = sink.path.read_bytes().splitlines()
    assert lines[1] == b'{"sample_'
    assert [json.loads(line)["id"] for line in (lines[0], *lines[2:])] == ["whole", "a", "b"]


def test_moved_away(sink: JSONLSink) -> None:
    sink.write([score("a")])
    old = sink.path.rename(sink.path.with_suffix(".1"))
    sink.write([score("b")])
    assert (ids(old), ids(sink.path)) == (["a"], ["b"])


def test_a_folder_and_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path: is empty"):
        JSONLSink("")
    with pytest.raises(SinkError, match=r"no folder .*nowhere; create it"):
        JSONLSink(tmp_path / "nowhere" / "x.jsonl").write([score()])
    with pytest.raises(SinkError, match=r"is a folder; name a file in it, such as .*outcomes\.jsonl"):
        JSONLSink(tmp_path).write([score()])


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_disk_full(sink: JSONLSink) -> None:
    assert finish(start(DISK, sink)).split("\n")[:-1] == ["SinkError True"] * 3
    assert ids(sink.path) == ["before", "after"]


WRITER = """
ready()
for i in range(50):
    sink.write([record(f"{number}-{i}-{j}") for j in range(3)] + [record("shared", f"{number}-{i}")])
"""


def test_four_processes(sink: JSONLSink) -> None:
    run_together(WRITER, [sink] * 4)
    found = ids(sink.path)  # every line is whole
    assert len(found) == 4 * 50 * 4
    for start_of_batch in range(0, len(found), 4):  # and every batch is together
        assert len({one.rpartition("-")[0] for one in found[start_of_batch : start_of_batch + 3]}) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_while_writing(sink: JSONLSink) -> None:
    process = start(ENDLESS, sink)
    process.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "going\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    sink.write([score("after")])
    *_, last = sink.path.read_bytes().splitlines()
    assert json.loads(last)["id"] == "after"
