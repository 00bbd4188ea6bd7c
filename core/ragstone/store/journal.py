"""The write-through record that makes a batch resumable: what was judged once is not judged again.

A `Journal` reads the file itself, writes through `store.journal_writer`, and shares work through `store.claims`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ragstone.judge import LLMReply
from ragstone.outcome import Outcome
from ragstone.store.claims import Claims
from ragstone.store.journal_writer import JournalError, JournalFile, JournalWriter
from ragstone.store.record import decode_outcome, decode_reply, is_final

__all__ = ["Journal", "JournalError"]

T = TypeVar("T")


class Journal:
    """Outcomes and replies by key, in a SQLite file. Any thread may use it.

    What is put is written in groups, by a thread of the journal's own, at most 50 ms later; until then it can be read
    back all the same. What is written is safe when the process is killed. (When the machine loses its power the last
    moments may be missing; the file stays whole.) Several processes of one machine may use one file, each with a
    `Journal` of its own, and share the work by `claim`; of two outcomes that are put under one key, the first stays. A
    `Journal` can be pickled, and goes on in a forked process; what was put before the fork, the parent writes.

    Args:
        path: The file; made when it is not there. On a local disk: SQLite's locks are not reliable on network ones.
        patience: Seconds to wait while another process holds the file.

    Attributes:
        path: The file.

    Raises:
        JournalError: The file is no journal, was made by a newer version, or cannot be opened or written.

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
        self._patience = patience
        self._reader = JournalFile(self.path, patience)
        self._claims = Claims(JournalFile(self.path, patience), self.path)
        self._writer = JournalWriter(JournalFile(self.path, patience), lambda: self._claims.owner)
        self._reader.read("SELECT key FROM outcomes LIMIT 1")  # opens it: what is wrong with it is said now

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Journal, patience=self._patience), (self.path,)

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome that was put under the key; None when there is none.

        Raises:
            JournalError: The file cannot be read, or the journal is closed.
        """
        return self._writer.outcome(key) or self._read("outcomes", key, decode_outcome)

    def put_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, unless it is one that a later run should ask for again.

        Those are `Unscored` for a reason outside of the sample: "judge_error", "timeout", "cancelled", "over_budget".

        Raises:
            JournalError: What was put earlier could not be written; or the journal is closed.
        """
        if is_final(outcome):
            self._writer.put(lambda batch: batch.outcomes.setdefault(key, outcome))
            self._claims.settled(key)
        else:
            self.release((key,))

    def claim(self, keys: Sequence[str], most: int = 100) -> set[str]:
        """Claim outcomes that nobody has made or is making; return the keys of those that are now this journal's.

        What is claimed is to be put (`put_outcome`) or released. Of all that use the file, in this process or another,
        one at a time has the claim. It falls free when the process ends, however it does, and when the process has
        written nothing for ten minutes while another waits for it.

        Args:
            keys: Of the outcomes.
            most: How many to claim at most.

        Raises:
            JournalError: The file cannot be read or written.
        """
        return self._claims.take(keys, most)

    def release(self, keys: Iterable[str]) -> None:
        """Give up claims on outcomes that will not be put.

        Raises:
            JournalError: As `put_outcome`.
        """
        if self._claims.owner is not None:
            for key in (freed := set(keys)):
                self._claims.settled(key)
            self._writer.put(lambda batch: batch.freed.update(freed))

    def reply(self, key: str) -> LLMReply | None:
        """Return the judge's reply that was put under the key; None when there is none.

        Raises:
            JournalError: The file cannot be read, or the journal is closed.
        """
        return self._writer.reply(key) or self._read("replies", key, decode_reply)

    def put_reply(self, key: str, reply: LLMReply) -> None:
        """Keep a judge's reply.

        Raises:
            JournalError: As `put_outcome`.
        """
        self._writer.put(lambda batch: batch.replies.setdefault(key, reply))

    def flush(self) -> None:
        """Write what waits, now.

        Raises:
            JournalError: It cannot be written. It still waits: make room, and flush again.
        """
        self._writer.flush()

    def close(self) -> None:
        """Write what waits, and let go of the file.

        Raises:
            JournalError: What waits cannot be written, and is lost.
        """
        try:
            self._writer.close()
        finally:
            self._claims.close()
            self._reader.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, table: str, key: str, decode: Callable[[str], T]) -> T | None:
        rows = self._reader.read(f"SELECT body FROM {table} WHERE key = ?", (key,))  # noqa: S608 - a name of ours
        try:
            return decode(str(rows[0][0])) if rows else None
        except ValueError as error:
            raise JournalError(
                f"{self.path}: {key} in {table} is damaged ({error}); move the file away and begin another"
            ) from error
