"""Files of one user and, while they are locked, of one process: new ones are readable by their owner alone."""

import os
import re
import secrets
import stat
import sys
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

_NAME = re.compile(r"\d+-[0-9a-f]{12}")

if sys.platform == "win32":
    import msvcrt

    def lock_file(file: int) -> bool:
        """Lock an open file; False if another process has locked it."""
        # No other process can read a locked byte: it is one that is far away.
        os.lseek(file, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def lock_file(file: int) -> bool:
        """Lock an open file; False if another process has locked it.

        Raises:
            OSError: The disk has no locks, as some network disks have none.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True


def open_private(path: str | os.PathLike[str], mode: str, *, buffering: int = -1) -> IO[Any]:
    """Open a file as `open` does. A new file gets mode 0600; a file that exists keeps its mode.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open_private(Path(folder) / "a.txt", "wb") as file:
        ...         oct(os.fstat(file.fileno()).st_mode & 0o777)
        '0o600'
    """
    return open(path, mode, buffering=buffering, opener=_owner_only)


@contextmanager
def replacing(path: Path) -> Generator[IO[bytes], None, None]:
    """Open a file for writing that replaces the one of that name when all is written: nobody ever sees a part of it.

    A new file is its owner's alone; one that exists passes its mode on.
    """
    # Nothing replaces /dev/stdout.
    if path.exists() and not path.is_file():
        with path.open("wb") as target:
            yield target
        return
    # What a link leads to is replaced, not the link.
    path = path.resolve()
    # Another process may write the same file.
    part = path.with_name(f"{path.name[:200]}.{secrets.token_hex(6)}.part")
    try:
        with open_private(part, "xb") as target:
            yield target
        with suppress(OSError):
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def make_private(path: Path) -> None:
    """Make an empty file with mode 0600, for SQLite to open; its -wal and -shm files get the same mode.

    A file that exists stays as it is. Where none can be made, SQLite will say why.
    """
    target = Path(os.path.realpath(path))
    # Closing a database's file frees all locks that this process has on it, such as those of another thread. So the
    # file is closed before it gets its name.
    unnamed = target.with_name(f".ragstone-{secrets.token_hex(6)}")
    with suppress(OSError):
        if target.exists():
            return
        os.close(os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            # This fails where another was quicker, or where a disk has no links, and no modes.
            os.link(unnamed, target)
        finally:
            unnamed.unlink()


def file_problem(path: Path, problem: str) -> str:
    """Why a file cannot be opened or written, and what to do.

    Args:
        path: The file.
        problem: What the system says.

    Example:
        >>> print(file_problem(Path("/no/such/folder/ragstone.db"), "unable to open"))
        no folder /no/such/folder; create it, or name another file
    """
    # A folder above it may be closed to this user.
    with suppress(OSError):
        if path.is_dir():
            return f"is a folder; name a file in it, such as {path / 'ragstone.db'}"
        if not path.parent.is_dir():
            return f"no folder {path.parent}; create it, or name another file"
    return f"{problem}; check that this process may write to the file and its folder, and that the disk has room"


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class FileLock:
    """A file that one process holds locked, which the operating system ends however the process does.

    Args:
        path: The file. It is made, and removed when the lock is closed.
        text: What it says to others that find it locked.

    Attributes:
        pid: The process that holds it. A forked child does not.

    Raises:
        BlockingIOError: It is locked, also by another object in this process; the message is what it says.
        OSError: It cannot be made, or its disk has no locks.
    """

    def __init__(self, path: Path, text: str = "") -> None:
        self.pid = os.getpid()
        self._file = _open_locked(path)
        self._unlock = weakref.finalize(self, _unlock, self._file, path, self.pid)
        _LOCKS.add(self)
        # A process that was killed left its text.
        os.ftruncate(self._file, 0)
        os.write(self._file, text.encode())

    @property
    def closed(self) -> bool:
        """Whether it is not, or no longer, this process's."""
        return not self._unlock.alive or self.pid != os.getpid()

    def close(self) -> None:
        """End the lock."""
        self._unlock()

    def disown(self) -> None:
        """Close the file, which is the parent process's, in a forked child; the lock stays the parent's."""
        if self._unlock.detach() is not None:
            os.close(self._file)


def _open_locked(path: Path, tries: int = 100) -> int:
    """Make a file and lock it. Another process may remove it in between: its own, or a dead one's."""
    said = ""
    for _ in range(tries):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not lock_file(file):
                said = os.read(file, 1_000).decode(errors="replace")
            elif os.path.samestat(os.fstat(file), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(file)
            raise OSError(f"{path}: cannot be locked ({error}); use a local disk for the file beside it") from error
        os.close(file)
    raise BlockingIOError(said)


def _unlock(file: int, path: Path, pid: int) -> None:
    if pid != os.getpid():
        return
    # Windows removes no open file. Elsewhere it is closed last: whoever locked it in between would hold one that is
    # gone.
    if sys.platform == "win32":
        os.close(file)
    with suppress(OSError):
        path.unlink()
    if sys.platform != "win32":
        os.close(file)


_LOCKS: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def _disown_all() -> None:
    for lock in list(_LOCKS):
        lock.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)


class Lease:
    """A process's name on the rows that it works on. Others can see whether the work is still its own.

    The name is that of a file which the process holds locked. The operating system frees the lock however the
    process ends, so no process numbers are asked.

    Args:
        path: The file whose rows they are; the files of all leases lie beside it.

    Attributes:
        name: The name. A forked child needs a lease of its own.

    Raises:
        OSError: The file cannot be made, or its disk has no locks.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._beside = path
        self._lock = FileLock(self._path(self.name))

    def others(self) -> set[str]:
        """The names of the other leases of which there are files."""
        start = self._path("").name
        with suppress(OSError):
            names = {path.name.removeprefix(start) for path in self._beside.parent.iterdir()}
            return {name for name in names if _NAME.fullmatch(name)} - {self.name}
        return set()

    def lives(self, name: str) -> bool:
        """Whether a lease still holds; the file of a process that has ended is removed."""
        # What is no name of ours may be the path of something else.
        if not _NAME.fullmatch(name):
            return False
        path = self._path(name)
        try:
            file = _open_locked(path, tries=1)
        except OSError:
            # Locked; or another user's, or no more files can be opened: to take its work would have it done twice.
            return True
        _unlock(file, path, os.getpid())
        return False

    def close(self) -> None:
        """End the lease, and remove the files of processes that were killed."""
        if not self._lock.closed:
            for name in self.others():
                self.lives(name)
        self._lock.close()

    def _path(self, name: str) -> Path:
        return self._beside.with_name(f"{self._beside.name}.owner-{name}")
