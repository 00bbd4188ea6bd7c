"""What a run through a provider's batch endpoint must know again after it was killed: its batches and requests."""

import base64
import json
import sqlite3
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from ragstone.store.private_files import make_private, make_private_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Stage = Literal["written", "uploaded", "beginning", "begun", "settled"]
Standing = Literal["asked", "waiting", "answered", "given_up"]

_VERSION = 1
_BUSY_SECONDS = 2.0
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batches (number INTEGER PRIMARY KEY, round INTEGER NOT NULL, file TEXT NOT NULL, lines INTEGER NOT NULL,
    mark TEXT NOT NULL, stage TEXT NOT NULL, uploaded TEXT, id TEXT, status TEXT NOT NULL DEFAULT '',
    completed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, replies INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '');
CREATE TABLE requests (key TEXT PRIMARY KEY, payer TEXT NOT NULL, choices TEXT NOT NULL, used TEXT NOT NULL,
    standing TEXT NOT NULL, batch INTEGER, errors INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX requests_batch ON requests (batch, standing);
CREATE TABLE vectors (evaluation TEXT NOT NULL, place INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (evaluation, place)) WITHOUT ROWID;
"""
# Of a round that was not gathered to its end: their file was never finished.
_RECOVER = """
UPDATE requests SET standing = 'waiting', batch = NULL
WHERE batch > (SELECT coalesce(max(number), 0) FROM batches) AND standing = 'asked'
"""


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
        status: What the provider said last.
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
    stage: Stage
    uploaded: str | None = None
    id: str | None = None
    status: str = ""
    completed: int = 0
    failed: int = 0
    replies: int = 0
    problem: str = ""


@dataclass(slots=True)
class RequestState:
    """One request.

    Attributes:
        key: Its `reply_key`.
        payer: The key of the evaluation that asked first, which is the one that its tokens are counted for.
        choices: As in the request.
        used: Which of the parameters that can be left out it was sent with.
        standing: "asked": in a batch; "waiting": to be put into the next one; "answered"; "given_up".
        batch: The number of the last batch that it was in.
        errors: How often it was answered with an error.
        lost: How often its batch ended without it.
        problem: The last of that in words.
    """

    key: str
    payer: str
    choices: tuple[str, ...] | None
    used: frozenset[str]
    standing: Standing
    batch: int | None = None
    errors: int = 0
    lost: int = 0
    problem: str = ""


class State:
    """The file `state.db` in a run's folder, for one process at a time: who comes second is refused.

    Args:
        folder: Made when it is not there.

    Raises:
        FolderError: Another process is at work in it, or the file is of a newer version or none of ours.
    """

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        make_private(folder / "state.db")
        self._folder = folder
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(
            folder / "state.db", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            # The lock is held until closing, and the kernel lets go of it when the process is killed.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("BEGIN EXCLUSIVE")
            self._make()
            self._connection.execute(_RECOVER)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._connection.close()
            raise FolderError(self._words(error)) from error
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "State":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _make(self) -> None:
        ((version,),) = self._connection.execute("PRAGMA user_version").fetchall()
        if version > _VERSION:
            raise FolderError(f"{self._folder}: was begun by a newer ragstone (version {version}); upgrade ragstone")
        if version == 0:
            for statement in _TABLES.split(";"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _words(self, error: sqlite3.Error) -> str:
        if "locked" in str(error):
            return f"{self._folder}: another process is at work in it; wait for it to end"
        return f"{self._folder}: state.db cannot be used: {error}"

    @contextmanager
    def together(self) -> Generator[None, None, None]:
        """Write all of what follows or nothing. Other threads may read meanwhile."""
        self._rows("BEGIN")
        try:
            yield
        except BaseException:
            self._rows("ROLLBACK")
            raise
        self._rows("COMMIT")

    def checkpoint(self) -> None:
        """Make safe what was written since `together` began, or since the last checkpoint."""
        self._rows("COMMIT")
        self._rows("BEGIN")

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def fact(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - any JSON value
        """Return a fact by its name."""
        rows = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else default

    def put_fact(self, name: str, value: object) -> None:
        """Keep a fact, a JSON value."""
        self._rows("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def batches(self, *, open_only: bool = False) -> list[BatchState]:
        """Return the batches in order; only those not settled, if so wanted."""
        where = "WHERE stage != 'settled'" if open_only else ""
        names = ", ".join(BatchState.__dataclass_fields__)
        return [BatchState(*row) for row in self._rows(f"SELECT {names} FROM batches {where} ORDER BY number")]  # noqa: S608

    def put_batch(self, batch: BatchState) -> None:
        """Keep a batch as it is now."""
        values = {name: getattr(batch, name) for name in BatchState.__dataclass_fields__}
        marks = ", ".join("?" * len(values))
        self._rows(
            f"INSERT OR REPLACE INTO batches ({', '.join(values)}) VALUES ({marks})",  # noqa: S608
            tuple(values.values()),
        )

    def request(self, key: str) -> RequestState | None:
        """Return what is known of a request."""
        rows = self._rows("SELECT * FROM requests WHERE key = ?", (key,))
        return _request(rows[0]) if rows else None

    def put_request(self, request: RequestState) -> None:
        """Keep a request as it stands now."""
        self._rows(
            "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                request.key,
                request.payer,
                json.dumps(request.choices),
                " ".join(sorted(request.used)),
                request.standing,
                request.batch,
                request.errors,
                request.lost,
                request.problem,
            ),
        )

    def unanswered(self, batch: int) -> list[RequestState]:
        """Return the requests of a batch that neither got an answer nor went on."""
        rows = self._rows("SELECT * FROM requests WHERE batch = ? AND standing = 'asked'", (batch,))
        return [_request(row) for row in rows]

    def give_up_waiting(self, problem: str) -> None:
        """Give up all requests that wait for another batch."""
        self._rows("UPDATE requests SET standing = 'given_up', problem = ? WHERE standing = 'waiting'", (problem,))

    def vectors(self, evaluation: str, place: int) -> "NDArray[np.float32] | None":
        """Return the vectors that an evaluation got for its so-manieth embedding request; None if none are kept."""
        import numpy as np

        rows = self._rows("SELECT body FROM vectors WHERE evaluation = ? AND place = ?", (evaluation, place))
        if not rows:
            return None
        shape, content = json.loads(rows[0][0])
        kept: NDArray[np.float32] = np.ndarray(tuple(shape), np.float32, bytearray(base64.b64decode(content)))
        return kept

    def put_vectors(self, evaluation: str, vectors: "Mapping[int, NDArray[np.float32]]") -> None:
        """Keep what an embedder returned, for an evaluation that has to wait for more replies."""
        import numpy as np

        for place, given in vectors.items():
            try:
                array = np.ascontiguousarray(given, dtype=np.float32)
            except (TypeError, ValueError):  # no array of numbers: for the metric to say, when it looks
                continue
            body = json.dumps([array.shape, base64.b64encode(array.tobytes()).decode()])
            self._rows("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (evaluation, place, body))

    def forget_vectors(self) -> None:
        """Drop all vectors: every evaluation has ended."""
        self._rows("DELETE FROM vectors")


def _request(row: Sequence[Any]) -> RequestState:
    key, payer, choices, used, standing, batch, errors, lost, problem = row
    words = json.loads(choices)
    return RequestState(
        key,
        payer,
        None if words is None else tuple(words),
        frozenset(used.split()),
        cast("Standing", standing),
        batch,
        errors,
        lost,
        problem,
    )
