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
        self._end = 0
        self._rows = array("q")  # the rows in the file, ascending, and where each begins
        self._starts = array("q")
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
        row = records[0].row
        if len(self._first) < _IN_MEMORY or self._rest:
            (self._rest or self._first).extend(records)
            self._samples[row] = sample
            return
        kept = held or not _is_json(sample.metadata)
        try:
            self._write(row, [replace(records[0], sample=None if kept else sample), *records[1:]])
            if kept:
                self._samples[row] = sample
        except OSError:
            self._rest.extend(records)
            self._samples[row] = sample

    def _write(self, row: int, records: Iterable[Record]) -> None:
        lines = "".join(f"{encode(record)}\n" for record in records).encode()
        with self._lock:
            if self._file is None:
                # Unbuffered: what did not fit on the disk must not be tried again by whoever reads.
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - it stays open
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            rest = memoryview(lines)
            while rest:
                rest = rest[self._file.write(rest) :]
            self._rows.append(row)
            self._starts.append(self._end)
            self._end += len(lines)

    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield all records, in order."""
        records = self._all()
        return records if since is None else (record for record in records if record.submitted_at >= since)

    def _all(self) -> Iterator[Record]:
        yield from self._first
        for first in range(0, len(self._rows), _AT_ONCE):
            for line in self._read(first, first + _AT_ONCE):
                record = decode(line)
                yield record if record.sample is None else replace(record, sample=None)
        yield from self._rest

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record's row."""
        held = self._samples.get(record.row)
        place = bisect_left(self._rows, record.row)
        if held is not None or place == len(self._rows) or self._rows[place] != record.row:
            return held
        return decode(self._read(place, place + 1)[0]).sample

    def _read(self, first: int, last: int) -> list[bytes]:
        with self._lock:
            start, end = self._starts[first], self._starts[last] if last < len(self._starts) else self._end
            file = cast("IO[bytes]", self._file)
            file.seek(start)
            return file.read(end - start).split(b"\n")[:-1]

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
