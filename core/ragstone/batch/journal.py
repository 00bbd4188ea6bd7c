"""The write-through record that makes a batch resumable: what was judged once is not judged again."""

import json
import os
import socket
import time
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TypeVar, cast

from ragstone.errors import JournalError
from ragstone.judge import JudgeReply
from ragstone.outcome import Outcome
from ragstone.plain import count
from ragstone.results.database import DatabaseSchema
from ragstone.results.private_files import FileLock
from ragstone.results.record import Record, decode, decode_reply, encode, encode_reply, is_final
from ragstone.results.sqlite import SqliteFile
from ragstone.sample import Sample

__all__ = ["Journal", "JournalError", "is_journal"]

T = TypeVar("T")
_GROUP_SECONDS = 0.05
_PUT = "INSERT OR IGNORE INTO entries VALUES (?, ?, ?)"

_SCHEMA = DatabaseSchema(
    noun="journal",
    # The bytes of "ragJ".
    mark=0x7261674A,
    version=3,
    tables=("CREATE TABLE entries (kind TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (kind, key))",),
    error=JournalError,
)


class _JournalFile(SqliteFile):
    def replaced(self) -> None:
        """Refuse to go on: a new file would lack what the caller has put."""
        raise JournalError(f"{self.path}: was removed or replaced while in use, with everything written to it")


