"""Files that hold an app's texts: new ones are readable by their owner alone, whatever the umask."""

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


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
    """Open a file for writing that takes its place when all is written: half of one never stands in for it.

    A new file is its owner's alone; one that exists passes its mode on.
    """
    if path.exists() and not path.is_file():  # such as /dev/stdout
        with path.open("wb") as target:
            yield target
        return
    path = path.resolve()  # what a link leads to is replaced, not the link
    part = path.with_name(f"{path.name[:200]}.{secrets.token_hex(6)}.part")  # another process may write the same file
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
            os.link(unnamed, target)  # fails where another was quicker, or where a disk has no links, and no modes
        finally:
            unnamed.unlink()


def make_private_folder(path: Path) -> None:
    """Make a folder, and the folders above it that do not exist, each with mode 0700.

    A folder that exists keeps its mode.

    Raises:
        OSError: It cannot be made.
    """
    if path.parent != path and not path.parent.is_dir():
        make_private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def explain(path: Path, problem: str, example: str) -> str:
    """Return why a file cannot be opened or written, and what to do.

    Args:
        path: The file.
        problem: What the system says.
        example: A usual name for such a file.

    Example:
        >>> print(explain(Path("/no/such/folder/ragstone.db"), "unable to open", "ragstone.db"))
        no folder /no/such/folder; create it, or name another file
    """
    with suppress(OSError):  # a folder above it may not be entered
        if path.is_dir():
            return f"is a folder; name a file in it, such as {path / example}"
        if not path.parent.is_dir():
            return f"no folder {path.parent}; create it, or name another file"
    return f"{problem}; check that this process may write to the file and its folder, and that the disk has room"


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
