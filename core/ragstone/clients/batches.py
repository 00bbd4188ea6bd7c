"""The batch endpoint of an OpenAI-compatible server: a file of requests up, a file of answers down, hours later."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragstone.clients.access import Access
from ragstone.clients.answers import AnswerError, missing, read_json
from ragstone.clients.connection import Call, Connection, Flow, load_openai
from ragstone.plain import as_count, as_dict, as_list

ENDPOINT = "/v1/chat/completions"
_MARK = "ragstone"
_MOST_PAGES = 50
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NO_LIST = frozenset({404, 405, 501})


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What a server says of a batch.

    Attributes:
        id: The server's name for it.
        status: "validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled".
        output_file: Of the requests that were answered; None where there is none.
        error_file: Of those that were not; None where there is none.
        completed: Requests answered so far.
        failed: Requests refused so far.
        problems: What is wrong with a batch that failed as a whole, "code: message" each.
        mark: What it was marked with when it was begun.
    """

    id: str
    status: str
    output_file: str | None = None
    error_file: str | None = None
    completed: int = 0
    failed: int = 0
    problems: tuple[str, ...] = field(default=())
    mark: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.status in _ENDED


def read_batch(body: dict[str, object], server: Access) -> BatchFacts:
    """Return the facts that a batch object holds.

    Raises:
        AnswerError: It is no batch object.

    Example:
        >>> server = Access("http://127.0.0.1/v1", "none", ambient=False)
        >>> read_batch({"id": "batch_1", "status": "in_progress"}, server).ended
        False
    """
    name, status = body.get("id"), body.get("status")
    if not isinstance(name, str) or not isinstance(status, str):
        raise missing(body, "status", server)
    counts = as_dict(body.get("request_counts"))
    errors = [as_dict(error) for error in as_list(as_dict(body.get("errors")).get("data"))]
    return BatchFacts(
        name,
        status,
        _text(body.get("output_file_id")),
        _text(body.get("error_file_id")),
        as_count(counts.get("completed")) or 0,
        as_count(counts.get("failed")) or 0,
        tuple([server.redact(f"{error.get('code')}: {error.get('message')}")[:300] for error in errors]),
        _text(as_dict(body.get("metadata")).get(_MARK)) or "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


class Batches:
    """Files and batches of one server, blocking; what the server refuses raises `openai.OpenAIError`, after retries."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def upload(self, path: Path) -> str:
        """Upload a file of requests, one JSON object a line; return the server's name for it."""
        return self._connection.run(self._upload(path))

    def begin(self, file: str, mark: str) -> BatchFacts:
        """Begin a batch of an uploaded file, to be done within a day. It is not tried twice: see `find`."""
        return self._connection.run(self._begin(file, mark))

    def look(self, batch: str) -> BatchFacts:
        """Return how a batch is doing."""
        return self._connection.run(self._look(batch))

    def find(self, mark: str) -> BatchFacts | None:
        """Return the batch that was begun with a mark; None if there is none, or if the server lists no batches."""
        after: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            try:
                page = self._connection.run(self._page(after))
            except load_openai().APIStatusError as error:
                if error.status_code in _NO_LIST:
                    return None
                raise
            listed = list(self._listed(page))
            marked = [each for each in listed if each.mark == mark]
            if marked or not listed or not page.get("has_more"):
                return marked[0] if marked else None
            after = {"after": listed[-1].id}
        return None

    def download(self, file: str) -> bytes:
        """Return what is in a file."""
        return self._connection.run(self._download(file))

    def _upload(self, path: Path) -> Flow[str]:
        server = self._connection.access
        with path.open("rb") as lines:
            try:
                content = yield Call("upload", {"file": (path.name, lines), "purpose": "batch"})
            except load_openai().NotFoundError as error:
                raise AnswerError(f"{server.shown} takes no files, so it has no batch endpoint: {error}") from error
        name = _text(read_json(content, server).get("id"))
        if name is None:
            raise missing(read_json(content, server), "id", server)
        return name

    def _begin(self, file: str, mark: str) -> Flow[BatchFacts]:
        body = {"input_file_id": file, "endpoint": ENDPOINT, "completion_window": "24h", "metadata": {_MARK: mark}}
        content = yield Call("begin_batch", body)
        return read_batch(read_json(content, self._connection.access), self._connection.access)

    def _look(self, batch: str) -> Flow[BatchFacts]:
        content = yield Call("batch", {"batch_id": batch})
        return read_batch(read_json(content, self._connection.access), self._connection.access)

    def _page(self, after: dict[str, Any]) -> Flow[dict[str, object]]:
        content = yield Call("batches", {"limit": 100, **after})
        return read_json(content, self._connection.access)

    def _listed(self, page: dict[str, object]) -> Iterator[BatchFacts]:
        for each in as_list(page.get("data")):
            yield read_batch(as_dict(each), self._connection.access)

    def _download(self, file: str) -> Flow[bytes]:
        content = yield Call("download", {"file_id": file})
        return content
