"""The results of a run: the first few thousand records in memory, what comes after them on the disk."""

import json
import tempfile
import threading
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import IO, cast

from ragstone.sample import Sample
from ragstone.store.record import Record, decode, encode
from ragstone.store.results import Results

_IN_MEMORY = 2_000
_AT_ONCE = 64


class SpilledResults(Results):
    """Keeps the records of a run, in their order, and the samples.

    The file has no name and goes away with this object or with the process. Where the disk is full, the rest of the
    rows is kept in memory. Pickled, it takes all of its rows along.

    Args:
        folder: Where the file is made; None takes the system's folder for such files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._rows = array("q")  # the rows in the file, ascending
        self._starts = array("q", [0])  # where each begins, and where the last one ends
        self._first: list[Record] = []
        self._rest: list[Record] = []
        self._samples: dict[int, Sample] = {}

    def add(self, records: Sequence[Record], sample: Sample, *, held: bool = False) -> None:
        """Keep a row's records, and its sample.

        Args:
            records: The records of one row, which comes after all that were added before.
            sample: Its sample.
            held: Whether somebody holds the sample in memory anyway.
        """
        if not records:
            return
        full = len(self._first) >= _IN_MEMORY
        held = held or not full or not _is_json(sample.metadata)
        first = replace(records[0], sample=None if held else sample)
        if not full or self._rest or not self._written([first, *records[1:]]):
            (self._rest if full else self._first).extend(records)
            held = True
        if held:
            self._samples[records[0].row] = sample

    def _written(self, records: Sequence[Record]) -> bool:
        lines = "".join(f"{encode(record)}\n" for record in records).encode()
        with self._lock:
            try:
                if self._file is None:
                    # Unbuffered: what did not fit on the disk must not be tried again by whoever reads.
                    self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - it stays open
                    weakref.finalize(self, self._file.close)
                self._file.seek(self._starts[-1])
                rest = memoryview(lines)
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                return False
            self._rows.append(records[0].row)
            self._starts.append(self._starts[-1] + len(lines))
            return True

    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield all records, in order."""
        return (record for record in self._all() if since is None or record.submitted_at >= since)

    def _all(self) -> Iterator[Record]:
        yield from self._first
        for first in range(0, len(self._rows), _AT_ONCE):
            for record in self._read(first, first + _AT_ONCE):
                yield replace(record, sample=None)
        yield from self._rest

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record's row."""
        place = bisect_left(self._rows, record.row)
        if record.row in self._samples or self._rows[place : place + 1] != array("q", [record.row]):
            return self._samples.get(record.row)
        return next(self._read(place, place + 1)).sample

    def _read(self, first: int, last: int) -> Iterator[Record]:
        file = cast("IO[bytes]", self._file)
        start, end = self._starts[first], self._starts[min(last, len(self._rows))]
        with self._lock:
            file.seek(start)
            lines = file.read(end - start).split(b"\n")[:-1]
        return map(decode, lines)

    def __reduce__(self) -> tuple[object, ...]:
        rows = [list(records) for _, records in groupby(self.records(), key=lambda record: record.row)]
        return _restored, ([(records, self.sample(records[0])) for records in rows],)


def _restored(rows: Iterable[tuple[Sequence[Record], Sample]]) -> SpilledResults:
    results = SpilledResults()
    for records, sample in rows:
        results.add(records, sample)
    return results


def _is_json(value: object) -> bool:
    try:
        return not value or json.loads(json.dumps(value)) == value
    except (TypeError, ValueError, RecursionError):
        return False
