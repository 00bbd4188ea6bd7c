"""What a run through a provider's batch endpoint must know again after it was killed: its batches and requests."""

import json
import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ragstone.store.journal import Journal
from ragstone.store.private_files import make_private, make_private_folder

Stage = Literal["written", "uploaded", "beginning", "begun", "settled"]

_VERSION = 2
_BUSY_SECONDS = 2.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, batch INTEGER, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS requests_batch ON requests (batch)",
    f"PRAGMA user_version = {_VERSION}",
    # A round that was not gathered to its end left requests whose file was never finished.
    "UPDATE requests SET batch = 0 WHERE batch > (SELECT coalesce(max(number), 0) FROM batches)",
)


class FolderError(RuntimeError):
    """The folder of a run cannot be used; the message says why and what to do."""


@dataclass(slots=True)
class BatchState:
    """One batch: a file of requests on its way.

    Attributes:
        number: Counted from 1.
        round: The round of requests that it is of, from 1.
        file: The name of the file of requests in the run's folder.
        lines: Requests in it.
        mark: By which the provider's list of batches shows it.
        stage: How far it is, as of the last step.
        uploaded: The provider's name for the file.
        id: The provider's name for the batch.
        status: The provider's last status of it.
        completed: Requests answered, as the provider counts them.
        failed: Requests refused, as the provider counts them.
        replies: Replies taken from it.
        problem: What was wrong with it as a whole.
    """

    number: int
    round: int
    file: str
    lines: int
    mark: str
    stage: Stage = "written"
    uploaded: str | None = None
    id: str | None = None
    status: str = ""
    completed: int = 0
    failed: int = 0
    replies: int = 0
    problem: str = ""


@dataclass(slots=True)
class RequestState:
    """One request, kept by its `reply_key`."""

    payer: str  # the key of the evaluation that asked first; its usage counts the tokens
    choices: Sequence[str] | None
    used: Sequence[str] = ()  # the parameters it was sent with that can be left out
    batch: int | None = 0  # 0: it waits for the next one; None: it is answered or given up
    errors: int = 0  # how often it was answered with an error
    lost: int = 0  # how often its batch ended without an answer to it
    given_up: bool = False
    problem: str = ""  # the last one

    def give_up(self) -> None:
        """Ask it no more."""
        self.given_up, self.batch = True, None


class State:
    """The file `state.db` in a run's folder, and the journal beside it, for one process at a time."""

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        make_private(folder / "state.db")
        self.folder = folder
        self.journal = Journal(folder / "journal.db")
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            folder / "state.db", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            # The lock is held until closing, and the kernel releases it when the process is killed.
            self._rows("PRAGMA locking_mode = EXCLUSIVE")
            with self.together():
                if (version := self._rows("PRAGMA user_version")[0][0]) not in (0, _VERSION):
                    other = "a newer ragstone: upgrade" if version > _VERSION else "an older ragstone"
                    raise FolderError(f"{folder}: was begun by {other} (version {version}), or take another folder")
                for statement in _TABLES:
                    self._rows(statement)
        except (sqlite3.Error, FolderError) as error:
            self._connection.close()
            if isinstance(error, FolderError):
                raise
            if "locked" in str(error):
                raise FolderError(f"{folder}: another process is at work in it; wait for it to end") from error
            raise FolderError(f"{folder}: state.db cannot be used: {error}") from error

    def __enter__(self) -> "State":
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self._connection):
            self.journal.close()

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def together(self) -> Generator[None, None, None]:
        """Write everything in the block or nothing. Other threads may read meanwhile."""
        self._rows("BEGIN EXCLUSIVE")
        try:
            yield
            self._rows("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._rows("ROLLBACK")
            raise

    def checkpoint(self) -> None:
        """Commit what was written since `together` began, or since the last checkpoint."""
        self._rows("COMMIT")
        self._rows("BEGIN EXCLUSIVE")

    def fact(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - any JSON value
        """Return a fact by its name."""
        rows = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return json.loads(rows[0][0]) if rows else default

    def put_fact(self, name: str, value: object) -> None:
        """Keep a fact, a JSON value."""
        self._rows("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, json.dumps(value))

    def batches(self, *, open_only: bool = False) -> list[BatchState]:
        """Return the batches in order; with `open_only`, those that are not settled."""
        batches = [
            BatchState(**json.loads(text)) for (text,) in self._rows("SELECT value FROM batches ORDER BY number")
        ]
        return [batch for batch in batches if not (open_only and batch.stage == "settled")]

    def put_batch(self, batch: BatchState) -> None:
        """Keep a batch as it is now."""
        self._rows("INSERT OR REPLACE INTO batches VALUES (?, ?)", batch.number, json.dumps(asdict(batch)))

    def request(self, key: str) -> RequestState | None:
        """Return what is known of a request."""
        rows = self._rows("SELECT value, batch FROM requests WHERE key = ?", key)
        return RequestState(**json.loads(rows[0][0]), batch=rows[0][1]) if rows else None

    def put_request(self, key: str, request: RequestState) -> None:
        """Keep a request as it is now."""
        values = asdict(request)
        batch = values.pop("batch")
        self._rows("INSERT OR REPLACE INTO requests VALUES (?, ?, ?)", key, batch, json.dumps(values))

    def requests_in(self, batch: int) -> list[tuple[str, RequestState]]:
        """Return the requests that are still in a batch; of batch 0, those that wait for the next."""
        rows = self._rows("SELECT key, value FROM requests WHERE batch = ?", batch)
        return [(key, RequestState(**json.loads(value), batch=batch)) for key, value in rows]
