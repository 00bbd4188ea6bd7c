"""A results file that is written while a run goes on, by one process at a time."""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ragstone.cli.options import NotThere
from ragstone.plain import to_json
from ragstone.store.file_lock import try_lock
from ragstone.store.record import Record, encode

_BINARY = getattr(os, "O_BINARY", 0)


class ResultsFile:
    """Writes records; each sample's lines are handed over whole before the next sample is taken up.

    The file is locked from now on. What was in it is gone when there is a first record to write; where there is none,
    no new file is left.

    Args:
        out: What --out names: a file, or "-" for standard output, which gets no first line.
        head: What the first line says of the run.
        stack: Closes the file.
        texts: Whether the samples' texts are written.

    Raises:
        NotThere: Another process is writing to the file, or it cannot be opened.
    """

    def __init__(self, out: str, head: Mapping[str, object], stack: contextlib.ExitStack, *, texts: bool) -> None:
        self._out, self._head, self._stack, self._texts = out, head, stack, texts
        self._target: IO[bytes] | None = None
        self._locked: int | None = None
        if out != "-":
            try:
                self._locked = stack.enter_context(_locked(out))
            except OSError as error:
                raise self.lost(error) from error

    def write(self, records: Sequence[Record]) -> None:
        """Write a line for each record."""
        text = "".join(f"{encode(record, texts=self._texts)}\n" for record in records)
        if self._target is None:
            self._target = self._stack.enter_context(self._open())
            text = text if self._out == "-" else f"{to_json(self._head)}\n{text}"
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        while rest:
            rest = rest[self._target.write(rest) :]
        self._target.flush()

    def lost(self, error: OSError) -> NotThere:
        """Return what to say of a file that cannot be written."""
        return NotThere(f"--out {self._out}: cannot write: {error.strerror}")

    def _open(self) -> contextlib.AbstractContextManager[IO[bytes]]:
        if self._out == "-":
            return contextlib.nullcontext(sys.stdout.buffer)
        if self._locked is None:
            return Path(self._out).open("wb", buffering=0)  # unbuffered: what is written is on its way to the disk
        os.ftruncate(self._locked, 0)
        return os.fdopen(self._locked, "wb", buffering=0, closefd=False)


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
        locked = True
        with contextlib.suppress(OSError):  # some network disks have no locks
            locked = try_lock(file)
        if not locked:
            os.close(file)
            raise BlockingIOError(errno.EAGAIN, "another process is writing to it; wait for it, or name another file")
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file, new
        os.close(file)
