"""Outcomes as lines of JSON."""

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragstone.live.sink import Sink, SinkError
from ragstone.results.private_files import explain, lock_file, open_private, unlock_file
from ragstone.results.record import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

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
                _append(file, lines)
        except OSError as error:
            problem = explain(self.path, f"cannot be written ({error.strerror or error})", "outcomes.jsonl")
            raise SinkError(f"{self.path}: {problem}") from error


def _append(file: IO[bytes], lines: bytes) -> None:
    locked = False
    with suppress(OSError):  # some network disks have no locks; then a batch is still one write
        locked = lock_file(file.fileno(), wait=True)
    size = file.seek(0, os.SEEK_END)
    try:
        if size:
            file.seek(-1, os.SEEK_END)  # writing appends all the same
            lines = lines if file.read(1) == b"\n" else b"\n" + lines
        while lines:  # once, as a rule; a disk that is filling up takes a part
            lines = lines[file.write(lines) :]
    except OSError:
        if locked:
            file.truncate(size)
        raise
    finally:
        if locked:
            unlock_file(file.fileno())
