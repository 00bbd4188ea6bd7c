"""The batch endpoint of an OpenAI-compatible server: a file of requests up, a file of answers down, hours later."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.clients.access import AnswerError
from ragstone.clients.connection import Connection, load_openai

if TYPE_CHECKING:
    from openai.types import Batch

_MARK = "ragstone"
_MOST_LISTED = 5_000
_ENDED = ("completed", "failed", "expired", "cancelled")
_NO_LIST = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What a server says of a batch.

    Attributes:
        id: The server's name for it.
        status: "validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled".
        files: The server's names for the files of answers; none while it goes on.
        completed: Requests answered so far.
        failed: Requests refused so far.
        problem: What is wrong with a batch that failed as a whole.
    """

    id: str
    status: str
    files: tuple[str, ...] = ()
    completed: int = 0
    failed: int = 0
    problem: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.status in _ENDED


class Batches:
    """Files and batches of one server, blocking; what the server refuses raises `openai.OpenAIError`, after retries."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def upload(self, path: Path) -> str:
        """Upload a file of requests, one JSON object a line; return the server's name for it."""
        server = self._connection.access
        with path.open("rb") as lines:
            try:
                file = self._connection.call(lambda client: client.files.create(file=lines, purpose="batch"))
            except load_openai().NotFoundError as error:
                raise AnswerError(f"{server.shown} has no file upload, so no batch endpoint: {error}") from error
        return self._text(file, "id")

    def begin(self, file: str, mark: str) -> BatchFacts:
        """Begin a batch of an uploaded file, to be done within a day. It is not tried twice: see `find`."""
        batch = self._connection.call(
            lambda client: client.batches.create(
                input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h", metadata={_MARK: mark}
            ),
            once=True,
        )
        return self._facts(batch)

    def look(self, batch: str) -> BatchFacts:
        """Return how a batch is doing."""
        return self._facts(self._connection.call(lambda client: client.batches.retrieve(batch)))

    def find(self, mark: str) -> BatchFacts | None:
        """Return the batch that was begun with a mark; None if there is none, or if the server lists no batches."""
        try:
            listed = self._connection.call(lambda client: list(islice(client.batches.list(limit=100), _MOST_LISTED)))
        except load_openai().APIStatusError as error:
            if error.status_code in _NO_LIST:
                return None
            raise
        return next((self._facts(each) for each in listed if (each.metadata or {}).get(_MARK) == mark), None)

    def download(self, file: str) -> bytes:
        """Return what is in a file."""
        return self._connection.call(lambda client: client.files.content(file).content)

    def _facts(self, batch: "Batch") -> BatchFacts:
        name, status = self._text(batch, "id"), self._text(batch, "status")
        errors = (batch.errors and batch.errors.data) or ()
        problem = "; ".join(self._connection.access.redact(f"{error.code}: {error.message}")[:300] for error in errors)
        files = tuple(file for file in (batch.output_file_id, batch.error_file_id) if file)
        completed, failed = (counts.completed, counts.failed) if (counts := batch.request_counts) else (0, 0)
        return BatchFacts(name, status, files, completed, failed, problem[:500])

    def _text(self, answer: object, field: str) -> str:
        value = getattr(answer, field, None)
        if not isinstance(value, str):  # the openai package checks no answer
            raise AnswerError(f"{self._connection.access.shown} answered without {field!r}")
        return value
