"""The file of samples that a command reads: opened, measured, and its keys mapped to a sample's fields."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from ragstone.sources import SAMPLE_FIELDS

NAMING = "--field FIELD=KEY"
"""How messages say where a row's keys are named."""


def parse_fields(fields: Sequence[str]) -> dict[str, str]:
    """Return the row's key by the sample's field, as `--field FIELD=KEY` gives them.

    Raises:
        click.UsageError: One is not of that form, or names no field of a sample.

    Example:
        >>> parse_fields(["response=output"])
        {'response': 'output'}
    """
    return parse_keys("--field", "FIELD", fields, SAMPLE_FIELDS)


def parse_keys(option: str, word: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the row's key by name, as an option of the form NAME=KEY gives them.

    Args:
        option: How the option is written.
        word: What its help calls a name.
        texts: As they were given.
        names: Those that there are.

    Raises:
        click.UsageError: One is not of that form, or not one of the names.

    Example:
        >>> parse_keys("--map", "LABEL", ["score=human.score"], ["score"])
        {'score': 'human.score'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, key = text.partition("=")
        if not equals or not key or name not in names:
            raise click.UsageError(f"{option} {text}: write {word}=KEY, {word} one of {', '.join(names)}")
        found[name] = key
    return found


def open_input(file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open the file of samples; `-` is standard input, which stays open."""
    if file != "-":
        return Path(file).open("rb")
    try:
        # Not sys.stdin: a thread that waits in it for a line would abort the interpreter's exit.
        return contextlib.nullcontext(open(sys.stdin.fileno(), "rb", closefd=False))
    except (OSError, ValueError):  # it is no file, as in tests
        return contextlib.nullcontext(sys.stdin.buffer)


def count_lines(file: str) -> int | None:
    """Return the number of lines; None for what cannot be read twice."""
    if file == "-" or not Path(file).is_file():
        return None
    with Path(file).open("rb") as lines:
        return sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) or None
