"""Outcomes, a monitor's counters and its budget's account in a database: a SQLite file, or a PostgreSQL server."""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.live import alarms
from ragstone.live.pending import facts_in, not_forgotten, note_forgotten
from ragstone.live.sink import Sink, SinkError
from ragstone.plain import clean_integer, clean_key, clean_real, clean_text, to_json
from ragstone.results.connection import MemoryDatabase, SqliteFile
from ragstone.results.record import COLUMNS, to_row, without_texts
from ragstone.results.tables import results_database, sqlite_path
from ragstone.results.traffic import Feedback, Health

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import URL

    from ragstone.live.alarms import Alarm
    from ragstone.live.budget import Entry
    from ragstone.results.record import Record
    from ragstone.results.server import ServerDatabase

RESULTS = results_database(SinkError)


def _upsert(table: str, columns: "Iterable[str]", key: "Sequence[str]") -> str:
    names = list(columns)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    values = ", ".join(f":{name}" for name in names)
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608 - names of ours
    return f"{insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


_PATIENCE = 15.0  # seconds to wait while another process holds a SQLite file
_KEY = ("sample_id", "metric", "version")
_WRITE = _upsert("outcomes", COLUMNS, _KEY)
_WRITE_HEALTH = _upsert("health", Health.model_fields, ["process"])
_WRITE_FEEDBACK = _upsert("feedback", Feedback.model_fields, ["sample_id", "at"])
_SPEND = """
INSERT INTO spending (name, starts_at, amount) VALUES (:name, :starts_at, :amount)
ON CONFLICT (name, starts_at) DO UPDATE SET amount = spending.amount + excluded.amount
"""
_OF_USER = (
    "SELECT sample_id, user_id, sample FROM outcomes WHERE user_id = :user OR (user_id IS NULL AND sample LIKE :key)"
)
_SPENT = "SELECT amount FROM spending WHERE name = :name AND starts_at = :starts_at"
_REMEMBERED = 10_000
_FORGET_OLDEST = "DELETE FROM outcomes WHERE counted = 1 AND rowid <= (SELECT max(rowid) FROM outcomes) - :most"
_KEPT = 2 * 86_400  # seconds after its start that a window is remembered


