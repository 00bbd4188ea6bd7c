"""What a command prints, and what becomes of it where nobody reads it."""

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import TextIO

import click

CLOSED = (errno.EPIPE, errno.EBADF)
"""How writing fails where the reader has gone (`| head`), and where the stream was closed from the start (`>&-`)."""


def open_standard_streams() -> None:
    """Open /dev/null for each standard stream that the process was started without.

    Otherwise the next file that is opened would take the stream's place. Standard output is opened for reading alone,
    so that writing to it fails: what a command was asked for is not lost without a word.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False))


def echo(text: str, *, err: bool = False, needed: bool = True) -> None:
    """Print a line.

    Args:
        text: The line.
        err: Whether it goes to standard error.
        needed: Whether a stream that is closed ends the command. Otherwise nothing more is printed to it.

    Raises:
        OSError: It cannot be printed.
    """
    try:
        click.echo(text, err=err)
    except OSError as error:
        if needed or error.errno not in CLOSED:
            raise
        discard(sys.stderr if err else sys.stdout)


def discard(stream: TextIO) -> None:
    """Send what is still buffered, and what comes, nowhere: the interpreter would complain of it at exit."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:  # it is no file
        os.dup2(nowhere.fileno(), stream.fileno())
