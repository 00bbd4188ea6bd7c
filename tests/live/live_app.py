"""An app with a monitor, for tests of the outbox: used in the test's process and, by `APP + code`, in one of its own."""

import itertools
import math
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ragstone import ContextRelevancy, Monitor
from ragstone.judge import LLMRequest
from ragstone.live import Feedback, Record, SQLiteSink
from ragstone.live.settings import Waits
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, adds_up, sample, submit, waiting_as, with_queue  # noqa: F401 - for the code in a process of its own

ROOT = Path(__file__).parents[2]
APP = f"import os, sys, time\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.live.live_app import *\nfrom ragstone.live import CallableSink\n"
OUTBOX, RESULTS, CALLS = "outbox.db", "results.db", "calls.txt"


class Down(SQLiteSink):
    """Results that cannot be written until `down` is False."""

    down = True

    def write(self, records: Sequence[Record]) -> None:
        if self.down:
            raise OSError("down")
        super().write(records)

    def feedback(self, feedback: Sequence[Feedback]) -> None:
        if self.down:
            raise OSError("down")
        super().feedback(feedback)


def asked(request: LLMRequest) -> int:
    """The number of the sample that a request is about."""
    found = re.search(r"question (\d+)\?", request.user)
    assert found
    return int(found[1])


def noting_judge(
    delay: float = 0.0, reply: Callable[[LLMRequest], Any] | None = None, answers: float = math.inf
) -> FakeLLM:
    """A judge that writes down in CALLS what it is asked about, and then answers, but hangs after so many answers."""
    numbers = itertools.count(1)
    calls = os.open(CALLS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def answer(request: LLMRequest) -> Any:
        os.write(calls, b"%d\n" % asked(request))
        time.sleep(delay if next(numbers) <= answers else 10_000)
        return {"ids": [1]} if reply is None else reply(request)

    return FakeLLM(answer)


def hangs(request: LLMRequest) -> Any:
    time.sleep(10_000)


def live(
    delay: float = 0.0,
    reply: Callable[[LLMRequest], Any] | None = None,
    answers: float = math.inf,
    waits: Waits | None = None,
    **options: Any,
) -> Monitor:
    """A monitor of the current folder: with an outbox, and a SQLite file for the results."""
    settings = {"sinks": SQLiteSink(RESULTS), "outbox": OUTBOX, **options}
    metrics = settings.pop("metrics", None) or ContextRelevancy(llm=noting_judge(delay, reply, answers))
    return waiting_as(waits)(metrics, **with_queue(settings))


def kept(monitor: Monitor, numbers: Iterable[int]) -> None:
    """Submit, and return when the outbox has them all. Needs a judge that does not finish before."""
    before = len(waiting())
    numbers = list(numbers)
    submit(monitor, numbers)
    soon(lambda: len(waiting()) >= before + len(numbers))


def rows(path: str | Path, query: str, *values: Any) -> list[Any]:
    """What a query finds; nothing where there is no such file or table yet."""
    if not Path(path).exists():
        return []
    with closing(sqlite3.connect(path, timeout=PATIENCE)) as connection:
        try:
            return connection.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise


def change(path: str | Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as connection:
        connection.execute(statement, values)


def waiting() -> list[str]:
    """The ids of the samples in the outbox."""
    return [name for (name,) in rows(OUTBOX, "SELECT id FROM samples")]


def undelivered() -> int:
    return len(rows(OUTBOX, "SELECT 1 FROM records"))


def results(status: str = "scored") -> list[int]:
    """The numbers of the samples in the results, as often as they are there."""
    return sorted(int(name[1:]) for (name,) in rows(RESULTS, "SELECT sample_id FROM outcomes WHERE status = ?", status))


def calls() -> Counter[int]:
    """How often the judge was asked about each sample, by all processes together."""
    path = Path(CALLS)
    return Counter(map(int, path.read_text().split())) if path.exists() else Counter()


def accounted(monitor: Monitor) -> None:
    """Every evaluation has a place."""
    stats = monitor.stats()
    assert adds_up(stats), stats
    assert stats.pending == 0, stats


def say(*words: Any) -> None:
    """Tell the test's process, in one write: a forked child may speak at the same time."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def hear() -> str:
    """Wait for a word of the test's process, or for its end."""
    return sys.stdin.readline().strip()


class Process(subprocess.Popen[str]):
    """An app that runs the code after `live_app`'s names were imported."""

    def __init__(self, code: str) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        super().__init__([sys.executable, "-c", APP + code], text=True, **pipes)

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
def app(code: str) -> Iterator[Process]:
    """Start an app; kill it at the end."""
    process = Process(code)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ran(code: str) -> tuple[int, str]:
    """Run an app to its end: exit status and standard error."""
    with app(code) as process:
        return process.end()