class DatabaseSink(Sink):
    """Keeps outcomes in a database."""

    _database: "SqliteFile | ServerDatabase | MemoryDatabase"

    def write(self, records: "Sequence[Record]") -> None:
        """Keep the records, all or none.

        Raises:
            SinkError: They could not be kept: the database cannot be reached, another process has held the file for 15
                seconds, the disk is full, it is none that this version can write to. The message says which and what to
                do, and never a password.
        """
        if records:
            by_key = {_key(row): row for row in map(to_row, records)}
            rows = [by_key[key] for key in sorted(by_key)]  # in one order: no two processes wait for each other
            with self._database.transaction() as connection:
                if rows := not_forgotten(connection, rows, "submitted_at"):
                    connection.executemany(_WRITE, rows)

    def health(self, health: Health) -> None:
        """Keep a process's counters in place of its earlier ones.

        Raises:
            SinkError: As for `write`.
        """
        row = {
            "process": clean_key(health.process),
            "at": clean_real(health.at),
            "started_at": clean_real(health.started_at),
            "counts": to_json(health.counts),
            "reasons": to_json(health.reasons),
            "longest_queue": clean_integer(health.longest_queue),
        }
        with self._database.transaction() as connection:
            connection.execute(_WRITE_HEALTH, row)

    def feedback(self, feedback: "Sequence[Feedback]") -> None:
        """Keep what people said of answers.

        Raises:
            SinkError: As for `write`.
        """
        rows = [
            {
                "sample_id": clean_key(each.sample_id),
                "value": clean_text(each.value),
                "comment": None if each.comment is None else clean_text(each.comment),
                "at": clean_real(each.at),
            }
            for each in sorted(feedback, key=lambda each: (each.sample_id, each.at))
        ]
        if rows:
            with self._database.transaction() as connection:
                if rows := not_forgotten(connection, rows, "at"):
                    connection.executemany(_WRITE_FEEDBACK, rows)

    def raise_alarms(self) -> "list[Alarm]":
        """Count the outcomes that alerts watch and that are not counted yet; return the alarms to announce.

        Each alarm is returned once, to one of all processes.

        Raises:
            SinkError: As for `write`. What is not counted then, the next call counts.
        """
        self._count()
        with self._database.transaction() as connection:
            return alarms.take_unannounced(connection)

    def alerts(self, *, reset: bool = False) -> "list[tuple[str, str, int, float, Alarm | None]]":
        """Return the alerts' names and slices, with the number of scores, their sum, and the alarm if one was raised.

        Args:
            reset: Whether those that raised an alarm start anew afterwards.

        Raises:
            SinkError: As for `write`.
        """
        self._count()
        with self._database.transaction() as connection:
            found = alarms.tallies(connection)
            if reset:
                alarms.reset(connection)
            return found

    def _count(self) -> None:
        counted = alarms.MOST_AT_ONCE
        while counted == alarms.MOST_AT_ONCE:
            with self._database.transaction() as connection:
                counted = alarms.count_new(connection)

    def has(self, sample_id: str) -> bool:
        """Return whether an outcome of a sample is there."""
        query = "SELECT 1 FROM outcomes WHERE sample_id = :sample_id LIMIT 1"
        with self._database.transaction() as connection:
            return bool(connection.execute(query, {"sample_id": clean_key(sample_id)}).fetchall())

    def samples_of(self, user: str) -> set[str]:
        """Return the ids of a user's samples, also where `keep` left the user out and the sample is stored."""
        with self._database.transaction() as connection:
            rows = connection.execute(_OF_USER, {"user": clean_text(user), "key": '%"user_id"%'}).fetchall()
        facts = map(tuple, rows)
        return {str(sample_id) for sample_id, own, sample in facts if own is not None or facts_in(sample)[2] == user}

    def forget(self, *, before: float | None = None, ids: Collection[str] = ()) -> dict[str, int]:
        """Remove what is from before a time (seconds since 1970, UTC) or of these samples; return how much, by table.

        A SQLite file has nothing of its texts then, a server writes over them by and by. What a process has in hand of
        samples that are named by their ids is not written any more.

        Raises:
            SinkError: As for `write`, or another process still reads the file; then call it again.
        """
        removed: dict[str, int] = {}
        rows = [{"sample_id": clean_key(each)} for each in sorted(ids)]
        with self._database.transaction() as connection:
            alarms.forget_lowest(connection, before or 0.0, {row["sample_id"] for row in rows})
            connection.execute(self._database.before_deleting)
            note_forgotten(connection, ids)
            for table, at in (("outcomes", "submitted_at"), ("feedback", "at")):
                delete = f"DELETE FROM {table} WHERE"  # noqa: S608 - names of ours
                removed[table] = sum(
                    connection.execute(f"{delete} sample_id = :sample_id", row).rowcount for row in rows
                )
                if before is not None:
                    removed[table] += connection.execute(f"{delete} {at} < :before", {"before": before}).rowcount
        self._database.vacuum(rewrite=bool(ids) or any(removed.values()))
        return removed

    def ledger(self) -> "DatabaseLedger":
        """Return the account that all processes on this database share."""
        return DatabaseLedger(self._database)

    def close(self) -> None:
        """Close the connection. A later `write` opens another."""
        self._database.close()


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in _KEY)


class SQLiteSink(DatabaseSink):
    """Keeps outcomes in a SQLite file that any number of threads and processes on one machine may share.

    The file is made at the first write. An outcome replaces the one of the same sample, metric and version.

    Args:
        path: The file. Its folder must be there.

    Attributes:
        path: The file, as an absolute path.
        name: "sqlite:" and the path.

    Raises:
        ValueError: The path is ":memory:", which no second connection could read.

    Example:
        >>> import sqlite3, tempfile
        >>> from ragstone import Unscored
        >>> from ragstone.live import Record
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = SQLiteSink(Path(folder) / "ragstone.db")
        ...     sink.write([Record("a", nothing, judge="j", scored_at=1.5)])
        ...     sink.close()
        ...     reader = sqlite3.connect(sink.path)
        ...     print(reader.execute("SELECT sample_id, reason FROM outcomes").fetchall())
        ...     reader.close()
        [('a', 'timeout')]
    """

    def __init__(self, path: str | os.PathLike[str] = "ragstone.db") -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise ValueError(f"path: is {os.fspath(path)!r}; name a file, such as 'ragstone.db'")
        self.path = Path(path).absolute()
        self.name = f"sqlite:{self.path}"
        self._database = SqliteFile(self.path, RESULTS, _PATIENCE)

    def __repr__(self) -> str:
        return f"SQLiteSink({str(self.path)!r})"

    def __reduce__(self) -> "tuple[type[SQLiteSink], tuple[Path]]":
        return type(self), (self.path,)


