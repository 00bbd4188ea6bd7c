"""One folder, a file for each process: what one put, all find; what is torn, damaged or foreign does no harm."""

import resource
import signal
import sys

import pytest

from ragstone import Score, Unscored
from ragstone.distributed.chunk import SharedOutcomes
from ragstone.store.journal import JournalError

from ..support import programs  # noqa: TID252 - under importlib mode tests are no package


def key(i):
    return f"{i:032x}"


def score(value, reason=""):
    return Score(metric="demo", value=value, reason=reason, version="1")


@pytest.fixture
def shared(tmp_path):
    made = []

    def make():
        made.append(SharedOutcomes(tmp_path / "folder"))
        made[-1].refresh()
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_others_find_it_after_a_refresh_and_later_ones_at_once(shared):
    one, other = shared(), shared()
    hostile = "line\nend\r\x00\u2028 \U0001f600 half \ud83d"
    one.put_outcome(key(1), score(0.5, hostile))
    assert other.outcome(key(1)) is None
    other.refresh()
    assert one.outcome(key(1)) == other.outcome(key(1)) == score(0.5, hostile)
    one.put_outcome(key(2), Unscored(metric="demo", reason="empty_input", detail="blank", version="1"))
    one.put_outcome(key(3), Unscored(metric="demo", reason="timeout", detail="", version="1"))
    other.put_outcome(key(4), score(0.75))
    kept = [shared().outcome(key(i)) is not None for i in (1, 2, 3, 4)]
    assert kept == [True, True, False, True], "what timed out is asked again"


def test_torn_and_damaged_lines_are_passed_over(shared, tmp_path):
    one = shared()
    for i in (1, 2, 3):
        one.put_outcome(key(i), score(i / 4))
    (path,) = (tmp_path / "folder").iterdir()
    whole = path.read_bytes()
    for cut in range(whole.rfind(b"\n", 0, -1) - 20, len(whole), 7):
        path.write_bytes(whole[:cut])
        reader = shared()
        assert reader.outcome(key(3)) is None
        path.write_bytes(whole)
        reader.refresh()  # the rest came later
        assert [reader.outcome(key(i)) for i in (1, 2, 3)] == [score(i / 4) for i in (1, 2, 3)]
    lines = whole.split(b"\n")
    lines[0] = b"#" * len(lines[0])
    lines[1] = lines[1][:45] + b"#" * (len(lines[1]) - 45)
    path.write_bytes(b"\n".join(lines))
    reader = shared()
    assert [reader.outcome(key(i)) for i in (1, 2, 3)] == [None, None, score(0.75)]
    reader.put_outcome(key(2), score(0.5))
    assert reader.outcome(key(2)) == score(0.5)


def test_a_folder_that_cannot_be_is_refused_and_other_files_in_it_are_passed_over(shared, tmp_path):
    shared()
    path = tmp_path / "folder" / "other.outcomes"
    path.write_bytes(b"key,value\n\xff\n{\n")
    assert shared().outcome(key(1)) is None
    with pytest.raises(JournalError, match="name a folder that all workers can reach"):
        SharedOutcomes(path)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_full_disk_is_said_and_spoils_nothing(shared):
    one = shared()
    one.put_outcome(key(1), score(0.5))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
        with pytest.raises(JournalError, match="earlier results are safe"):
            one.put_outcome(key(2), score(0.5, "long " * 200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    one.put_outcome(key(3), score(0.75))
    reader = shared()
    assert [reader.outcome(key(i)) for i in (1, 2, 3)] == [score(0.5), None, score(0.75)]


PUT = """
import os, sys
from ragstone import Score
from ragstone.distributed.chunk import SharedOutcomes

mine, first = SharedOutcomes(sys.argv[1]), int(sys.argv[2])
for i in range(first, first + 200):
    mine.put_outcome(f"{i:032x}", Score(metric="demo", value=i / 1000, reason="", version="1"))
os.kill(os.getpid(), 9)
"""


def test_two_processes_at_once_killed_after_their_last_put(shared, tmp_path):
    for process in [programs.start(PUT, str(tmp_path / "folder"), str(200 * i)) for i in range(2)]:
        process.communicate()
        assert process.returncode == -9
    reader = shared()
    assert [reader.outcome(key(i)) for i in range(400)] == [score(i / 1000) for i in range(400)]
