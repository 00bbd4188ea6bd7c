r"""Results: the records of a run with their samples, in a results file or in a monitor's database.

A results file holds one record a line, a row's together, each with its row; gzip may have packed it. One line of a row
holds its sample, and each of its records has it when it is read. A first line may have facts of the run:
{"ragstone_results": 1, "name": ..., "metrics": [...], "bad_rows": [...]}.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

from ragstone.plain import count, printable
from ragstone.results.database import Database, Transaction
from ragstone.results.frame_files import frame_results, no_results
from ragstone.results.memory import Fields, Results
from ragstone.results.private_files import replacing
from ragstone.results.record import (
    COLUMNS,
    RESULTS_MARK,
    RESULTS_VERSION,
    Record,
    decode_rows,
    encode_head,
    encode_rows,
    from_row,
    of_json,
)
from ragstone.results.sqlite import SqliteFile
from ragstone.results.tables import ResultsError, results_database
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample

_EARLIEST = -1e300
# Seconds to wait while another process holds a file.
_PATIENCE = 10.0
# A line that shows that the end of a file is missing.
_TORN = b"{"
# How many rows and lines a note names.
_NAMED = 5
_READ = [name for name in COLUMNS if name not in ("sample", "watched")]


_SCHEMA = results_database(ResultsError)


def write_results(path: Path, records: Iterable[Record], info: Mapping[str, object]) -> None:
    """Write a results file; one that is there is replaced when all is written.

    Args:
        path: The file.
        records: The records with their samples, those of a row together.
        info: Facts of the run: name, metrics, bad_rows.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as target:
        for line in chain([encode_head(info)], encode_rows(records)):
            target.write(f"{line}\n".encode())


def open_results(source: str | os.PathLike[str]) -> Results:
    """The results of a results file, of a frame or of a monitor's database. Nothing is changed.

    Args:
        source: The path of a results file, of a frame (also a folder of its parts) or of a SQLite file, or a URL ("postgresql+psycopg://user@host/name").

    Raises:
        ResultsError: There are none, it is another program's, it cannot be read, or another ragstone wrote it.
        ImportError: A URL needs psycopg, which is not installed; the message says so.
        OSError: The file cannot be read.
        TypeError: It is neither path nor URL.
    """
    if not isinstance(cast("object", source), (str, os.PathLike)):
        raise TypeError(f"is {type(source).__name__}; pass a Report, the path of a results file or a database's URL")
    text, path = os.fspath(source), Path(source)
    if "://" in text:
        from ragstone.results.postgres import ServerDatabase

        try:
            return DatabaseResults(partial(ServerDatabase, text, _SCHEMA, None))
        except ValueError as error:
            raise ResultsError(str(error)) from None
    if path.is_dir():
        return frame_results(path)
    if not path.is_file():
        problem = "is not a file" if path.exists() else "no such file"
        raise ResultsError(f"{path}: {problem}; pass a results file, a Monitor's database, or a database URL")
    with path.open("rb") as file:
        if file.read(16) == b"SQLite format 3\x00":
            return DatabaseResults(partial(SqliteFile, path, _SCHEMA, _PATIENCE))
    results = FileResults(path)
    return results if results.is_lines else frame_results(path)


