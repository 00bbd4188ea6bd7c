"""Files that hold an app's texts: new ones are readable by their owner alone, whatever the umask."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

_making = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release)


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


def make_private(path: Path) -> None:
    """Make an empty file with mode 0600, for SQLite to open; its -wal and -shm files get the same mode.

    A file that exists stays as it is. Where none can be made, SQLite will say why.
    """
    # Closing a database's file frees all locks that this process holds on it. So only a new file is opened, and no
    # other thread connects to it before it is closed.
    with _making, suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def make_private_folder(path: Path) -> None:
    """Make a folder, and the folders above it that do not exist, each with mode 0700.

    A folder that exists keeps its mode.

    Raises:
        OSError: It cannot be made.
    """
    if path.parent != path and not path.parent.is_dir():
        make_private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
