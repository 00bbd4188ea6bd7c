"""What commands print and write, also to a closed pipe; the results file of a run."""

import contextlib
import errno
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

import click

from ragstone.cli.options import NotThere, unused
from ragstone.outcome import Outcome, Unscored, outcome_lines
from ragstone.plain import printable
from ragstone.results.private_files import lock_file, open_private, replacing
from ragstone.results.record import Record, encode_head, encode_rows
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.report.report import Report

# The reader has gone (`| head`), or the stream was closed from the start (`>&-`).
_CLOSED = (errno.EPIPE, errno.EBADF)
_WIDTH = 100
_OWN_COMMAND = r"\bragstone(?= (?:compare|correct|demo|doctor|explain|label|live|metrics|pull|report|score)\b)"
_LONGEST = 2_000


def called() -> str:
    """How this command was called, to be pasted before its subcommands."""
    typed = Path(sys.argv[0])
    if typed.parts[-2:] == ("ragstone", "__main__.py"):
        return f"{_python()} -m ragstone"
    if typed.stem != "ragstone" or _is_on_path("ragstone", typed.parent):
        return "uv run ragstone" if os.environ.get("UV_RUN_RECURSION_DEPTH") else "ragstone"
    return shlex.quote(_from_here(typed))


def pip_install() -> str:
    """The command that installs packages beside ragstone."""
    if find_spec("pip") is None and shutil.which("uv"):
        return "uv pip install" if os.environ.get("VIRTUAL_ENV") else f"uv pip install --python {_python()}"
    if _is_on_path("pip", Path(sys.executable).parent):
        return "pip install"
    return f"{_python()} -m pip install"


def as_called(message: str) -> str:
    """A message whose commands can be pasted."""
    message = message.replace("pip install", pip_install())
    return re.sub(_OWN_COMMAND, lambda _match: called(), message)


def _python() -> str:
    python = Path(sys.executable)
    return python.name if _is_on_path(python.name, python.parent) else shlex.quote(_from_here(python))


def _is_on_path(program: str, folder: Path) -> bool:
    """Whether a shell finds this folder's program by its name."""
    found = shutil.which(program)
    return found is not None and Path(found).parent.absolute() == folder.absolute()


def _from_here(path: Path) -> str:
    """A file's path, from the current folder where it is in that."""
    here, path = Path.cwd(), path.absolute()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def open_standard_streams() -> None:
    """Open /dev/null for each standard stream that the process was started without.

    Otherwise the next file that is opened would have the stream's number. Standard output is opened for reading alone,
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
    """Discard the buffer and later writes: the interpreter would complain at exit."""
    # A stream may be no file.
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
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
        raise NotThere(f"{option} {path}: cannot write: {_reason(error, path)}") from None


def check_shown(opened: bool, out: str) -> None:
    """Refuse --open where the page is no file."""
    if opened and out == "-":
        raise click.UsageError("--open: shows a file; name one for --out")


def _reason(error: OSError, path: str) -> str:
    folder = Path(path).parent
    return f"there is no folder {folder}; make it first" if not folder.exists() else str(error.strerror)


def sample_lines(sample: Sample, *, contexts: bool = True) -> Iterator[str]:
    """Yield a sample's texts as lines; of one that is kept without texts, none."""
    for turn in sample.history:
        yield f"{turn.role}: {printable(turn.content, _LONGEST)}"
    if sample.user_input:
        yield f"question: {printable(sample.user_input, _LONGEST)}"
    for number, text in enumerate(sample.retrieved_contexts if contexts else (), 1):
        yield f"context {number}: {printable(text, _LONGEST)}"
    if sample.response:
        yield f"response: {printable(sample.response, _LONGEST)}"


def evidence_lines(sample_id: str, outcome: Outcome, *, full: bool = True) -> Iterator[str]:
    """Yield an outcome as lines: the number, why, and each verdict with the passages that it points to.

    Where it is not `full`, only the verdicts that lowered the score, without positions.
    """
    first, *rest = outcome_lines(outcome, full=full, style=coloured)
    yield f"{printable(sample_id, _WIDTH)}  {first}"
    yield from rest


def brief(record: Record) -> str:
    """A metric and its score."""
    outcome = record.outcome
    return f"{outcome.metric} {'unscored' if isinstance(outcome, Unscored) else f'{outcome.value:.2f}'}"


def coloured(text: str, **style: Any) -> str:  # noqa: ANN401 - click's
    """A text in a colour, which a stream that is no terminal is not sent; none where NO_COLOR is set."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)


def new_name() -> str:
    """The name of a results file where none is given."""
    return unused(time.strftime("ragstone-results-%Y%m%d-%H%M%S.jsonl"))


class ResultsFile:
    """A results file that is written while a run goes on, by one process at a time: it is locked from now on.

    What was in it is gone when there is a first record to write; where there is none, no new file is left.

    Args:
        out: What --out names: a file, or "-" for standard output, which gets no first line. None: a new file in the
            current folder, named by date and time.
        info: The run, by the first line.
        texts: Whether the samples' texts are written.

    Raises:
        NotThere: Another process is writing to the file, or it cannot be opened.
    """

    def __init__(self, out: str | None, info: Mapping[str, object], *, texts: bool) -> None:
        self._info, self._texts = info, texts
        self.begun = self._new = False
        self.named = out is not None
        self.out = out or new_name()
        if out == "-":
            self._file: IO[bytes] = sys.stdout.buffer
            return
        # What a link leads to is written, not the link.
        self._path = Path(os.path.realpath(self.out))
        self._new = not self._path.exists()
        try:
            # Without a buffer, what is written is on its way to the disk.
            self._file = open_private(self._path, "ab", buffering=0)
        except OSError as error:
            raise self.lost(error) from error
        # Several may write to a pipe or a device.
        if self._path.is_file() and not self._lock():
            self._file.close()
            raise NotThere(
                f"--out {self.out}: cannot write: another process is writing to it; wait for it, or name another file"
            )

    def _lock(self) -> bool:
        try:
            # What is not there any more was removed by its owner just now.
            return lock_file(self._file.fileno()) and self._path.exists()
        except OSError:
            # Some network disks have no locks.
            return True

    def write(self, records: Sequence[Record]) -> None:
        """Write a line for each record: a sample's lines are handed over whole before the next sample's."""
        text = "".join(f"{line}\n" for line in encode_rows(records, texts=self._texts))
        if not self.begun and self.out != "-":
            text = f"{encode_head(self._info)}\n{text}"
            if self._path.is_file():
                self._file.truncate(0)
        self.begun = True
        rest = memoryview(text.encode())
        while rest:
            rest = rest[self._file.write(rest) :]
        self._file.flush()

    def lost(self, error: OSError) -> NotThere:
        """The error of a file that cannot be written."""
        return NotThere(f"--out {self.out}: cannot write: {_reason(error, self.out)}")

    def finish(self, report: "Report") -> None:
        """Do what is left to do of a file that is closed, at the end of a run."""

    def close(self) -> None:
        """Close the file; a new one without a record is removed."""
        if self.out == "-":
            return
        if self._new and not self.begun:
            self._path.unlink(missing_ok=True)
        self._file.close()