class Journal:
    """Outcomes and replies by key, in a SQLite file. Any thread may use it.

    An outcome is in the file when `put_outcome` returns, and safe when the process is killed. (When the machine loses
    its power the last moments may be missing; the file stays whole.) Of two outcomes that are put under one key, the
    first stays.

    One `Journal` at a time may use a file, also for reading: it holds a lock on `PATH.lock`, which the system frees
    however the process ends. A forked process needs a `Journal` of its own.

    Args:
        path: The file; made when it is not there. On a local disk: SQLite's locks are not reliable on network ones.
        patience: Seconds to wait while another process holds the file.

    Attributes:
        path: The file.

    Raises:
        JournalError: The file is no journal, was made by a newer version, is in use by another `Journal`, or cannot be
            opened or written.

    Example:
        >>> import tempfile
        >>> from ragstone import Score
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Journal(Path(folder.name) / "journal.db") as journal:
        ...     journal.put_outcome("key", Score(metric="demo", value=0.5, reason="", version="1"))
        >>> with Journal(Path(folder.name) / "journal.db") as journal:
        ...     journal.outcome("key").value
        0.5
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, *, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._file = _JournalFile(self.path, _SCHEMA, patience)
        self._closed = False
        self._put = 0
        # Those that wait to be written.
        self._replies: dict[str, JudgeReply] = {}
        self._written = 0.0
        # This opens the file: what is wrong with it is said now.
        with self._file.reading():
            pass
        try:
            self._lock = _locked(self.path)
        except BaseException:
            self._file.close()
            raise

    def outcome(self, key: str, sample: Sample | None = None) -> Outcome | None:
        """Return the outcome that was put under the key; None when there is none.

        Args:
            key: The key.
            sample: The same as when it was put, for what was quoted from its texts.

        Raises:
            JournalError: The file cannot be read, or the journal is closed.
        """
        return self._read("outcome", key, lambda text: decode(text, sample).outcome)

    def put_outcome(self, key: str, outcome: Outcome, sample: Sample | None = None) -> None:
        """Keep an outcome, unless it is one that a later run should ask for again.

        Those are `Unscored` for a reason outside of the sample: "judge_error", "timeout", "cancelled", "over_budget".

        Args:
            key: The key.
            outcome: The outcome.
            sample: What the key is of: its texts are not written again. Whoever reads the outcome passes it, too.

        Raises:
            JournalError: It cannot be written; what was put before is safe. Or the journal is closed.
        """
        if not is_final(outcome):
            return
        self._write((_PUT, ("outcome", key, _packed(encode(Record("", outcome), sample)))))
        self._put += 1

    def reply(self, key: str) -> JudgeReply | None:
        """Return the judge's reply that was put under the key; None when there is none.

        Raises:
            JournalError: The file cannot be read, or the journal is closed.
        """
        return self._replies.get(key) or self._read("reply", key, decode_reply)

    def put_reply(self, key: str, reply: JudgeReply) -> None:
        """Keep a judge's reply. Those that come fast are written together, with the next outcome at the latest.

        Raises:
            JournalError: As `put_outcome`.
        """
        self._check()
        self._replies.setdefault(key, reply)
        if time.monotonic() - self._written > _GROUP_SECONDS:
            self._write()

    def left_out(self, judge: str) -> dict[str, str]:
        """Return the parameters that the provider of a judge, given as its `identity_json`, has refused in other runs.

        Raises:
            JournalError: The file cannot be read, or the journal is closed.
        """
        names: dict[str, str] | None = self._read("left out", judge, json.loads)
        return names or {}

    def put_left_out(self, judge: str, names: Mapping[str, str]) -> None:
        """Keep which parameters were refused, with the provider's words, so that the next run asks the same way.

        Raises:
            JournalError: As `put_outcome`.
        """
        body = _packed(json.dumps({**names}))
        self._write(("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", ("left out", judge, body)))

    def close(self) -> None:
        """Write what waits, and free the file.

        Raises:
            JournalError: What waits cannot be written, and is lost.
        """
        try:
            if self._replies and not self._closed:
                self._write()
        finally:
            self._closed = True
            self._file.close()
            self._lock.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed:
            raise JournalError(f"{self.path}: this journal is closed; make a new one")
        if self._lock.pid != os.getpid():
            raise JournalError(f"{self.path}: this journal is the parent process's; make a new one after it has ended")

    def _read(self, kind: str, key: str, decode: Callable[[str], T]) -> T | None:
        self._check()
        with self._file.reading() as connection:
            rows = connection.execute("SELECT body FROM entries WHERE kind = ? AND key = ?", (kind, key)).fetchall()
        try:
            return decode(zlib.decompress(cast("bytes", rows[0][0])).decode()) if rows else None
        except (ValueError, TypeError, zlib.error) as error:
            raise JournalError(
                f"{self.path}: the {kind} of {key} is damaged ({error}); move the file away and start a new one"
            ) from error

    def _write(self, *statements: tuple[str, tuple[str | bytes, ...]]) -> None:
        """Run statements and write the replies that wait, all or nothing."""
        self._check()
        replies = list(self._replies.items())
        try:
            with self._file.transaction() as connection:
                for key, reply in replies:
                    connection.execute(_PUT, ("reply", key, _packed(encode_reply(reply))))
                for statement, values in statements:
                    connection.execute(statement, values)
        except JournalError as error:
            raise JournalError(
                f"{error}. Safe in the journal: {count(self._put, 'outcome')}. Fix the cause and run "
                "again with the same journal: those are not judged again"
            ) from error
        for key, _ in replies:
            self._replies.pop(key, None)
        self._written = time.monotonic()


def is_journal(path: Path) -> bool:
    """Whether a file is a journal, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(72)
    # SQLite has an application's id there.
    return start.startswith(b"SQLite format 3\0") and start[68:] == _SCHEMA.mark.to_bytes(4, "big")


def _locked(path: Path) -> FileLock:
    """Lock a journal for this process, and say who others find there."""
    # A link is another name of one journal.
    target = Path(os.path.realpath(path))
    who = f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    try:
        return FileLock(target.with_name(f"{target.name}.lock"), who)
    except BlockingIOError as error:
        by = str(error) or "another process"
        raise JournalError(
            f"{path}: is in use by {by}; wait until it has ended, or name another file as the journal"
        ) from error
    except OSError as error:
        raise JournalError(str(error)) from error


def _packed(text: str) -> bytes:
    """Return a body as the file has it: the texts of a sample stand in its outcomes and in its replies."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
