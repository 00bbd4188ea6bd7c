"""Apps as processes of their own, each in the current folder."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .live_app import APP, PATIENCE


class Process(subprocess.Popen[str]):
    """An app that runs the code after `live_app`'s names were imported."""

    def __init__(self, code: str, *options: str) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        super().__init__([sys.executable, *options, "-c", APP + code], text=True, **pipes)

    def hear(self) -> str:
        """The next line that it says; fails with its errors if it ended."""
        assert self.stdout is not None
        line = self.stdout.readline()
        assert line, self.communicate()[1]
        return line.strip()

    def say(self, word: str = "go") -> None:
        assert self.stdin is not None
        self.stdin.write(word + "\n")
        self.stdin.flush()

    def end(self) -> tuple[int, str]:
        """Its exit status and what it wrote to standard error."""
        _, errors = self.communicate(timeout=PATIENCE)
        return self.returncode, errors


@contextmanager
def app(code: str, *options: str) -> Iterator[Process]:
    """Start an app; kill it at the end."""
    process = Process(code, *options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ran(code: str, *options: str) -> tuple[int, str]:
    """Run an app to its end: exit status and standard error."""
    with app(code, *options) as process:
        return process.end()
