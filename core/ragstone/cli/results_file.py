"""The results file that a run writes."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from ragstone.cli.options import NotThere
from ragstone.plain import to_json
from ragstone.store.lease import lock_file
from ragstone.store.private_files import open_private
from ragstone.store.record import Record, encode


class ResultsFile:
    """A results file that is written while a run goes on, by one process at a time: it is locked from now on.

    What was in it is gone when there is a first record to write; where there is none, no new file is left.

    Args:
        out: What --out names: a file, or "-" for standard output, which gets no first line. None: a new file in the
            current folder, named by date and time.
        head: What the first line says of the run.
        texts: Whether the samples' texts are written.

    Raises:
        NotThere: Another process is writing to the file, or it cannot be opened.
    """

    def __init__(self, out: str | None, head: Mapping[str, object], *, texts: bool) -> None:
        self._head, self._texts = head, texts
        self.begun = self._new = False
        self.named = out is not None
        self.out = out or "ragstone-results.jsonl"  # for messages, until it has its name
        if out == "-":
            self._file: IO[bytes] = sys.stdout.buffer
            return
        try:
            if out is None:
                self._file, self.out, self._new = *_new_file(), True
            self._path = Path(os.path.realpath(self.out))  # what a link leads to
            if out is not None:
                self._new = not self._path.exists()
                self._file = open_private(self._path, "ab", buffering=0)  # what is written is on its way to the disk
            if self._path.is_file() and not self._lock():  # several may write to a pipe or a device
                self._file.close()
                raise NotThere(
                    f"--out {out}: cannot write: another process is writing to it; wait for it, or name another file"
                )
        except OSError as error:
            raise self.lost(error) from error

    def _lock(self) -> bool:
        try:
            return lock_file(self._file.fileno()) and self._path.exists()  # else its owner has just removed it
        except OSError:  # some network disks have no locks
            return True

    def write(self, records: Sequence[Record]) -> None:
        """Write a line for each record: a sample's lines are handed over whole before the next sample is taken up."""
        text = "".join(f"{encode(record, texts=self._texts)}\n" for record in records)
        if not self.begun and self.out != "-":
            text = f"{to_json(self._head)}\n{text}"
            if self._path.is_file():
                self._file.truncate(0)
        self.begun = True
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        while rest:
            rest = rest[self._file.write(rest) :]
        self._file.flush()

    def lost(self, error: OSError) -> NotThere:
        """Return what to say of a file that cannot be written."""
        return NotThere(f"{'--out ' * self.named}{self.out}: cannot write: {error.strerror}")

    def close(self) -> None:
        """Let go of the file."""
        if self.out == "-":
            return
        if self._new and not self.begun:
            self._path.unlink(missing_ok=True)
        self._file.close()


def _new_file() -> tuple[IO[bytes], str]:
    stem = time.strftime("ragstone-results-%Y%m%d-%H%M%S")
    number = 1
    while True:
        name = f"{stem}{f'-{number}' * (number > 1)}.jsonl"
        try:
            return open_private(name, "xb", buffering=0), name
        except FileExistsError:
            number += 1
