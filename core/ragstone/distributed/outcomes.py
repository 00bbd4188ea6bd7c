"""The journal of a run on many machines: one folder, in it one file for each worker's process.

Each process appends to its own file and reads all. Nobody locks anything and no file has two writers, which is what
network file systems can be trusted with; SQLite's locks and its memory shared between processes are not. A line is a
record whose id is the outcome's key. A process that is killed leaves at worst a last line without its end, which
readers pass over.
"""

import os
import secrets
import socket
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ragstone.outcome import Outcome
from ragstone.store.journal import JournalError
from ragstone.store.private_files import make_private_folder, open_private
from ragstone.store.record import Record, decode, encode, is_final

_SUFFIX = ".outcomes"
_HEAD = b'{"id":"'
_KEY = slice(len(_HEAD), len(_HEAD) + 32)


class SharedOutcomes:
    """Outcomes by key, of all processes that use the folder. Any thread may use it.

    What is put has left the process when `put_outcome` returns: a `kill -9` loses none of it. What others put is seen
    from the next `refresh`. In memory are only the keys, some 250 bytes each.

    Args:
        folder: Made if need be; on a disk that all workers reach.

    Raises:
        JournalError: The folder cannot be made or read.

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
        self._places: dict[bytes, tuple[Path, int]] = {}  # by key: its file, and where its line begins there
        self._read: dict[Path, int] = {}  # how far each file was read
        self._own: IO[bytes] | None = None
        self._own_path = self.folder
        self._end = 0
        try:
            make_private_folder(self.folder)
        except OSError as error:
            raise JournalError(
                f"{self.folder}: cannot be created ({error}); name a folder that all workers can reach"
            ) from error

    def refresh(self) -> None:
        """Take note of what other processes put since the last time.

        Raises:
            JournalError: The folder or a file of it cannot be read.
        """
        with self._lock:
            try:
                for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
                    if path == self._own_path:
                        continue
                    place = self._read.get(path, 0)
                    with path.open("rb") as file:  # opening asks a network's server anew what is there
                        file.seek(place)
                        for line in file:
                            if line.endswith(b"\n"):  # else it is just being written, or never will be
                                self._note(line, path, place)
                                place += len(line)
                    self._read[path] = place
            except OSError as error:
                raise JournalError(f"{self.folder}: cannot be read ({error})") from error

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome that was put under the key; None where there is none, or where it is damaged.

        Raises:
            JournalError: The file with it cannot be read.
        """
        with self._lock:
            if (known := self._places.get(bytes.fromhex(key))) is None:
                return None
        path, place = known
        try:
            with path.open("rb") as file:
                file.seek(place)
                return decode(file.readline()).outcome
        except OSError as error:
            raise JournalError(f"{path}: can no longer be read ({error})") from error
        except ValueError:
            return None  # asked again, and kept again

    def put_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, unless it is one that a later run should ask for again (`Journal.put_outcome`).

        Raises:
            JournalError: It cannot be written; what was put before is safe.
        """
        if not is_final(outcome):
            return
        line = f"{encode(Record(key, outcome))}\n".encode()
        with self._lock, self._explained():
            if self._own is None:
                name = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
                self._own_path, self._end = self.folder / name, 0
                self._own = open_private(self._own_path, "xb", buffering=0)
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[self._own.write(rest) :]
            except OSError:
                self.close()  # half a line ends this file; the next outcome begins another
                raise
            self._places[bytes.fromhex(key)] = self._own_path, self._end
            self._end += len(line)

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Return the keys of outcomes that are not there: workers are sent rows of their own."""
        return {key for key in keys if self.outcome(key) is None}

    def release(self, keys: Iterable[str]) -> None:
        """Do nothing: no process waits for a claim."""

    def flush(self) -> None:
        """Bring what was put to the disk: what a machine that loses its power has before this may be missing.

        Raises:
            JournalError: It cannot be written.
        """
        with self._lock, self._explained():
            if self._own is not None:
                os.fsync(self._own.fileno())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._own is not None:
                self._own.close()
                self._own = None

    def _note(self, line: bytes, path: Path, place: int) -> None:
        with suppress(ValueError):  # damaged: it is judged again
            if line.startswith(_HEAD):
                self._places.setdefault(bytes.fromhex(line[_KEY].decode("ascii")), (path, place))

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            raise JournalError(
                f"{self.folder}: cannot be written to ({error}); earlier results are safe: free space and run again"
            ) from error
