"""A report's results and samples: the first few thousand in memory, what comes after them on the disk."""

import json
import tempfile
import threading
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from ragstone.reporting.batch.kept import InMemory
from ragstone.sample import Sample
from ragstone.store.record import Record, decode, encode

_IN_MEMORY = 2_000
_AT_ONCE = 64


class Spool:
    """Keeps the rows of a run, in their order, for its report.

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
        self._places = array("q")
        self._results: list[Record] = []
        self._rest: list[Record] = []
        self._samples: dict[int, Sample] = {}

    def add(self, row: int, results: Sequence[Record], sample: Sample, *, held: bool = False) -> None:
        """Keep a row's results, and its sample.

        Args:
            row: The row, above all that were added before.
            results: Its results.
            sample: Its sample.
            held: Whether somebody holds the sample in memory anyway.
        """
        if len(self._results) < _IN_MEMORY or self._rest:
            (self._rest if self._rest else self._results).extend(results)
            self._samples[row] = sample
            return
        line = None if held else _sample_line(sample)
        if line is None:
            self._samples[row] = sample
        try:
            self._write(row, results, line)
        except OSError:
            self._rest.extend(results)
            self._samples[row] = sample

    def _write(self, row: int, results: Sequence[Record], sample: str | None) -> None:
        rows = json.dumps(list(map(encode, results)))
        record = f"{rows}\n{sample or ''}\n".encode("utf-8", "surrogatepass")
        with self._lock:
            if self._file is None:
                # Unbuffered: what did not fit on the disk must not be tried again by whoever reads.
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - it stays open
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            rest = memoryview(record)
            while rest:
                rest = rest[self._file.write(rest) :]
            self._rows.append(row)
            self._places.append(self._end)
            self._end += len(record)

    def results(self) -> Iterator[Record]:
        """Yield all results, in order."""
        yield from self._results
        for first in range(0, len(self._rows), _AT_ONCE):
            for line in self._read(first, first + _AT_ONCE)[::2]:
                yield from map(decode, json.loads(line))
        yield from self._rest

    def sample(self, row: int) -> Sample | None:
        """Return the sample of a row."""
        held = self._samples.get(row)
        place = bisect_left(self._rows, row)
        if held is not None or place == len(self._rows) or self._rows[place] != row:
            return held
        return Sample.model_validate(json.loads(self._read(place, place + 1)[1]))

    def _read(self, first: int, last: int) -> list[bytes]:
        with self._lock:
            start, end = self._places[first], self._places[last] if last < len(self._places) else self._end
            file = cast("IO[bytes]", self._file)
            file.seek(start)
            return file.read(end - start).split(b"\n")[:-1]

    def __reduce__(self) -> tuple[object, ...]:
        rows = sorted({*self._samples, *self._rows})
        samples: Mapping[int, Sample | None] = {row: self.sample(row) for row in rows}
        return InMemory, (list(self.results()), samples)


def _sample_line(sample: Sample) -> str | None:
    try:
        return json.dumps(sample.model_dump(exclude_unset=True))
    except (TypeError, ValueError, RecursionError):  # its metadata is nothing that JSON knows
        return None
