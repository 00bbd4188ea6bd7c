"""A run's rows in memory, packed where they are many: nothing is lost, changed or out of order."""

import pytest

from ragstone import Sample, Score, Unscored, Verdict
from ragstone.results.memory import MemoryResults
from ragstone.results.record import Record


def record(row: int, metric: str) -> Record:
    verdicts = (Verdict(id="1", kind="claim", text="half \ud83d", verdict="yes"),)
    score = Score(metric=metric, value=1 / (row + 1), reason="Why not.", verdicts=verdicts, version="1")
    failed = Unscored(metric=metric, reason="judge_error", detail="no", version="1")
    return Record(f"id {row}", failed if row % 5 == 4 else score, "judge", row)


@pytest.mark.parametrize("count", [0, 5, 300])
def test_what_goes_in_comes_out_in_order_as_often_as_it_is_asked_for(count: int) -> None:
    kept, records, samples = MemoryResults(), list[Record](), dict[int, Sample]()
    for row in reversed(range(0, 3 * count, 3)):  # bad lines stand between them
        own = [record(row, metric) for metric in ("demo", "other")]
        samples[row] = Sample(response=f"{row}", metadata={"any": {row}})
        kept.add(own, samples[row])
        records = [*own, *records]
    assert list(kept.records()) == records == list(kept.records())
    assert {row: kept.sample(record(row, "demo")) for row in samples} == samples
    assert kept.sample(record(1, "demo")) is None
