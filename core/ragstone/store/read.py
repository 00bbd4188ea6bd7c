"""Reading results: a results file, or a monitor's database (a file of SQLite, or a URL through SQLAlchemy)."""

import contextlib
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import unquote

from pydantic import TypeAdapter, ValidationError

from ragstone.outcome import Outcome, Score, Suspicion, Unscored, Usage, Verdict
from ragstone.sample import Sample
from ragstone.store.base import Health
from ragstone.store.record import Record
from ragstone.store.results import FileResults, Results, ResultsError
from ragstone.store.schema import SCHEMA

if TYPE_CHECKING:
    import sqlite3

    import sqlalchemy

    Row = tuple[Any, ...]

T = TypeVar("T")
Query = Callable[[str, Mapping[str, float | str]], Iterable["Row"]]
_AT_ONCE = 500
_LATEST = 253_402_300_799  # the end of the year 9999
_GREATEST = 1e100  # squares of what is beyond overflow
_NOT_OURS = "is no ragstone database: it has no table ragstone_schema; a Monitor's SQLiteSink or SQLSink writes one"
_COLUMNS = (
    "sample_id, metric, version, status, value, passed, reason, detail, breakdown, verdicts, judge, submitted_at, "
    "scored_at, rate, chosen_by, llm_calls, embed_calls, input_tokens, output_tokens, seconds, suspected"
)
_VERDICTS = TypeAdapter(tuple[Verdict, ...])
_SUSPECTED = TypeAdapter(tuple[Suspicion, ...])
_SAMPLE = TypeAdapter(Sample)


def open_results(source: str | os.PathLike[str]) -> Results:
    """Return the results of a results file or of a monitor's database. Nothing is changed.

    Args:
        source: The path of a results file or of a SQLite file, or an SQLAlchemy URL
            ("postgresql+psycopg://user@host/name").

    Raises:
        ResultsError: There are none, it is another program's, it cannot be read, or a newer ragstone wrote it.
        ImportError: A URL needs SQLAlchemy or a driver that is not installed; the message says what to install.
        OSError: The file cannot be read.
    """
    text = os.fspath(source)
    scheme, is_url, rest = text.partition("://")
    if is_url and scheme.partition("+")[0] != "sqlite":
        return _server_results(text)
    path = Path(unquote(rest.removeprefix("/").partition("?")[0])) if is_url else Path(text)
    if not path.exists():  # SQLite would make one
        raise ResultsError(f"{path}: no such file; give a results file, a Monitor's database, or a database URL")
    if not path.is_file():
        raise ResultsError(f"{path}: is no file; give a results file, a Monitor's database, or a database URL")
    with path.open("rb") as file:
        start = file.read(16)
    if start == b"SQLite format 3\x00" or is_url:
        return DatabaseResults(str(path), partial(_sqlite, path))
    return FileResults(path)