class SQLSink(DatabaseSink):
    """Keeps outcomes in a PostgreSQL database that any number of processes and machines may share.

    Needs the extra `ragstone[sql]`. Nothing is connected before the first write, which makes the tables. An outcome
    replaces the one of the same sample, metric and version.

    Args:
        url: The database, as SQLAlchemy writes it: "postgresql+psycopg://user:password@host/name". "postgres://" and
            "postgresql://" mean that too. Where other tables of the same names are there, let it use a schema of its
            own: "?options=-csearch_path%3Dragstone". "sqlite:///PATH" is a SQLite file. Pickling the sink writes the
            password down.

    Attributes:
        name: "sql:" and the URL without password and query.

    Raises:
        ImportError: SQLAlchemy or the database's driver is not installed.
        ValueError: The URL is none, or names another database, a driver for async code, or no file.

    Example:
        >>> SQLSink("postgresql://me:secret@db.test/rag")
        SQLSink('postgresql+psycopg://me@db.test/rag')
    """

    def __init__(self, url: "str | URL") -> None:
        self._url = url if isinstance(url, str) else url.render_as_string(hide_password=False)
        path = sqlite_path(self._url)
        if path is not None:
            self._shown = self._url
            self._database = SqliteFile(path.absolute(), RESULTS, _PATIENCE)
        else:
            from ragstone.results.server import ServerDatabase, read_url, shown_url

            parsed = read_url(self._url)
            self._shown = shown_url(parsed)
            self._database = ServerDatabase(parsed, RESULTS)
        self.name = f"sql:{self._shown}"

    def __repr__(self) -> str:
        return f"SQLSink({self._shown!r})"

    def __reduce__(self) -> "tuple[type[SQLSink], tuple[str]]":
        return type(self), (self._url,)


class MemorySink(DatabaseSink):
    """Remembers the last outcomes of this process, for alerts where no sink has a database."""

    name = "memory"

    def __init__(self) -> None:
        self._database = MemoryDatabase(RESULTS)

    def write(self, records: "Sequence[Record]") -> None:
        """Remember the scores that alerts watch, and forget the oldest."""
        bare = [
            replace(record, sample=None, outcome=without_texts(record.outcome)) for record in records if record.alerts
        ]
        super().write(bare)
        with self._database.transaction() as connection:
            connection.execute(_FORGET_OLDEST, {"most": _REMEMBERED})


class _RefusedError(Exception):
    """A limit has no room: nothing of the transaction is kept."""


class DatabaseLedger:
    """The account that all processes on one database share. Windows older than two days are forgotten.

    Args:
        database: The database; see `SQLiteSink.ledger`.
    """

    def __init__(self, database: "SqliteFile | ServerDatabase | MemoryDatabase") -> None:
        self._database = database

    def spend(self, entries: "Sequence[Entry]", /) -> str | None:
        """Enter all amounts, or none: then return the name of the limit that refused. Atomic between processes.

        Raises:
            SinkError: The database cannot be reached. Nothing is spent then.
        """
        if not entries:
            return None
        new = False
        try:
            with self._database.transaction() as connection:
                # In one order everywhere, so that no two transactions wait for each other.
                for entry in sorted(entries, key=lambda entry: (entry.name, entry.starts_at)):
                    row = {"name": entry.name, "starts_at": entry.starts_at, "amount": entry.amount}
                    connection.execute(_SPEND, row)
                    ((amount,),) = connection.execute(_SPENT, row).fetchall()
                    if entry.limit is not None and amount > entry.limit:
                        raise _RefusedError(entry.name)
                    new = new or amount == entry.amount
                if new:
                    # Never a window that is spent in, whatever the clock says.
                    oldest = min(int(time.time()), *(entry.starts_at for entry in entries)) - _KEPT
                    connection.execute("DELETE FROM spending WHERE starts_at < :oldest", {"oldest": oldest})
        except _RefusedError as refusal:
            return str(refusal)
        return None


class MemoryLedger(DatabaseLedger):
    """The account of one process, where no sink has a database.

    Example:
        >>> from ragstone.live import Entry
        >>> ledger = MemoryLedger()
        >>> ledger.spend([Entry("calls_per_minute", 0, 2, 3)]), ledger.spend([Entry("calls_per_minute", 0, 2, 3)])
        (None, 'calls_per_minute')
    """

    def __init__(self) -> None:
        super().__init__(MemoryDatabase(RESULTS))
