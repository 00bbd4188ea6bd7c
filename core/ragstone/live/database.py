"""Sinks that keep outcomes in a database: a SQLite file, or a PostgreSQL server."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar

from ragstone.live import alarms, forgetting, outcomes
from ragstone.live.feedback import TABLE as FEEDBACK
from ragstone.live.feedback import write_feedback
from ragstone.live.health import TABLE as HEALTH
from ragstone.live.health import Health, write_health
from ragstone.live.sink import Sink, SinkError
from ragstone.results.clean import clean_key, restored_text
from ragstone.results.database import Database
from ragstone.results.record import Record
from ragstone.results.sqlite import SqliteFile
from ragstone.results.tables import results_database
from ragstone.results.traffic import Feedback

RESULTS = results_database(SinkError, *outcomes.TABLES, FEEDBACK, HEALTH, forgetting.TABLE, alarms.TABLE)


class DatabaseSink(Sink):
    """Keeps outcomes in a database.

    Attributes:
        database: Where alarms are counted, too.
        patience: Seconds to wait while another process holds a SQLite file, or a server does not answer.
    """

    database: Database  # pyright: ignore[reportIncompatibleVariableOverride] - a database sink always has one
    patience: ClassVar[float] = 15.0

    def write(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none.

        Raises:
            SinkError: They could not be kept: the database cannot be reached, another process has held the file for 15
                seconds, the disk is full, it is none that this version can write to. The message says which and what to
                do, and never a password.
        """
        if records:
            with self.database.transaction() as connection:
                forgotten = outcomes.write_outcomes(connection, records)
            self.forgotten += forgotten

    def health(self, health: Health) -> None:
        """Keep a process's counters in place of its earlier ones.

        Raises:
            SinkError: As for `write`.
        """
        with self.database.transaction() as connection:
            write_health(connection, health)

    def feedback(self, feedback: Sequence[Feedback]) -> None:
        """Keep what people said of answers.

        Raises:
            SinkError: As for `write`.
        """
        if feedback:
            with self.database.transaction() as connection:
                forgotten = write_feedback(connection, feedback)
            self.forgotten += forgotten

    def has(self, sample_id: str) -> bool:
        """Whether an outcome of a sample is there."""
        with self.database.reading() as connection:
            return outcomes.has_outcome(connection, sample_id)

    def samples_of(self, user: str) -> set[str]:
        """Find the ids of a user's samples, also where `keep` left the user out and the sample is stored."""
        with self.database.reading() as connection:
            return set(map(restored_text, outcomes.samples_of(connection, user)))

    def forget(self, *, before: float | None = None, ids: Collection[str] = (), user: str = "") -> dict[str, int]:
        """Remove what is from before a time (seconds since 1970, UTC), of samples or of a user; return how much.

        What was submitted before this moment, of these samples or this user, is not written any more. A SQLite file
        has nothing of the texts then, a server writes over them by and by.

        Raises:
            SinkError: As for `write`, or another process still reads the file; then call it again.
        """
        removed: dict[str, int] = {}
        with self.database.transaction(removing="forgotten") as connection:
            names = {clean_key(each) for each in ids}
            if user:
                names |= outcomes.samples_of(connection, user)
            forgetting.note_forgotten(connection, names, user)
            connection.execute(alarms.ALONE)
            for table, at in (("outcomes", "submitted_at"), ("feedback", "at")):
                delete = f"DELETE FROM {table} WHERE"  # noqa: S608 - names of ours
                removed[table] = 0
                for name in sorted(names):
                    removed[table] += connection.execute(f"{delete} sample_id = :name", {"name": name}).rowcount
                if before is not None:
                    removed[table] += connection.execute(f"{delete} {at} < :before", {"before": before}).rowcount
        self.database.vacuum(*(("outcomes", "feedback") if names or any(removed.values()) else ()))
        return removed

    def close(self) -> None:
        """Close the connection. A later `write` opens another."""
        self.database.close()


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
        self.database = SqliteFile(self.path, RESULTS, self.patience)

    def __repr__(self) -> str:
        return f"SQLiteSink({str(self.path)!r})"

    def __reduce__(self) -> "tuple[type[SQLiteSink], tuple[Path]]":
        return type(self), (self.path,)


class SQLSink(DatabaseSink):
    """Keeps outcomes in a PostgreSQL database that any number of processes and machines may share.

    Needs the extra `ragstone[sql]`. Nothing is connected before the first write, which makes the tables. An outcome
    replaces the one of the same sample, metric and version.

    Args:
        url: The database: "postgresql+psycopg://user:password@host/name"; "postgres://" and "postgresql://" mean the
            same. Where other tables of the same names are there, let it use a schema of its own:
            "?options=-csearch_path%3Dragstone". Pickling the sink writes the password down.

    Attributes:
        name: "sql:" and the URL without password and query.
        patience: Seconds that a write may take; then its connection is cut, and the next try connects anew.

    Raises:
        ImportError: psycopg is not installed.
        ValueError: The URL is none, or names another database or another driver.

    Example:
        >>> SQLSink("postgresql://me:secret@db.test/rag")
        SQLSink('postgresql+psycopg://me@db.test/rag')
    """

    patience = 30.0

    def __init__(self, url: str) -> None:
        from ragstone.results.postgres import ServerDatabase

        self._url = url
        self.database = ServerDatabase(url, RESULTS, self.patience)
        self.name = f"sql:{self.database.name}"

    def __repr__(self) -> str:
        return f"SQLSink({self.database.name!r})"

    def __reduce__(self) -> "tuple[type[SQLSink], tuple[str]]":
        return type(self), (self._url,)
