"""A result file: one JSON line per sample and metric, written by one process at a time."""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path
from typing import IO

import click

from ragstone.batch.runner import Scored
from ragstone.store.file_lock import try_lock
from ragstone.store.record import encode

_BINARY = getattr(os, "O_BINARY", 0)


class Results:
    """Writes outcomes; each sample's lines are handed over whole before the next sample is taken up.

    The file is locked from now on, so that no other process writes to it. What was in it is gone when there is a first
    outcome to write; where there is none, no new file is left.

    Args:
        out: What --out names: a file, or "-" for standard output.
        stack: Closes the file.

    Raises:
        ResultsLost: Another process is writing to the file, or it cannot be opened.
    """

    def __init__(self, out: str, stack: contextlib.ExitStack) -> None:
        self._out = out
        self._stack = stack
        self._target: IO[bytes] | None = None
        self._locked: int | None = None
        if out != "-":
            try:
                self._locked = stack.enter_context(_locked(out))
            except OSError as error:
                raise self._lost(error) from error

    def write(self, scored: Scored) -> None:
        """Write a line for each outcome.

        Raises:
            ResultsLost: They cannot be written.
            BrokenPipeError: Nobody reads standard output any more.
        """
        rest = memoryview("".join(f"{encode(result)}\n" for result in scored.records).encode())
        try:
            target = self._opened()
            while rest:
                rest = rest[target.write(rest) :]
            target.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._lost(error) from error

    def _opened(self) -> IO[bytes]:
        if self._target is None:
            self._target = self._stack.enter_context(self._open())
        return self._target

    def _open(self) -> contextlib.AbstractContextManager[IO[bytes]]:
        if self._out == "-":
            return contextlib.nullcontext(sys.stdout.buffer)
        # Unbuffered: what is written is on its way to the disk.
        if self._locked is None:
            return Path(self._out).open("wb", buffering=0)
        os.ftruncate(self._locked, 0)
        return os.fdopen(self._locked, "wb", buffering=0, closefd=False)

    def _lost(self, error: OSError) -> "ResultsLost":
        return ResultsLost(f"--out {self._out}: cannot write: {error.strerror}")


class ResultsLost(click.ClickException):
    """The results cannot be written; the run has to end."""

    exit_code = 2


@contextlib.contextmanager
def _locked(out: str) -> Generator[int | None, None, None]:
    """Lock a file until the block ends or the process does; None for a pipe or a device, which is not opened."""
    path = Path(os.path.realpath(out))  # of what a link leads to
    opened = _opened(path)
    if opened is None:
        yield None
        return
    file, new = opened
    try:
        yield file
    finally:
        if new and os.fstat(file).st_size == 0:
            with contextlib.suppress(OSError):
                path.unlink()
        os.close(file)


def _opened(path: Path) -> tuple[int, bool] | None:
    """Return the file, locked, and whether it is new."""
    while True:
        try:
            file, new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), True
        except FileExistsError:
            try:
                if not stat.S_ISREG(path.stat().st_mode):
                    return None
                file, new = os.open(path, os.O_WRONLY | _BINARY), False
            except FileNotFoundError:  # its owner has just removed it
                continue
        if not _lock(file):
            os.close(file)
            raise BlockingIOError(errno.EAGAIN, "another process is writing to it; wait for it, or name another file")
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file, new
        os.close(file)


def _lock(file: int) -> bool:
    try:
        return try_lock(file)
    except OSError:  # some network disks have no locks
        return True
