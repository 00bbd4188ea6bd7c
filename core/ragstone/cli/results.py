"""A result file: one JSON line per sample and metric."""

import contextlib
import sys
from pathlib import Path
from typing import IO

import click

from ragstone.batch.report.lines import encoded, result_line
from ragstone.batch.runner import Scored


class Results:
    """Writes outcomes; each sample's lines are handed over whole before the next sample is taken up.

    The file is opened, and what was in it is gone, when there is a first outcome to write.

    Args:
        out: What --out names: a file, or "-" for standard output.
        stack: Closes the file.
    """

    def __init__(self, out: str, stack: contextlib.ExitStack) -> None:
        self._out = out
        self._stack = stack
        self._target: IO[bytes] | None = None

    def write(self, scored: Scored) -> None:
        """Write a line for each outcome.

        Raises:
            ResultsLost: They cannot be written.
            BrokenPipeError: Nobody reads standard output any more.
        """
        text = "".join(map(result_line, scored.results))
        rest = memoryview(encoded(text))
        try:
            target = self._opened()
            while rest:
                rest = rest[target.write(rest) :]
            target.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ResultsLost(f"--out {self._out}: cannot write: {error.strerror}") from error

    def _opened(self) -> IO[bytes]:
        if self._target is None:
            self._target = self._stack.enter_context(_open(self._out))
        return self._target


class ResultsLost(click.ClickException):
    """The results cannot be written; the run has to end."""

    exit_code = 2


def _open(out: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if out == "-":
        return contextlib.nullcontext(sys.stdout.buffer)
    return Path(out).open("wb", buffering=0)  # unbuffered: what is written is on its way to the disk
