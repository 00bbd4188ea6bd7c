"""Outcomes as lines of JSON."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.live.sink import Sink, SinkError
from ragstone.results.private_files import explain, lock_file, open_private, unlock_file
from ragstone.results.record import encode

if TYPE_CHECKING:
    from ragstone.results.record import Record


class JSONLSink(Sink):
    r"""Appends outcomes to a file, one JSON object a line; as `ragstone score --out` writes them.

    Nothing is replaced: of two lines with the same sample id, metric and version the later one counts. Any number of
    threads and processes on one machine may append to one file, and the file may be moved away at any time (log
    rotation). A line that a crash has cut off is ended before the next one is written. Data is left to the operating
    system to bring to the disk.

    Args:
        path: The file. It is made at the first write; its folder must be there.

    Attributes:
        path: The file, as an absolute path.
        name: "jsonl:" and the path.

    Example:
        >>> import json, tempfile
        >>> from ragstone import Unscored
        >>> from ragstone.live import Record
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = JSONLSink(Path(folder) / "outcomes.jsonl")
        ...     sink.write([Record("a", nothing, judge="j", scored_at=1.5)])
        ...     [line] = sink.path.read_text().splitlines()
        >>> json.loads(line)["reason"]
        'timeout'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.fspath(path):
            raise ValueError("path: is empty; name a file, such as 'outcomes.jsonl'")
        self.path = Path(path).absolute()
        self.name = f"jsonl:{self.path}"

    def __repr__(self) -> str:
        return f"JSONLSink({str(self.path)!r})"

    def write(self, records: "Sequence[Record]") -> None:
        """Append the records, all or none.

        Raises:
            SinkError: They could not be written; the message says why and what to do.
        """
        if not records:
            return
        lines = "".join(f"{encode(record)}\n" for record in records).encode()
        try:
            with open_private(self.path, "a+b", buffering=0) as file:  # anew each time: it may be moved away
                _append(file.fileno(), lines)
        except OSError as error:
            problem = explain(self.path, f"cannot be written ({error.strerror or error})", "outcomes.jsonl")
            raise SinkError(f"{self.path}: {problem}") from error


def _append(file: int, lines: bytes) -> None:
    with _alone(file) as alone:
        size = os.fstat(file).st_size
        if size and _last_byte(file, size) != b"\n":
            lines = b"\n" + lines
        left = memoryview(lines)
        try:
            while left:  # once, as a rule; a disk that is filling up takes a part
                left = left[os.write(file, left) :]
        except OSError:
            if alone and os.fstat(file).st_size > size:
                os.ftruncate(file, size)
            raise


def _last_byte(file: int, size: int) -> bytes:
    os.lseek(file, size - 1, os.SEEK_SET)  # writing appends all the same
    return os.read(file, 1)


@contextmanager
def _alone(file: int) -> Generator[bool, None, None]:
    locked = False
    with suppress(OSError):  # some network disks have no locks; then a batch is still one write
        locked = lock_file(file, wait=True)
    try:
        yield locked
    finally:
        if locked:
            unlock_file(file)
