"""What commands print and write, also to a closed pipe."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from ragstone.cli.options import NotThere
from ragstone.outcome import Outcome, Unscored
from ragstone.reporting.tables import outcome_lines
from ragstone.sample import Sample
from ragstone.store.private_files import replacing
from ragstone.store.record import Record
from ragstone.text.plain import printable

_CLOSED = (errno.EPIPE, errno.EBADF)  # the reader has gone (`| head`); closed from the start (`>&-`)
_WIDTH = 100
_LONGEST = 2_000


def open_standard_streams() -> None:
    """Open /dev/null for each standard stream that the process was started without.

    Otherwise the next file that is opened would take the stream's place. Standard output is opened for reading alone,
    so that writing to it fails: what a command was asked for is not lost without a word.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False))


def echo(text: str, *, err: bool = False, needed: bool = True) -> None:
    """Print a line."""
    try:
        click.echo(text, err=err)
    except OSError as error:
        if needed or error.errno not in _CLOSED:
            raise
        discard(sys.stderr if err else sys.stdout)


def discard(stream: TextIO) -> None:
    """Send what is still buffered, and what comes, nowhere: the interpreter would complain of it at exit."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:  # it is no file
        os.dup2(nowhere.fileno(), stream.fileno())


def write_page(option: str, path: str, text: str) -> None:
    """Write a page to a file; "-" is standard output."""
    if path == "-":
        sys.stdout.buffer.write(text.encode())
        return
    try:
        with replacing(Path(path)) as target:
            target.write(text.encode())
    except OSError as error:
        raise NotThere(f"{option} {path}: cannot write: {error.strerror}") from None


def sample_lines(sample: Sample, *, contexts: bool = True) -> Iterator[str]:
    """Yield a sample's texts as lines; of one that is kept without texts, none."""
    for turn in sample.history:
        yield f"{turn.role}: {printable(turn.content, _LONGEST)}"
    if sample.user_input:
        yield f"question: {printable(sample.user_input, _LONGEST)}"
    for number, text in enumerate(sample.retrieved_contexts if contexts else ()):
        yield f"context {number}: {printable(text, _LONGEST)}"
    if sample.response:
        yield f"response: {printable(sample.response, _LONGEST)}"


def evidence_lines(sample_id: str, outcome: Outcome, *, full: bool = True) -> Iterator[str]:
    """Yield an outcome as lines: the number, why, and each verdict with the passages that it points to.

    Where it is not `full`, only the verdicts that lowered the score, without places.
    """
    first, *rest = outcome_lines(outcome, full=full, style=coloured)
    yield f"{printable(sample_id, _WIDTH)}  {first}"
    yield from rest


def brief(record: Record) -> str:
    """Return a metric and its score."""
    outcome = record.outcome
    return f"{outcome.metric} {'unscored' if isinstance(outcome, Unscored) else f'{outcome.value:.2f}'}"


def coloured(text: str, **style: Any) -> str:  # noqa: ANN401 - click's
    """Return a text in a colour, which a stream that is no terminal is not sent; none where NO_COLOR is set."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)
