"""The monitor's memory on disk: what is still to be judged, and what is still to be delivered.

A SQLite file. A row of `samples` is a sample with the metrics that are to score it; a row of `records` an outcome, or
what a person said of an answer, that one sink has not taken yet. In one transaction a judged sample's row goes and its
records come, so that a process may be killed at any moment and the next one goes on where it stopped.
"""

import json
import math
import sqlite3
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragstone.live.forgetting import TABLE as FORGOTTEN
from ragstone.live.forgetting import facts_in, not_forgotten, note_forgotten
from ragstone.live.pending import Pending
from ragstone.plain import to_json
from ragstone.results.clean import clean_key, clean_text
from ragstone.results.database import DatabaseSchema
from ragstone.results.private_files import Lease
from ragstone.results.record import Record, decode, encode
from ragstone.results.sqlite import SqliteFile
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample

__all__ = ["Contents", "Outbox", "OutboxError"]

_UNREADABLE = -1
# What people said waits under this name, as a monitor that only writes knows no sink.
_ANY_SINK = "all sinks of whoever delivers"


class OutboxError(RuntimeError):
    """The file is no outbox that this version can use."""


_SCHEMA = DatabaseSchema(
    noun="outbox",
    mark=0x7261674F,
    version=3,
    tables=(
        """CREATE TABLE samples (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, metrics TEXT NOT NULL, owner TEXT,
            left_by TEXT, attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0,
            body TEXT NOT NULL)""",
        FORGOTTEN,
        "CREATE INDEX samples_by_owner ON samples (owner, not_before, seq)",
        """CREATE TABLE records (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL, owner TEXT, body TEXT NOT NULL)""",
        "CREATE INDEX records_by_sink ON records (sink, owner, seq)",
    ),
    error=OutboxError,
)


@dataclass(frozen=True, slots=True)
class Contents:
    """What an outbox holds.

    Attributes:
        samples: Samples that are not judged by all of their metrics.
        elsewhere: Those of them that another process works on.
        unreadable: Those of them that cannot be read.
        metrics: Of how many others a metric is to make an evaluation, by its name and version.
        records: Outcomes that are not delivered, but for those that another process has, by the sink's name.
        undelivered: All outcomes that are not delivered, likewise.
        oldest: When the first of the samples was submitted, in seconds since 1970 (UTC); None where there is none.
    """

    samples: int
    elsewhere: int
    unreadable: int
    metrics: Mapping[tuple[str, str], int]
    records: Mapping[str, int]
    undelivered: Mapping[str, int]
    oldest: float | None


