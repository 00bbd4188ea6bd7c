"""The files that a command line names: none that is written is another one of them, and each can be written."""

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import click

Named = tuple[str, str | None]
"""What a file is called in messages, such as "--out", and its path, if one was given."""


def check_apart(written: Sequence[Named], read: Sequence[Named]) -> None:
    """See to it, before any is opened, that no file is written that the command reads, or writes for something else.

    Args:
        written: By option. Standard output is none of them.
        read: By option or argument; "-" is standard input.

    Raises:
        click.UsageError: Names both.

    Example:
        >>> check_apart([("--out", "a.jsonl"), ("--report", "b/../a.jsonl")], [])
        Traceback (most recent call last):
        click.exceptions.UsageError: --report b/../a.jsonl: is --out a.jsonl itself; name another file
    """
    others = [(name, path, _identity(path)) for name, path in read if path]
    for option, path in written:
        if path is None:
            continue
        if path == "-":
            raise click.UsageError(f"{option} -: does not go to standard output; name a file")
        found = _identity(path)
        for name, other, its_identity in others:
            if found is not None and found == its_identity:
                shown = f"{name} {other}" if name.startswith("--") else name
                raise click.UsageError(f"{option} {path}: is {shown} itself; name another file")
        others.append((option, path, found))


def check_writable(option: str, path: str, *, replaced: bool = False) -> None:
    """See to it, before anything is spent, that a file can be written; what is in it stays.

    Args:
        option: How the option is written.
        path: What it was given.
        replaced: Whether a new file takes the old one's place, so that it is the folder that has to be writable.

    Raises:
        click.UsageError: It cannot.
    """
    try:
        problem = _problem(path, replaced=replaced)
    except OSError as error:
        problem = error.strerror
    if problem is not None:
        raise click.UsageError(f"{option} {path}: {problem}")


def database_file(name: str) -> str | None:
    """Return the file of a database that is named by its path or its URL; None where it is on a server.

    Example:
        >>> [database_file(name) for name in ("a.db", "sqlite:////tmp/a.db?timeout=5", "postgresql://me@host/a")]
        ['a.db', '/tmp/a.db', None]
    """
    scheme, url, rest = name.partition("://")
    if not url:
        return name
    return rest.partition("?")[0].removeprefix("/") or None if scheme.startswith("sqlite") else None


def _identity(path: str) -> tuple[int, int] | str | None:
    """Return what tells a file from others: its place, where it is not there yet; None for pipes and devices."""
    try:
        found = os.fstat(sys.stdin.fileno()) if path == "-" else Path(path).stat()
    except (OSError, ValueError):  # standard input may be closed, or no file
        return None if path == "-" else os.path.realpath(path)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _problem(path: str, *, replaced: bool) -> str | None:
    target = Path(path)
    if target.is_dir():
        return "is a folder; name a file in it"
    if target.exists() and not (replaced and target.is_file()):
        return None if os.access(target, os.W_OK) else "cannot be written to; name another file"
    folder = Path(os.path.realpath(path)).parent  # of what a link leads to
    if not folder.is_dir():
        return f"no such folder: {folder}; make it, or name another file"
    return (
        None
        if os.access(folder, os.W_OK | os.X_OK)
        else f"the folder {folder} cannot be written to; name a file elsewhere"
    )
