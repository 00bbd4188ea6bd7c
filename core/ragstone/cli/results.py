"""A result file: one JSON line per sample and metric."""

import contextlib
import os
import sys
from pathlib import Path
from typing import IO

import click

from ragstone.batch.report.lines import encoded, result_line
from ragstone.batch.runner import Scored


class Results:
    """Writes outcomes; each sample's lines are handed over whole before the next sample is taken up.

    Args:
        target: Where the lines go.
        name: What --out was given, for messages.
    """

    def __init__(self, target: IO[bytes], name: str) -> None:
        self._target = target
        self._name = name

    def write(self, scored: Scored) -> None:
        """Write a line for each outcome.

        Raises:
            ResultsLost: They cannot be written.
            BrokenPipeError: Nobody reads standard output any more.
        """
        text = "".join(map(result_line, scored.results))
        rest = memoryview(encoded(text))
        try:
            while rest:
                rest = rest[self._target.write(rest) :]
            self._target.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ResultsLost(f"--out {self._name}: cannot write: {error.strerror}") from error


class ResultsLost(click.ClickException):
    """The results cannot be written; the run has to end."""

    exit_code = 2


def open_results(out: str, file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open what --out names, for writing; standard output for "-".

    Raises:
        click.UsageError: It cannot be written, or is the file that the samples are read from.
    """
    if out == "-":
        return contextlib.nullcontext(sys.stdout.buffer)
    try:
        if Path(out).exists() and _is_input(out, file):
            raise click.UsageError(f"--out {out}: is the input itself")
        return Path(out).open("wb", buffering=0)  # unbuffered: what is written is on its way to the disk
    except OSError as error:
        raise click.UsageError(f"--out {out}: {error.strerror}") from None


def _is_input(out: str, file: str) -> bool:
    if file != "-":
        return Path(out).samefile(file)
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), Path(out).stat())
    except (OSError, ValueError):  # standard input is closed, or no file
        return False
