"""A journal's file, and what was put into it on the way there: in groups, by a thread that lives while it is needed."""

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from ragstone.errors import describe
from ragstone.judge import LLMReply
from ragstone.outcome import Outcome
from ragstone.store.record import encode_outcome, encode_reply
from ragstone.store.sqlite_file import Kind, SqliteFile

T = TypeVar("T")

_GROUP_SECONDS = 0.05  # what is put is written at most so much later
_IDLE_TURNS = 20
_MOST_WAITING = 2_000  # beyond, whoever puts writes: what waits must not fill the memory


class JournalError(Exception):
    """A journal cannot be read or written; the message says why, what is safe, and what to do."""


_KIND = Kind(
    noun="journal",
    mark=0x7261674A,  # "ragJ"
    version=1,
    tables=(
        "CREATE TABLE outcomes (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
        "CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
        "CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE owners (name TEXT PRIMARY KEY, beat INTEGER NOT NULL) WITHOUT ROWID",
    ),
    error=JournalError,
)


class JournalFile(SqliteFile):
    """One way into a journal's file.

    Args:
        path: The file; made at the first use when it is not there.
        patience: Seconds to wait while another process holds the file.
    """

    def __init__(self, path: Path, patience: float) -> None:
        super().__init__(path, _KIND, patience)

    def replaced(self) -> None:
        """Refuse to go on: a new file would lack what the caller has put."""
        raise JournalError(
            f"{self.path}: was removed or replaced while in use; what had been written to it went with it"
        )


@dataclass(slots=True)
class Batch:
    """What is put and not yet written, and the claims given up. Of two under one key the first stays."""

    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    replies: dict[str, LLMReply] = field(default_factory=dict[str, LLMReply])
    freed: set[str] = field(default_factory=set[str])

    def __len__(self) -> int:
        return len(self.outcomes) + len(self.replies) + len(self.freed)

    def add(self, later: "Batch") -> None:
        """Add what was put later."""
        self.outcomes = later.outcomes | self.outcomes
        self.replies = later.replies | self.replies
        self.freed |= later.freed


class JournalWriter:
    """Collects what threads put and writes it, all or nothing. In a forked child it begins empty.

    Args:
        file: Where it writes; nobody else should write there, only read.
        owner: Returns the name under which this process claims outcomes; None before it does.
    """

    def __init__(self, file: JournalFile, owner: Callable[[], str | None] = lambda: None) -> None:
        self._file = file
        self._owner = owner
        self._closed = False
        self._at_exit: Callable[[], None] | None = None
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()  # of what follows; never held while the file is used
        self._writing = threading.Lock()
        self._waiting = Batch()
        self._leaving = Batch()
        self._thread: threading.Thread | None = None
        self._error: JournalError | None = None
        self._kept = 0

    def _ours(self) -> threading.Lock:
        if self._pid != os.getpid():
            self._begin()  # what waits is the parent's to write
        return self._lock

    def outcome(self, key: str) -> Outcome | None:
        """Return an outcome that is not written yet.

        Raises:
            JournalError: This is closed.
        """
        with self._ours():
            self._check()
            return self._leaving.outcomes.get(key) or self._waiting.outcomes.get(key)

    def reply(self, key: str) -> LLMReply | None:
        """Return a reply that is not written yet.

        Raises:
            JournalError: This is closed.
        """
        with self._ours():
            self._check()
            return self._leaving.replies.get(key) or self._waiting.replies.get(key)

    def put(self, add: Callable[[Batch], object]) -> None:
        """Let `add` add something to what is written next.

        Raises:
            JournalError: What was put earlier could not be written; or it is closed.
        """
        with self._ours():
            self._check()
            if self._error is not None:
                raise JournalError(str(self._error))
            add(self._waiting)
            full = len(self._waiting) >= _MOST_WAITING or (self._thread is None and not self._started())
        if full:
            self._write()

    def flush(self) -> None:
        """Write what waits, now. Once closed, nothing waits.

        Raises:
            JournalError: It cannot be written, and still waits.
        """
        with self._ours():
            pass
        self._write()
        with self._lock:
            error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Write what waits, and take nothing more.

        Raises:
            JournalError: It cannot be written, and is lost.
        """
        try:
            self.flush()
        finally:
            with self._lock:
                self._closed = True
                self._waiting, self._leaving = Batch(), Batch()
            if self._at_exit is not None:
                atexit.unregister(self._at_exit)
            self._file.close()

    def _check(self) -> None:
        if self._closed:
            raise JournalError(f"{self._file.path}: this journal is closed; make another one")

    def _started(self) -> bool:
        """Start the thread; False where there can be none any more, at the interpreter's end."""
        self._thread = threading.Thread(target=self._keep, name="ragstone-journal", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None
            return False
        if self._at_exit is None:  # the thread stops with the interpreter, wherever it is
            self._at_exit = partial(_flush, weakref.ref(self))
            atexit.register(self._at_exit)
        return True

    def _keep(self) -> None:
        idle = 0
        while True:
            time.sleep(_GROUP_SECONDS)
            try:
                idle = 0 if self._write() else idle + 1
            except JournalError:  # the next put says it
                idle = 0
            with self._lock:
                if self._closed or self._error is not None or (idle >= _IDLE_TURNS and not self._waiting):
                    self._thread = None
                    return

    def _write(self) -> bool:
        """Write what waits; False when nothing does."""
        with self._writing:
            with self._lock:
                self._leaving.add(self._waiting)  # what is left of a write that failed comes first
                batch, self._waiting = self._leaving, Batch()
            if not batch:
                return False
            try:
                refused = self._store(batch)
            except JournalError as error:
                failure = JournalError(self._what_is_safe(error, batch))
                with self._lock:
                    self._error = failure
                raise failure from error
            with self._lock:
                self._kept += len(batch.outcomes)
                self._leaving = Batch()
                self._error = JournalError(f"{self._file.path}: {refused}") if refused else None
            return True

    def _store(self, batch: Batch) -> str:
        refused: list[str] = []
        outcomes = _columns(batch.outcomes.items(), encode_outcome, refused)
        replies = _columns(batch.replies.items(), encode_reply, refused)
        with self._file.transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO outcomes VALUES (?, ?)", outcomes)
            connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", replies)
            if (owner := self._owner()) is not None:
                connection.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in batch.outcomes])
                freed = [(key, owner) for key in batch.freed]
                connection.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", freed)
                connection.execute("UPDATE owners SET beat = beat + 1 WHERE name = ?", (owner,))
        return f"{len(refused)} of what was put cannot be written as JSON: {refused[0]}" if refused else ""

    def _what_is_safe(self, error: JournalError, batch: Batch) -> str:
        return (
            f"{error}. {self._kept:,} outcomes that were put are safe in the journal, {len(batch.outcomes):,} are not. "
            "When the cause is gone, run again with the same journal: what is safe is not judged again"
        )


def _columns(items: Iterable[tuple[str, T]], encode: Callable[[T], str], refused: list[str]) -> list[tuple[str, str]]:
    columns: list[tuple[str, str]] = []
    for key, item in items:
        try:
            columns.append((key, encode(item)))
        except Exception as error:  # noqa: PERF203 - one that is not what it says must not keep the others back
            refused.append(describe(error, most=200))
    return columns


def _flush(reference: "weakref.ref[JournalWriter]") -> None:
    writer = reference()
    if writer is not None:
        writer.flush()
