"""The files of requests that are uploaded: JSON lines, cut to what one batch may hold."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ragstone.clients.batches import ENDPOINT
from ragstone.store.private_files import open_private


def request_line(key: str, body: dict[str, Any]) -> bytes:
    r"""Return the line of a request, under its key as the custom id.

    Example:
        >>> request_line("k1", {"model": "m"})
        b'{"custom_id": "k1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m"}}\n'
    """
    line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
    # Half a surrogate pair cannot be encoded; its escape is good JSON.
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


@dataclass(frozen=True, slots=True)
class RequestFile:
    """A file of requests: its number, its name and its lines."""

    number: int
    name: str
    lines: int


class RequestFiles:
    """Writes requests to files, beginning a new one where the last is full.

    Args:
        folder: Where they are.
        number: The first file's.
        max_requests: Lines in a file at most.
        max_bytes: Bytes in a file at most.
    """

    def __init__(self, folder: Path, number: int, max_requests: int, max_bytes: int) -> None:
        self._folder = folder
        self._number = number
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._file: IO[bytes] | None = None
        self._name = ""
        self._lines = self._bytes = 0
        self._done: list[RequestFile] = []

    def fits(self, line: bytes) -> bool:
        """Whether any file could hold the line."""
        return len(line) <= self._max_bytes

    def add(self, line: bytes) -> int:
        """Write a line; return the number of its file."""
        if self._lines >= self._max_requests or self._bytes + len(line) > self._max_bytes:
            self._end()
        if self._file is None:
            self._name = f"requests-{self._number:05}.jsonl"
            self._file = open_private(self._folder / self._name, "wb")
        self._file.write(line)
        self._lines += 1
        self._bytes += len(line)
        return self._number

    def close(self) -> list[RequestFile]:
        """Write all of it to the disk; return the files."""
        self._end()
        return self._done

    def abandon(self) -> None:
        """Close what is open, without keeping it."""
        if self._file is not None:
            self._file.close()

    def _end(self) -> None:
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._done.append(RequestFile(self._number, self._name, self._lines))
        self._file, self._lines, self._bytes = None, 0, 0
        self._number += 1
