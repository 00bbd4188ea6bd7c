r"""Results: the records of a run with their samples, in memory or in a results file.

A results file holds one record a line, in the order of the input. The first record of a row carries its sample. A first
line may say what is known of the run: {"ragstone_results": 1, "name": ..., "metrics": [...], "bad_rows": [...]}.
"""

import contextlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from ragstone.plain import to_plain
from ragstone.sample import Sample
from ragstone.store.base import Health
from ragstone.store.private_files import replacing
from ragstone.store.record import Record, decode, encode

_MARK = "ragstone_results"
_VERSION = 1


class ResultsError(ValueError):
    """A source that holds no results, or no longer those that it held; the message says why and what to do."""


class Results(ABC):
    """Records and their samples, wherever they are; read each time they are asked for.

    Attributes:
        name: What they are called; "" without a name.
        info: What the source says of the run: "metrics" and "bad_rows", each a list of objects.
        notes: What was wrong with the source, in sentences. Complete once `records` has been read to its end.
    """

    name = ""
    info: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()

    @abstractmethod
    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield the records in their order, those of a row together.

        Args:
            since: Leave out samples submitted before, in seconds since 1970 (UTC).
        """

    @abstractmethod
    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record; None where it is not kept."""

    def health(self) -> Sequence[Health]:
        """Return how the monitors stand that write to a database; nothing for any other source."""
        return ()


class MemoryResults(Results):
    """Results in memory.

    Args:
        records: The records, those of a row together.
        samples: The samples by row: a mapping, or a sequence that has one for each row.
    """

    def __init__(
        self, records: Iterable[Record], samples: Mapping[int, Sample] | Sequence[Sample | None] | None = None
    ) -> None:
        self._records = tuple(records)
        self._samples = samples if isinstance(samples, Mapping) else dict(enumerate(samples or ()))

    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield the records."""
        return (record for record in self._records if since is None or record.submitted_at >= since)

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record."""
        return record.sample or self._samples.get(record.row)


def write_results(
    path: Path, records: Iterable[Record], sample_of: Callable[[Record], Sample | None], info: Mapping[str, object]
) -> None:
    """Write a results file, which takes the place of one that is there when all is written.

    Args:
        path: The file.
        records: The records, those of a row together.
        sample_of: Gives a record's sample.
        info: What is known of the run: name, metrics, bad_rows.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as target:
        head = json.dumps(to_plain({_MARK: _VERSION, **info}), ensure_ascii=False)
        target.write(f"{head}\n".encode("utf-8", "backslashreplace"))
        row = None
        for record in records:
            first, row = (record.row, record.sample_id) != row, (record.row, record.sample_id)
            target.write(f"{encode(replace(record, sample=sample_of(record) if first else None))}\n".encode())


class FileResults(Results):
    """The results of a file. The file stays open for nobody and must stay as it is.

    Raises:
        ResultsError: It is no such file, or was written by a newer version.
        OSError: It cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._samples: dict[int, int] | None = None  # by row, where the line begins that has the sample
        with self.path.open("rb") as file:
            self._stamp = _stamp(file)
            first = file.readline().strip()
        if not first:
            return
        try:
            head: object = json.loads(first)
        except (ValueError, RecursionError):
            head = None
        if first[:1] != b"{" or (isinstance(head, dict) and "ragstone_report" in head):
            raise self._no_results()
        if isinstance(head, dict) and _MARK in head:
            self.info = cast("Mapping[str, Any]", head)
            self.name = str(self.info.get("name", ""))
            version: object = self.info[_MARK]
            if not isinstance(version, int) or version > _VERSION:
                raise ResultsError(f"{self.path}: a newer ragstone wrote it; update this one to read it")

    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield the records in the file's order.

        Raises:
            ResultsError: The file holds something else, or has changed since it was opened.
            OSError: It cannot be read.
        """
        bad: list[int] = []
        number = good = 0
        with self._opened() as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or (number == 1 and self.info):
                    continue
                try:
                    record = decode(line)
                except ValueError:
                    bad.append(number)
                    continue
                good += 1
                if since is None or record.submitted_at >= since:
                    yield record
        if bad and not good:
            raise self._no_results()
        self.notes = tuple(self._said(bad, number))

    def _said(self, bad: list[int], lines: int) -> Iterator[str]:
        if bad[-1:] == [lines]:
            bad.pop()
            yield f"{self.path.name}: its end is missing, as where a run was killed: what is whole was read"
        if bad:
            some = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
            yield f"{self.path.name}: {len(bad):,} line(s) hold no result and were left out: {some}"

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record, from the line that has its row's."""
        if record.sample is not None:
            return record.sample
        with self._opened() as file:
            if self._samples is None:
                self._samples, at = {}, 0
                for line in file:
                    if b'"sample"' in line:
                        with contextlib.suppress(ValueError):
                            if (one := decode(line)).sample is not None:
                                self._samples.setdefault(one.row, at)
                    at += len(line)
            if record.row not in self._samples:
                return None
            file.seek(self._samples[record.row])
            return decode(file.readline()).sample

    @contextlib.contextmanager
    def _opened(self) -> Generator[IO[bytes], None, None]:
        with self.path.open("rb") as file:
            if _stamp(file) != self._stamp:
                raise ResultsError(
                    f"{self.path}: has changed since it was loaded, and is read as it is needed; load it again"
                )
            yield file

    def _no_results(self) -> ResultsError:
        return ResultsError(
            f"{self.path}: holds no results: give a file that `ragstone score --out` or Report.to_json wrote, "
            "as they wrote it"
        )


def _stamp(file: IO[Any]) -> tuple[int, int, int, int]:
    state = os.fstat(file.fileno())
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
