"""The journal of a run on many machines: one folder, in it one file for each worker's process.

Each process appends to its own file and reads all. Nobody locks anything and no file has two writers, which is what
network file systems can be trusted with; SQLite's locks and its memory shared between processes are not (and a database
server would be one more thing to run, for what appending does). A line is a key and an outcome's JSON. A process that
is killed leaves at worst a last line without its end, which readers pass over.
"""

import os
import secrets
import socket
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ragstone.outcome import Outcome
from ragstone.store.journal import JournalError
from ragstone.store.private_files import make_private_folder, open_private
from ragstone.store.record import decode_outcome, encode_outcome, is_final

_HEAD = b"ragstone-outcomes 1\n"
_HEAD_WORD = b"ragstone-outcomes "
_SUFFIX = ".outcomes"
_KEY = 32
_BLOCK = 1 << 22
_OFFSET_BITS = 44  # a file of 16 TB


class SharedOutcomes:
    """Outcomes by key, of all processes that use the folder. Any thread may use it.

    What is put has left the process when `put_outcome` returns: a `kill -9` loses none of it. What others put is seen
    from the next `refresh`. In memory are only the keys, some 120 bytes each.

    Args:
        folder: Made if need be; on a disk that all workers reach.

    Raises:
        JournalError: The folder cannot be made or read, or holds files of a newer ragstone.

    Example:
        >>> import tempfile
        >>> from ragstone import Score
        >>> folder = tempfile.TemporaryDirectory()
        >>> one, other = SharedOutcomes(folder.name), SharedOutcomes(folder.name)
        >>> one.put_outcome("0" * 32, Score(metric="demo", value=0.5, reason="", version="1"))
        >>> other.refresh()
        >>> other.outcome("0" * 32).value
        0.5
        >>> one.close(), other.close()
        (None, None)
        >>> folder.cleanup()
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._lock = threading.RLock()
        self._index: dict[bytes, int] = {}
        self._paths: list[str] = []
        self._read: dict[str, tuple[int, int]] = {}  # by name: its number, and how far it was read
        self._own: IO[bytes] | None = None
        self._own_number = -1
        self._end = 0
        try:
            make_private_folder(self.folder)
        except OSError as error:
            raise JournalError(f"{self.folder}: cannot be made ({error}); name a folder that workers reach") from error

    def refresh(self) -> None:
        """Take note of what other processes put since the last time.

        Raises:
            JournalError: The folder or a file of it cannot be read, or a newer ragstone wrote it.
        """
        with self._lock:
            try:
                for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
                    number, place = self._read.get(path.name, (-1, 0))
                    if number == -1:
                        number = self._number(path.name)
                    if number != self._own_number:
                        self._read[path.name] = number, self._noted(path, number, place)
            except OSError as error:
                raise JournalError(f"{self.folder}: cannot be read ({error})") from error

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome that was put under the key; None where there is none, or where it is damaged.

        Raises:
            JournalError: The file with it cannot be read.
        """
        with self._lock:
            at = self._index.get(bytes.fromhex(key))
            if at is None:
                return None
            path = self.folder / self._paths[at >> _OFFSET_BITS]
        try:
            with path.open("rb") as file:
                file.seek(at & ((1 << _OFFSET_BITS) - 1))
                line = file.readline()
        except OSError as error:
            raise JournalError(f"{path}: cannot be read any more ({error})") from error
        if line[:_KEY] != key.encode() or not line.endswith(b"\n"):
            return None
        try:
            return decode_outcome(line[_KEY + 1 :])
        except ValueError:
            return None  # asked again, and kept again

    def put_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, unless it is one that a later run should ask for again (`Journal.put_outcome`).

        Raises:
            JournalError: It cannot be written; what was put before is safe.
        """
        if not is_final(outcome):
            return
        line = f"{key} {encode_outcome(outcome)}\n".encode()
        with self._lock:
            at = self._append(line)
            self._index[bytes.fromhex(key)] = self._own_number << _OFFSET_BITS | at

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Return the keys of outcomes that are not there: workers are sent rows of their own."""
        return {key for key in keys if self.outcome(key) is None}

    def release(self, keys: Iterable[str]) -> None:
        """Do nothing: nobody waits for a claim."""

    def flush(self) -> None:
        """Bring what was put to the disk: what a machine that loses its power has before this may be missing.

        Raises:
            JournalError: It cannot be written.
        """
        with self._lock:
            if self._own is not None:
                try:
                    os.fsync(self._own.fileno())
                except OSError as error:
                    raise JournalError(self._full(error)) from error

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None

    def _append(self, line: bytes) -> int:
        try:
            if self._own is None:
                name = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
                self._own = open_private(self.folder / name, "xb", buffering=0)
                self._own_number = self._number(name)
                self._end = 0
                self._write(_HEAD)
            at = self._end
            self._write(line)
        except OSError as error:
            raise JournalError(self._full(error)) from error
        return at

    def _write(self, data: bytes) -> None:
        assert self._own is not None  # noqa: S101 - `_append` opened it
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._own.write(rest) :]
        except OSError:
            with suppress(OSError):  # half a line would spoil the next
                self._own.seek(self._end)
                self._own.truncate()
            raise
        self._end += len(data)

    def _number(self, name: str) -> int:
        self._paths.append(name)
        number = len(self._paths) - 1
        self._read[name] = number, 0
        return number

    def _noted(self, path: Path, number: int, place: int) -> int:
        """Note the keys of the whole lines from a place on; return the place up to which it got."""
        with path.open("rb") as file:  # opening asks a network's server anew what is there
            if place == 0:
                head = file.readline(80)
                if not head.endswith(b"\n"):
                    return 0  # it is just being made
                if head != _HEAD:
                    newer = head.startswith(_HEAD_WORD)
                    raise JournalError(f"{path}: was made by a newer ragstone; upgrade this one, or name another folder"
                                       if newer else f"{path}: is none of a journal's files; move it away")  # fmt: skip
                place = len(head)
            file.seek(place)
            rest = b""
            while block := file.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    with suppress(ValueError):  # damaged: it is judged again
                        self._index.setdefault(
                            bytes.fromhex(line[:_KEY].decode("ascii")), number << _OFFSET_BITS | place
                        )
                    place += len(line) + 1
        return place

    def _full(self, error: OSError) -> str:
        return (
            f"{self.folder}: cannot be written to ({error}); what was kept before is safe: make room, run again, and "
            "it goes on from there"
        )
