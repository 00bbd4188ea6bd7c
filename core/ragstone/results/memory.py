"""The records of a run with their samples: what all kinds of results give, and results in memory."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ragstone.results.record import Record, decode, encode, of_json, to_fields
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.results.traffic import Feedback

Fields = tuple[dict[str, Any], Sample | None]
"""A record as JSON has it, and its sample."""

# So many rows are not worth packing.
_UNPACKED = 100


class Results(ABC):
    """Records and their samples, wherever they are; read each time they are asked for.

    Attributes:
        name: Their name, or "".
        at_hand: Whether samples come with their records for nothing.
        info: What the source says of the run: "metrics" and "bad_rows", each a list of objects.
        notes: What was wrong with the source, in sentences. Complete once `records` has been read to its end.
    """

    name = ""
    at_hand = True
    info: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()

    @abstractmethod
    def records(self, since: float | None = None, *, samples: bool = False) -> Iterator[Record]:
        """Yield the records in their order, those of a row together.

        Args:
            since: Leave out samples submitted before, in seconds since 1970 (UTC).
            samples: Whether they hold their samples, where these are kept; they may anyway.
        """

    def fields(self, since: float | None = None) -> Iterator[Fields]:
        """Yield the same records as JSON has them; `records` has been read to its end before."""
        for record in self.records(since, samples=True):
            yield to_fields(record, record.sample), record.sample

    def sample(self, record: Record) -> Sample | None:
        """The sample of a record; None where it is not kept."""
        return record.sample

    def samples(self, ids: Collection[str]) -> Iterable[tuple[str, Sample]]:  # noqa: ARG002
        """Yield the samples of these ids that are kept, and that `records` does not give."""
        return ()

    @contextmanager
    def held(self) -> "Generator[Results, None, None]":
        """Give results that read all of one moment, by one connection."""
        yield self

    def feedback(self) -> "Mapping[str, Feedback]":
        """What people said of answers, the latest by the sample's id; nothing for any other source."""
        return {}


class MemoryResults(Results):
    """Results in memory. Those of a long run are packed: a record with many verdicts takes twenty times its JSON.

    Args:
        records: The records, those of a row together.
        samples: The samples by row: a mapping, or a sequence that has one for each row.
    """

    def __init__(
        self, records: Iterable[Record] = (), samples: Mapping[int, Sample] | Sequence[Sample | None] | None = None
    ) -> None:
        self._records = tuple(records)
        self._rows: list[tuple[int, bytes | Sequence[Record]]] = []
        self._samples: dict[int, Sample | None] = dict(
            samples if isinstance(samples, Mapping) else enumerate(samples or ())
        )

    def add(self, records: Sequence[Record], sample: Sample | None) -> None:
        """Keep a row's records, all that there will be, and its sample. They are read in the order of their rows."""
        row, packed = records[0].row, len(self._rows) >= _UNPACKED
        self._samples[row] = sample
        lines = b"\n".join(encode(each, sample).encode() for each in records) if packed else records
        self._rows.append((row, lines))

    def records(self, since: float | None = None, *, samples: bool = False) -> Iterator[Record]:
        """Yield the records."""
        for record in self._all():
            if since is None or record.submitted_at >= since:
                yield replace(record, sample=self.sample(record)) if samples else record

    def fields(self, since: float | None = None) -> Iterator[Fields]:
        """Yield the same records as JSON has them."""
        if self._records or since is not None:
            yield from super().fields(since)
            return
        for row, records in sorted(self._rows, key=itemgetter(0)):
            lines = records.split(b"\n") if isinstance(records, bytes) else map(encode, records)
            yield from ((of_json(line), self._samples[row]) for line in lines)

    def _all(self) -> Iterator[Record]:
        yield from self._records
        for row, records in sorted(self._rows, key=itemgetter(0)):
            if isinstance(records, bytes):
                yield from (decode(line, self._samples[row]) for line in records.split(b"\n"))
            else:
                yield from records

    def sample(self, record: Record) -> Sample | None:
        """The sample of a record."""
        return record.sample or self._samples.get(record.row)