class FileResults(Results):
    """The results of a file. It is opened for each reading, and must not change.

    Raises:
        ResultsError: It is no such file, or was written by a newer version.
        OSError: It cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._stamp = _stamp(self.path)
        with self._lines() as lines:
            first = next(lines, b"").strip()
        head: object = None
        with suppress(ValueError, RecursionError):
            head = json.loads(first)
        self.is_lines = first[:1] in (b"", b"{") and not (isinstance(head, dict) and "sample_id" in head)
        if isinstance(head, dict) and RESULTS_MARK in head:
            self.info = cast("Mapping[str, Any]", head)
            self.name = str(self.info.get("name", ""))
            if self.info[RESULTS_MARK] != RESULTS_VERSION:
                version = (
                    f"version {printable(repr(self.info[RESULTS_MARK]), 40)}, this ragstone reads {RESULTS_VERSION}"
                )
                raise ResultsError(f"{self.path}: is of {version}; update ragstone")

    _left_out: Collection[int] = ()

    def records(self, since: float | None = None, *, samples: bool = False) -> Iterator[Record]:  # noqa: ARG002
        """Yield the records in the file's order.

        Raises:
            ResultsError: The file holds something else, or has changed since it was opened.
            OSError: It cannot be read.
        """
        bad: list[int] = []
        number = good = 0
        with self._lines() as lines:
            numbered = enumerate(lines, 1)
            if self.info:
                next(numbered)
            for number, record in decode_rows((i, line) for i, line in numbered if line.strip()):
                if record is None:
                    bad.append(number)
                    continue
                good += 1
                if since is None or record.submitted_at >= since:
                    yield record
        if bad and not good:
            raise no_results(self.path)
        self._left_out = {*bad, *([1] if self.info else [])}
        notes: list[str] = []
        if bad[-1:] == [number]:
            bad.pop()
            notes.append(f"{self.path.name}: its end is missing, as where a run was killed: what is whole was read")
        if bad:
            notes.append(f"{self.path.name}: left out {count(len(bad), 'line')} without a result: {_some_of(bad)}")
        self.notes = tuple(notes)

    def fields(self, since: float | None = None) -> Iterator[Fields]:
        """Yield the records as their lines have them."""
        row, sample = None, None
        with self._lines() as lines:
            for number, line in enumerate(lines, 1):
                if number in self._left_out or not line.strip():
                    continue
                values = of_json(line)
                if row != (row := (values.get("row", 0), values["id"])):
                    sample = None
                if "sample" in values:
                    sample = Sample(**values["sample"])
                if since is None or values.get("submitted_at", 0.0) >= since:
                    yield values, sample

    @contextmanager
    def _lines(self) -> Generator[Iterator[bytes], None, None]:
        if _stamp(self.path) != self._stamp:
            raise ResultsError(f"{self.path}: has changed since it was loaded; load it again")
        with self.path.open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            try:
                yield _gunzipped(file) if packed else file
            except (gzip.BadGzipFile, zlib.error) as error:
                raise ResultsError(f"{self.path}: cannot be read: {error}") from error


class DatabaseResults(Results):
    """The results of a monitor's database, for reading alone, while monitors go on writing.

    Args:
        open_database: Gives the database, for one reading.
        transaction: The one that all is read in; None for one of its own for each reading.

    Raises:
        ResultsError: It is another program's, it cannot be read, or another ragstone wrote it.
    """

    at_hand = False

    def __init__(self, open_database: Callable[[], Database], transaction: Transaction | None = None) -> None:
        database = open_database()
        self.name = database.name
        self._listed = database.listed
        self._open_database = open_database
        self._transaction = transaction
        with self._reading():
            pass

    @contextmanager
    def _reading(self) -> Generator[Transaction, None, None]:
        if self._transaction is not None:
            yield self._transaction
            return
        with closing(self._open_database()) as database, database.reading() as transaction:
            yield transaction

    @contextmanager
    def held(self) -> Generator[Results, None, None]:
        """Give results that read all of one moment, by one connection."""
        with self._reading() as transaction:
            yield DatabaseResults(self._open_database, transaction)

    def records(self, since: float | None = None, *, samples: bool = False) -> Iterator[Record]:
        """Yield the records, those of a sample together; all are of one moment. Rows are counted from 0.

        Raises:
            ResultsError: The database cannot be read.
        """
        columns = ", ".join([*_READ, "sample" if samples else "NULL"])
        order = "sample_id, metric, version"
        sql = f"SELECT {columns} FROM outcomes WHERE submitted_at >= :since ORDER BY {order}"  # noqa: S608
        number, last, damaged = -1, None, list[str]()
        with self._reading() as transaction:
            for *row, text in transaction.execute(sql, {"since": _EARLIEST if since is None else since}):
                if row[0] != last:
                    number, last = number + 1, row[0]
                try:
                    record = from_row(dict(zip(_READ, row, strict=True)), number)
                    yield replace(record, sample=_stored_sample(text)) if text else record
                except ValueError:
                    damaged.append(f"{row[0]} by {row[1]}")
        unread = f"left out {count(len(damaged), 'row')} without an outcome that can be read: {_some_of(damaged)}"
        self.notes = (unread,) if damaged else ()

    def sample(self, record: Record) -> Sample | None:
        """The sample of a record; None where texts are not stored."""
        return dict(self.samples([record.sample_id])).get(record.sample_id)

    def samples(self, ids: Collection[str]) -> Iterator[tuple[str, Sample]]:
        """Yield the samples of these ids that are stored."""
        sql = (
            "SELECT sample_id, min(sample) FROM outcomes WHERE sample IS NOT NULL "  # noqa: S608 - of ours
            f"AND sample_id IN (SELECT value FROM {self._listed}) GROUP BY sample_id"
        )
        with self._reading() as transaction:
            for sample_id, text in transaction.execute(sql, {"ids": json.dumps(list(ids))}):
                if (sample := _stored_sample(text)) is not None:
                    yield sample_id, sample

    def feedback(self) -> Mapping[str, Feedback]:
        """What people said of answers, the latest by the sample's id."""
        names = list(Feedback.model_fields)
        sql = f"SELECT {', '.join(names)} FROM feedback ORDER BY at"  # noqa: S608 - names of ours
        found: dict[str, Feedback] = {}
        with self._reading() as transaction:
            for row in transaction.execute(sql):
                # A hand may have changed it.
                with suppress(ValueError):
                    each = Feedback.model_validate(dict(zip(names, row, strict=True)))
                    found[each.sample_id] = each
        return found


def _stamp(path: Path) -> tuple[int, int, int, int]:
    """What tells a file from one that has changed."""
    state = path.stat()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _some_of(names: Sequence[object]) -> str:
    more = ", ..." if len(names) > _NAMED else ""
    return f"{', '.join(map(str, names[:_NAMED]))}{more}"


def _stored_sample(text: str) -> Sample | None:
    # A hand may have changed it.
    with suppress(ValueError, TypeError, RecursionError):
        return Sample(**json.loads(text))
    return None


def _gunzipped(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.open(file) as lines:
        try:
            yield from lines
        except EOFError:
            # What is there is read, and that its end is missing shows.
            yield _TORN
