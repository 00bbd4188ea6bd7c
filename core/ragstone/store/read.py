"""Reading results: a results file, or a monitor's database (a file of SQLite, or a URL of PostgreSQL)."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ragstone.sample import Sample
from ragstone.store.base import Health
from ragstone.store.record import COLUMNS, Record, from_row
from ragstone.store.results import FileResults, Results, ResultsError
from ragstone.store.schema import NOT_OURS, RESULTS, Query, sqlite_path
from ragstone.store.sqlite_file import is_made

_LEAST = -1e300
_READ = [name for name in COLUMNS if name not in ("trace_id", "span_id", "sample")]


def open_results(source: str | os.PathLike[str]) -> Results:
    """Return the results of a results file or of a monitor's database. Nothing is changed.

    Args:
        source: The path of a results file or of a SQLite file, or a URL ("postgresql+psycopg://user@host/name").

    Raises:
        ResultsError: There are none, it is another program's, it cannot be read, or another ragstone wrote it.
        ImportError: A URL needs SQLAlchemy or a driver that is not installed; the message says what to install.
        OSError: The file cannot be read.
    """
    text = os.fspath(source)
    try:
        path = sqlite_path(text) if "://" in text else Path(text)
        if path is None:
            from ragstone.store.server import read_url, reading, shown_url

            url = read_url(text)
            return DatabaseResults(shown_url(url), partial(reading, url, ResultsError))
    except ValueError as error:
        raise ResultsError(str(error)) from None
    if not path.is_file():  # SQLite would make one
        problem = "is no file" if path.exists() else "no such file"
        raise ResultsError(f"{path}: {problem}; give a results file, a Monitor's database, or a database URL")
    with path.open("rb") as file:
        start = file.read(16)
    if start == b"SQLite format 3\x00" or "://" in text:
        return DatabaseResults(str(path), partial(_reading_file, path))
    return FileResults(path)


class DatabaseResults(Results):
    """The results of a monitor's database, for reading alone, while monitors go on writing.

    Args:
        name: What to call it.
        opened: Opens it; what it gives answers queries, all of one moment.

    Raises:
        ResultsError: It is another program's, it cannot be read, or another ragstone wrote it.
    """

    def __init__(self, name: str, opened: Callable[[], contextlib.AbstractContextManager[Query]]) -> None:
        self.name = name
        self._opened = opened
        with opened():
            pass

    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield the records, those of a sample together; all are of one moment. Rows are counted from 0.

        Raises:
            ResultsError: The database cannot be read.
        """
        columns, order = ", ".join(_READ), "sample_id, metric, version"
        sql = f"SELECT {columns} FROM outcomes WHERE submitted_at >= :since ORDER BY {order}"  # noqa: S608
        place, last, damaged = -1, None, 0
        with self._opened() as query:
            for row in query(sql, {"since": _LEAST if since is None else since}):
                if row[0] != last:
                    place, last = place + 1, row[0]
                try:
                    yield from_row(dict(zip(_READ, row, strict=True)), place)
                except ValueError:
                    damaged += 1
        if damaged:
            self.notes = (f"{damaged:,} row(s) hold no outcome that can be read and were left out",)

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record; None where texts are not stored."""
        key = {"sample_id": record.sample_id, "metric": record.outcome.metric, "version": record.outcome.version}
        sql = "SELECT sample FROM outcomes WHERE sample_id = :sample_id AND metric = :metric AND version = :version"
        with self._opened() as query:
            texts = [text for (text,) in query(sql, key) if text]
        with contextlib.suppress(ValueError, TypeError, RecursionError):  # a hand has changed it
            return Sample(**json.loads(texts[0])) if texts else None
        return None

    def health(self) -> Sequence[Health]:
        """Return how the monitors stand that write to the database, the newest first."""
        names = list(Health.model_fields)
        states: list[Health] = []
        with self._opened() as query:
            for row in query(f"SELECT {', '.join(names)} FROM health", {}):  # noqa: S608 - names of ours
                with contextlib.suppress(ValueError, TypeError, RecursionError):  # a hand has changed it
                    cells = dict(zip(names, row, strict=True))
                    loaded = {name: json.loads(cells[name]) for name in ("counts", "reasons")}
                    states.append(Health.model_validate({**cells, **loaded}))
        return sorted(states, key=lambda state: (-state.at, state.process))


@contextlib.contextmanager
def _reading_file(path: Path) -> Generator[Query, None, None]:
    uri = path.absolute().as_uri()
    try:
        try:
            connection = _begun(f"{uri}?mode=ro")
        except sqlite3.OperationalError:
            # Even a reader writes beside a file in WAL mode. In a folder that takes no writing nobody else does either.
            log = path.with_name(f"{path.name}-wal")
            if os.access(path.parent, os.W_OK) or not os.access(path, os.R_OK) or (log.exists() and log.stat().st_size):
                raise
            connection = _begun(f"{uri}?immutable=1")
        with contextlib.closing(connection):
            if not is_made(connection, path, replace(RESULTS, error=ResultsError)):
                raise ResultsError(f"{path}: {NOT_OURS}")
            yield connection.execute
    except sqlite3.Error as error:
        raise ResultsError(f"{path}: cannot be read: {error}") from error


def _begun(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0)
    try:
        connection.execute("BEGIN")  # all that is read is of one moment
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # here the file is really opened
    except sqlite3.Error:
        connection.close()
        raise
    return connection
