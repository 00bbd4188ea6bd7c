"""Who of several processes works on a row of the outbox, and whether that process still lives."""

import os
import re
import secrets
import weakref
from contextlib import suppress
from pathlib import Path

from ragstone.store.file_lock import try_lock
from ragstone.store.private_files import make_private_folder

_NAME = re.compile(r"\d+-[0-9a-f]{12}")
_TRIES = 10


class Owner:
    """A process's name in the outbox. Other processes can tell that it lives as long as the process does.

    The name is that of a file which the process holds locked. The operating system frees the lock however the
    process ends, so neither clocks nor process numbers are asked.

    Args:
        folder: Where the files of all owners lie.

    Attributes:
        name: The name.
    """

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._path = folder / self.name
        self._file: int | None = self._taken()
        if hasattr(os, "register_at_fork"):
            reference: weakref.ref[Owner] = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _forget(reference))  # a child would hold the lock, too

    def others(self) -> set[str]:
        """Return the names of which there are files, but for this one."""
        with suppress(OSError):
            return {path.name for path in self._path.parent.iterdir() if _NAME.fullmatch(path.name)} - {self.name}
        return set()

    def lives(self, other: str) -> bool:
        """Return whether another owner's process still runs; forget its file if it does not."""
        if not _NAME.fullmatch(other):  # not ours, and perhaps the path of something else
            return False
        path = self._path.parent / other
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:  # another user's, or no more files can be opened: to take its work would have it done twice
            return True
        try:
            if not _lock(file):
                return True
            with suppress(OSError):
                path.unlink()  # while it is locked: one that was just made is then made again
        finally:
            os.close(file)
        return False

    def close(self) -> None:
        """Let go of the name."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            with suppress(OSError):
                self._path.unlink()

    def forget(self) -> None:
        """Let go of a lock that is the parent process's, in a forked child."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _taken(self) -> int:
        """Make the file and lock it. Another process may take it for a dead one's in between, and delete it."""
        for _ in range(_TRIES):
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if _lock(file) and _is_at(file, self._path):
                return file
            os.close(file)
        raise OSError(f"{self._path}: cannot be locked; put the outbox on a disk of this machine")


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _forget(reference: "weakref.ref[Owner]") -> None:
    owner = reference()
    if owner is not None:
        owner.forget()


def _lock(file: int) -> bool:
    try:
        return try_lock(file)
    except OSError:
        return False