class Outbox:
    """One process's hold on the file. Used by one thread at a time, and but for `transaction` inside a transaction.

    Args:
        path: The file; made when it is not there.
        patience: Seconds to wait while another process holds it.

    Raises:
        OutboxError: The file is something else, of a newer version, or cannot be opened, read or written.
        OSError: The file beside it, by which processes know of each other, cannot be made.
    """

    def __init__(self, path: Path, patience: float = 5.0) -> None:
        self._file = SqliteFile(path, _SCHEMA, patience)
        # Of the transaction.
        self._connection: sqlite3.Connection
        with self._file.transaction():
            pass
        try:
            self.owner = Lease(path)
        except BaseException:
            self._file.close()
            raise

    @contextmanager
    def transaction(self, removing: str = "") -> Generator[None, None, None]:
        """Do all of it or nothing, with the write lock from the start.

        Raises:
            OutboxError: Another file replaced it, it cannot be written, or others hold it for too long.
        """
        with self._file.transaction(removing) as self._connection:
            yield

    # --- samples ----------------------------------------------------------------------------------------------

    def add(self, pending: Pending, *, mine: bool) -> bool:
        """Write a sample down, as this process's or, where another one is to judge it, as anybody's.

        Returns:
            False when a sample of the same id is there already, or it was forgotten since it was submitted.
        """
        if self.is_forgotten(pending):
            return False
        name = self.owner.name
        done = self._connection.execute(
            "INSERT INTO samples (id, metrics, owner, left_by, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO NOTHING",
            (
                pending.sample_id,
                _metrics_column(pending),
                name if mine else None,
                None if mine else name,
                pending.to_json(),
            ),
        )
        return done.rowcount == 1

    def is_forgotten(self, pending: Pending) -> bool:
        """Whether a sample was forgotten since it was submitted."""
        return self._is_forgotten(pending.sample_id, pending.submitted_at, pending.sample)

    def remove(self, sample_id: str) -> None:
        """Remove a sample of this process's that needs no more judging, also one that it left to others just now."""
        self._connection.execute(
            "DELETE FROM samples WHERE id = ? AND coalesce(owner, left_by) = ?", (sample_id, self.owner.name)
        )

    def put_off(self, left: Pending, wait: float) -> None:
        """Leave a sample for later: to whoever comes first when `wait` seconds have passed."""
        if self.is_forgotten(left):
            return
        attempts = left.attempts + bool(left.retries)
        self._connection.execute(
            "INSERT INTO samples (id, metrics, left_by, attempts, not_before, body) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body, metrics = excluded.metrics, owner = NULL, "
            "left_by = excluded.left_by, attempts = excluded.attempts, not_before = excluded.not_before",
            (left.sample_id, _metrics_column(left), self.owner.name, attempts, time.time() + wait, left.to_json()),
        )

    def adopt(self) -> bool:
        """Free what processes left behind that ended without saying so; return whether there may be some."""
        me, freed = self.owner.name, False
        rows = self._connection.execute("SELECT owner FROM samples UNION SELECT owner FROM records").fetchall()
        for owner in {owner for (owner,) in rows} | self.owner.others():
            if owner not in (None, me) and not self.owner.lives(owner):
                freed = True
                self._connection.execute("UPDATE samples SET owner = NULL WHERE owner = ?", (owner,))
                self._connection.execute("UPDATE records SET owner = NULL WHERE owner = ?", (owner,))
        return freed

    def claim(
        self,
        most: int,
        metrics: Sequence[str],
        *,
        longest: float = math.inf,
        most_bytes: float = math.inf,
        first_too: bool = False,
        put_off_too: bool = False,
    ) -> list[tuple[Pending, bool]]:
        """Take samples without an owner, the oldest first.

        Args:
            most: How many at most.
            metrics: Names of metrics. Samples that none of them is to score are left alone.
            longest: Seconds that one may be put off for. What waits longer was put off by a clock that was wrong.
            most_bytes: How many bytes they may have together.
            first_too: Whether the first one may have more.
            put_off_too: Whether to take those, too, that others put off until a time that has not come.

        Returns:
            Each with whether it was this process that left it.
        """
        me, names, now = self.owner.name, [_start_in_column(name) for name in metrics], time.time()
        known = " OR ".join(["instr(metrics, ?)"] * len(names))
        cursor = self._connection.execute(
            "SELECT seq, id, body, attempts, left_by FROM samples "  # noqa: S608 - of question marks
            "WHERE owner IS NULL AND attempts >= 0 AND (not_before <= ? OR not_before > ? OR (? AND left_by IS NOT ?)) "
            f"AND ({known}) ORDER BY not_before, seq LIMIT ?",
            (now, now + longest, put_off_too, me, *names, most),
        )
        rows = _first_rows(cursor, most_bytes, first_too=first_too)
        claimed: list[tuple[Pending, bool]] = []
        for seq, sample_id, body, attempts, left_by in rows:
            try:
                pending = Pending.from_json(sample_id, body, attempts)
            except ValueError:
                # Kept for whoever wants to look, and never taken again.
                self._connection.execute("UPDATE samples SET attempts = ? WHERE seq = ?", (_UNREADABLE, seq))
                continue
            self._connection.execute("UPDATE samples SET owner = ? WHERE seq = ?", (me, seq))
            claimed.append((pending, left_by == me))
        return claimed

    # --- records ----------------------------------------------------------------------------------------------

    def keep(self, record: Record, sinks: Sequence[str]) -> dict[str, int]:
        """Write an outcome down for each sink; its row number by sink. One of a forgotten sample is for none."""
        rows: dict[str, int] = {}
        if not self._is_forgotten(record.sample_id, record.submitted_at, record.sample, record.user_id):
            body = encode(record)
            insert = "INSERT INTO records (sink, owner, body) VALUES (?, ?, ?)"
            for sink in sinks:
                rows[sink] = self._connection.execute(insert, (sink, self.owner.name, body)).lastrowid or 0
        return rows

    def add_feedback(self, feedback: Feedback) -> None:
        """Write down what a person said."""
        insert = "INSERT INTO records (sink, body) VALUES (?, ?)"
        self._connection.execute(insert, (_ANY_SINK, to_json(feedback)))

    def share_feedback(self, sinks: Sequence[str]) -> bool:
        """Have what people said wait for each of these sinks; return whether there was any."""
        share = "INSERT INTO records (sink, body) SELECT ?, body FROM records WHERE sink = ? ORDER BY seq"
        self._connection.executemany(share, [(sink, _ANY_SINK) for sink in sinks])
        return self._connection.execute("DELETE FROM records WHERE sink = ?", (_ANY_SINK,)).rowcount > 0

    def delivered(self, seqs: Sequence[int]) -> None:
        """Remove records that their sinks have taken."""
        self._connection.executemany("DELETE FROM records WHERE seq = ?", [(seq,) for seq in seqs])

    def undelivered(self, sink: str, most: int) -> list[tuple[int, Record | Feedback]]:
        """Take what waits for a sink and no living process holds, or this one put aside, the oldest first."""
        rows = self._connection.execute(
            "SELECT seq, body FROM records WHERE sink = ? AND (owner IS NULL OR owner = ?) ORDER BY seq LIMIT ?",
            (sink, self.owner.name, most),
        ).fetchall()
        records: list[tuple[int, Record | Feedback]] = []
        for seq, body in rows:
            try:
                values = json.loads(body) if body.startswith('{"sample_id"') else None
                record = decode(body) if values is None else Feedback.model_validate(values)
            except ValueError:
                # Kept for whoever wants to look.
                self._connection.execute("UPDATE records SET sink = 'unreadable: ' || sink WHERE seq = ?", (seq,))
                continue
            self._connection.execute("UPDATE records SET owner = ? WHERE seq = ?", (self.owner.name, seq))
            records.append((seq, record))
        return records

    # --- all of it --------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        """Count what the file holds."""
        run, me = self._connection.execute, {"me": self.owner.name}
        samples, elsewhere, unreadable = run(
            "SELECT count(*), coalesce(sum(owner IS NOT NULL AND owner != :me), 0), coalesce(sum(attempts < 0), 0) "
            "FROM samples",
            me,
        ).fetchone()
        by_sink = run(
            "SELECT sink, count(*), sum(owner IS NULL OR owner = :me) FROM records GROUP BY sink ORDER BY sink", me
        ).fetchall()
        records = {sink: free for sink, _, free in by_sink if free}
        first = run("SELECT body FROM samples WHERE attempts >= 0 ORDER BY seq LIMIT 1").fetchone()
        oldest = None if first is None else facts_in(first[0])[1]
        metrics = self.waiting(mine=True)
        return Contents(samples, elsewhere, unreadable, metrics, records, {sink: n for sink, n, _ in by_sink}, oldest)

    def waiting(self, *, mine: bool) -> dict[tuple[str, str], int]:
        """Count the samples that no process has in hand, or only this one, by the metrics that are to score them."""
        metrics: dict[tuple[str, str], int] = {}
        for text, n in self._connection.execute(
            "SELECT metrics, count(*) FROM samples WHERE (owner IS NULL OR (:mine AND owner = :me)) AND attempts >= 0 "
            "GROUP BY metrics ORDER BY metrics",
            {"mine": mine, "me": self.owner.name},
        ):
            for name, version in json.loads(text):
                metrics[name, version] = metrics.get((name, version), 0) + n
        return metrics

    def records(self) -> dict[str, int]:
        """Count the outcomes that are not delivered, but for those that another process has, by the sink's name."""
        count = "SELECT sink, count(*) FROM records WHERE owner IS NULL OR owner = ? GROUP BY sink"
        return dict(self._connection.execute(count, (self.owner.name,)).fetchall())

    def forget(self, *, before: float | None = None, ids: Collection[str] = (), user: str = "") -> dict[str, list[str]]:
        """Remove, outside a transaction, what is from before a time, of samples, or a user's; return ids by table.

        The file has nothing of its texts then, and what processes have in hand of these samples does not come back.

        Raises:
            OutboxError: Another process still reads the file; call it again. Or as for `transaction`.
        """
        removed: dict[str, list[str]] = {}
        names, oldest = {clean_key(each) for each in ids}, before or 0.0
        with self.transaction(removing="forgotten"):
            for table in ("samples", "records"):
                rows = self._connection.execute(f"SELECT seq, body FROM {table}")  # noqa: S608 - names of ours
                of = [(seq, *facts_in(body)) for seq, body in rows]
                of = [row for row in of if clean_key(row[1]) in names or row[3] == (user or None) or row[2] < oldest]
                self._connection.executemany(f"DELETE FROM {table} WHERE seq = ?", [row[:1] for row in of])  # noqa: S608
                removed[table] = [row[1] for row in of]
            names.update(clean_key(each) for each in (*removed["samples"], *removed["records"]))
            note_forgotten(self._connection, names, user)
        # Also of what was there and had been scored.
        self._file.vacuum("samples", "records")
        return removed

    def _is_forgotten(self, sample_id: str, at: float, sample: Sample | None, user: str | None = None) -> bool:
        user = user or str((sample.metadata.get("user_id") if sample else None) or "")
        row = {"sample_id": clean_key(sample_id), "submitted_at": at, "user_id": clean_text(user)}
        return not not_forgotten(self._connection, [row])

    def close(self) -> None:
        """Close the file, and free the process's name in it."""
        self._file.close()
        self.owner.close()


def _first_rows(
    cursor: sqlite3.Cursor, most_bytes: float, *, first_too: bool
) -> list[tuple[int, str, str, int, str | None]]:
    """Return the first rows, until their bodies have so many bytes together."""
    rows: list[tuple[int, str, str, int, str | None]] = []
    size = 0
    for row in cursor:
        # The text is all ASCII.
        size += len(row[2])
        if size > most_bytes and (rows or not first_too):
            break
        rows.append(row)
    cursor.close()
    return rows


def _metrics_column(pending: Pending) -> str:
    """Return the column by which samples are found: their metrics by name and version."""
    return json.dumps([[choice.metric, choice.version] for choice in pending.left])


def _start_in_column(name: str) -> str:
    """Return how a metric of that name, and no other, stands in the column."""
    return f"[{json.dumps(name)}, "
