"""A result file: one JSON line per sample and metric, written by `score`, read by `explain`."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import click
from pydantic import TypeAdapter

from ragstone.batch import BadLine, Row, Scored
from ragstone.outcome import Outcome, Score, Unscored

_FORMS: Mapping[str, TypeAdapter[Outcome]] = {"scored": TypeAdapter(Score), "unscored": TypeAdapter(Unscored)}


class Result(NamedTuple):
    """One line of a result file."""

    id: str
    line: int
    outcome: Outcome


def result_line(row: Row, outcome: Outcome) -> str:
    """Return the line for an outcome: id and line of its sample, "scored" or "unscored", and all its fields."""
    status = "scored" if isinstance(outcome, Score) else "unscored"
    head = {"id": row.sample.id, "line": row.line, "status": status}
    return json.dumps(head | outcome.model_dump(), ensure_ascii=False) + "\n"


def read_results(lines: Iterable[bytes]) -> Iterator[Result | BadLine]:
    """Yield the results of a file; a `BadLine` for a line that is none, such as the last one of a killed run."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            status, sample_id, at = value.pop("status"), value.pop("id"), value.pop("line")
            yield Result(sample_id, at, _FORMS[status].validate_python(value))
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            yield BadLine(number, "is no line that `ragstone score --out` writes")


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
        text = "".join(result_line(scored.row, outcome) for outcome in scored.outcomes)
        # A half character in an error's message cannot be encoded; its escape is good JSON.
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
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