class DatabaseResults(Results):
    """The results of a monitor's database, for reading alone, while monitors go on writing.

    Raises:
        ResultsError: It is another program's, it cannot be read, or a newer ragstone wrote it.
    """

    def __init__(self, name: str, opened: "Callable[[], contextlib.AbstractContextManager[Query]]") -> None:
        self.name = name
        self._opened = opened
        with opened() as query:
            rows = list(query("SELECT version, oldest_writer FROM ragstone_schema", {}))
        if not rows:
            raise ResultsError(f"{name}: {_NOT_OURS}")
        version, oldest = rows[0]
        known = SCHEMA.state.version
        if oldest > known:  # what still takes this version's rows can be read by it too
            raise ResultsError(
                f"{name}: was written by a newer ragstone (its schema is version {version}, this one knows {known}); "
                "upgrade ragstone here"
            )

    def records(self, since: float | None = None) -> Iterator[Record]:
        """Yield the records, those of a sample together; all are of one moment. Rows are counted from 0.

        Raises:
            ResultsError: The database cannot be read.
        """
        order = "sample_id, metric, version"
        sql = f"SELECT {_COLUMNS} FROM outcomes WHERE submitted_at >= :since ORDER BY {order}"  # noqa: S608
        place, last, damaged = -1, None, 0
        with self._opened() as query:
            for row in query(sql, {"since": -_GREATEST if since is None else since}):
                if row[0] != last:
                    place, last = place + 1, row[0]
                try:
                    yield _record(row, place)
                except ValidationError:
                    damaged += 1
        if damaged:
            self.notes = (f"{damaged:,} row(s) hold no outcome that can be read and were left out",)

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record; None where texts are not stored."""
        key = {"sample_id": record.sample_id, "metric": record.outcome.metric, "version": record.outcome.version}
        sql = "SELECT sample FROM outcomes WHERE sample_id = :sample_id AND metric = :metric AND version = :version"
        with self._opened() as query:
            rows = list(query(sql, key))
        return _checked(_SAMPLE, rows[0][0]) if rows else None

    def health(self) -> Sequence[Health]:
        """Return how the monitors stand that write to the database, the newest first."""
        with self._opened() as query:
            rows = list(query("SELECT process, at, started_at, counts, reasons, longest_queue FROM health", {}))
        states = [
            Health(
                process=str(process),
                at=_time(at),
                started_at=_time(started_at),
                counts=_counts(_loaded(counts)),
                reasons={kind: _counts(by_reason) for kind, by_reason in _mapping(_loaded(reasons)).items()},
                longest_queue=_count(longest) or 0,
            )
            for process, at, started_at, counts, reasons, longest in rows
        ]
        return sorted(states, key=lambda state: (-state.at, state.process))


def _record(row: "Row", place: int) -> Record:
    """Return the record of a row, which a hand may have changed: what is not of its type is not taken for a value."""
    cells: dict[str, Any] = dict(zip(_COLUMNS.split(", "), row, strict=True))
    usage = Usage(
        llm_calls=_count(cells["llm_calls"]) or 0,
        embed_calls=_count(cells["embed_calls"]) or 0,
        input_tokens=_count(cells["input_tokens"]),
        output_tokens=_count(cells["output_tokens"]),
        seconds=_number(cells["seconds"]) or 0.0,
    )
    suspected = _checked(_SUSPECTED, cells["suspected"]) or ()
    common: dict[str, Any] = {name: cells[name] for name in ("metric", "version", "reason")}
    common |= {"usage": usage, "suspected": suspected}
    outcome: Outcome
    if cells["status"] == "scored":
        parts = ((name, _number(part)) for name, part in _mapping(_loaded(cells["breakdown"])).items())
        outcome = Score(
            **common,
            value=cast("float", _number(cells["value"])),
            passed=None if cells["passed"] is None else bool(cells["passed"]),
            breakdown={name: part for name, part in parts if part is not None},
            verdicts=_checked(_VERDICTS, cells["verdicts"]) or (),
        )
    else:
        outcome = Unscored(**common, detail=str(cells["detail"] or ""))
    rate = _number(cells["rate"])
    return Record(
        sample_id=str(cells["sample_id"]),
        outcome=outcome,
        judge=str(cells["judge"] or ""),
        row=place,
        submitted_at=_time(cells["submitted_at"]),
        scored_at=_time(cells["scored_at"]),
        rate=1.0 if rate is None else rate,
        chosen_by=str(cells["chosen_by"] or ""),
    )


def _number(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    return float(value) if isinstance(value, (int, float)) and abs(value) <= _GREATEST else None


def _time(value: object) -> float:
    """Return seconds since 1970 that a calendar can show; 0.0 for anything else."""
    seconds = _number(value)
    return seconds if seconds is not None and 0 <= seconds <= _LATEST else 0.0


def _count(value: object) -> int | None:
    """Return a whole number from 0; None for anything else."""
    return value if isinstance(value, int) and value >= 0 else None


def _counts(value: object) -> dict[str, int]:
    return {name: _count(n) or 0 for name, n in _mapping(value).items()}


def _mapping(value: object) -> dict[str, object]:
    return {str(key): part for key, part in value.items()} if isinstance(value, dict) else {}  # pyright: ignore


def _loaded(value: object) -> object:
    """Return what a JSON text holds, half characters in it replaced; None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        loaded: object = json.loads(value)
        if "\\ud" in value:
            loaded = json.loads(json.dumps(loaded, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return loaded


def _checked(adapter: TypeAdapter[T], value: object) -> T | None:
    try:
        return adapter.validate_python(_loaded(value))
    except ValidationError:
        return None


@contextlib.contextmanager
def _sqlite(path: Path) -> Generator[Query, None, None]:
    import sqlite3  # only where it is used: importing ragstone stays cheap

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
            yield lambda sql, parameters: map(_decoded_row, connection.execute(sql, dict(parameters)))
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text or "no such table: ragstone_schema" in text:
            raise ResultsError(f"{path}: {_NOT_OURS}") from error
        raise ResultsError(f"{path}: cannot be read: {text}") from error


def _begun(uri: str) -> "sqlite3.Connection":
    import sqlite3

    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0)
    try:
        connection.text_factory = _decoded
        connection.execute("BEGIN")  # all that is read is of one moment
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # here the file is really opened
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _decoded_row(row: "Row") -> "Row":
    # A BLOB where a text should be is another program's doing, and no reason to fail.
    return tuple(_decoded(value) if isinstance(value, bytes) else value for value in row)


def _server_results(url: str) -> DatabaseResults:
    try:
        from ragstone.store.sql_database import read_url, shown_url
    except ImportError as error:
        message = f'a database URL needs SQLAlchemy: pip install "ragstone[sql]" ({error})'
        raise ImportError(message, name=error.name) from error
    try:
        parsed = read_url(url)
    except ValueError as error:
        raise ResultsError(str(error)) from None
    name = shown_url(parsed)
    return DatabaseResults(name, partial(_server, parsed, name))


@contextlib.contextmanager
def _server(url: "sqlalchemy.URL", name: str) -> Generator[Query, None, None]:
    from sqlalchemy import NullPool, create_engine, text
    from sqlalchemy.exc import ProgrammingError, SQLAlchemyError

    engine = create_engine(url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            if url.get_backend_name() == "postgresql":  # all that is read is of one moment; none can write
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            streamed = connection.execution_options(yield_per=_AT_ONCE)  # as they come, not all at once
            yield lambda sql, parameters: map(tuple, streamed.execute(text(sql), dict(parameters)))
    except SQLAlchemyError as error:
        if isinstance(error, ProgrammingError) and "ragstone_schema" in str(error):
            raise ResultsError(f"{name}: {_NOT_OURS}") from None
        message = " ".join(str(getattr(error, "orig", None) or error).split())
        if url.password:  # some drivers repeat it
            message = message.replace(str(url.password), "***")
        raise ResultsError(f"{name}: cannot be read: {message}") from None
    finally:
        engine.dispose()
