"""A report's rows in memory and on the disk: nothing is lost, changed or out of order at the seam."""

import pytest

from ragstone import Sample, Score, Unscored, Verdict
from ragstone.results import read as module
from ragstone.results.read import SpilledResults
from ragstone.results.record import Record

HALF = "\ud83d"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "_IN_MEMORY", 10)


def result(row, draw=0, text="Why not."):
    verdicts = (Verdict(id="1", kind="claim", text=text, verdict="yes"),)
    score = Score(metric="demo", value=1 / (row + 1), reason=text, verdicts=verdicts, version="1")
    failed = Unscored(metric="demo", reason="judge_error", detail=text, version="1")
    return Record(f"id {row}", failed if row % 5 == 4 else score, "judge", row, draw)


def filled(count, draws=2, text="Why not."):
    spilled, results, samples = SpilledResults(), [], {}
    for row in range(0, 3 * count, 3):  # bad lines stand between them
        own = [result(row, draw, text) for draw in range(draws)]
        samples[row] = Sample(response=f"{text[:1]}{row}".replace(HALF, "?"), id=f"id {row}", metadata={"n": row})
        spilled.add(own, samples[row])
        results += own
    return spilled, results, samples


@pytest.mark.parametrize("count", [0, 5, 50])
def test_what_goes_in_comes_out_in_order_as_often_as_it_is_asked_for(small, count):
    spilled, results, samples = filled(count)
    assert list(spilled.records()) == results == list(spilled.records())
    assert {row: spilled.sample(result(row)) for row in samples} == samples
    assert [spilled.sample(result(row)) for row in (7, 1, 2, 3 * count, 10**12)] == [None] * 5


def test_half_a_character_is_written_too(small):
    spilled, results, _ = filled(20, text=HALF)
    assert list(spilled.records()) == results


def test_two_readers_at_once_and_a_reader_that_stops(small):
    spilled, results, _ = filled(40)
    first, second = spilled.records(), spilled.records()
    assert [next(first) for _ in range(25)] == [next(second) for _ in range(25)] == results[:25]
    assert [*first] == results[25:]
    second.close()


def test_a_full_disk_keeps_the_rest_in_memory(small):
    class Full:
        def __init__(self, file):
            self.seek, self.read = file.seek, file.read

        def write(self, data):
            raise OSError(28, "No space left on device")

    spilled, results, samples = filled(10)
    spilled._file = Full(spilled._file)
    for row in range(100, 110):
        own = [result(row)]
        samples[row] = Sample(response=f"{row}")
        spilled.add(own, samples[row])
        results += own
    assert list(spilled.records()) == results
    assert {row: spilled.sample(result(row)) for row in samples} == samples


def test_its_file_has_no_name_and_goes_with_it(small, tmp_path):
    spilled = SpilledResults(tmp_path)
    for row in range(30):
        spilled.add([result(row)], Sample(response=f"{row}"))
    assert list(tmp_path.iterdir()) == []
    file = spilled._file
    del spilled
    assert file.closed
