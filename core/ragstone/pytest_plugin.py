"""Scores in pytest: the fixture `assert_score`.

Loaded where it is asked for, by `-p ragstone.pytest_plugin` or in a conftest.py by

    pytest_plugins = ["ragstone.pytest_plugin"]

and nowhere else: installing ragstone changes no run of pytest. `ragstone.testing.assert_score` is the same without it.

    def test_the_answer_is_to_the_point(assert_score):
        sample = Sample(user_input="Who wrote Emma?", response=my_app("Who wrote Emma?"))
        assert_score(sample, ResponseRelevancy(llm=llm, embedder=embedder), at_least=0.7)
"""

import os
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from itertools import count
from typing import IO, Any

import pytest

from ragstone import testing
from ragstone.metrics.base import Metric
from ragstone.outcome import Score
from ragstone.sample import Sample

SECONDS_BETWEEN_LINES = 10.0
_TERMINAL = pytest.StashKey[IO[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error: while a test runs, pytest captures it."""
    # There may be none.
    with suppress(AttributeError, OSError, UnsupportedOperation):
        config.stash[_TERMINAL] = os.fdopen(os.dup(sys.stderr.fileno()), "w")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    if _TERMINAL in config.stash:
        config.stash[_TERMINAL].close()


@pytest.fixture(name="assert_score")
def _assert_score(request: pytest.FixtureRequest) -> Callable[..., Score]:
    """Scores a sample and fails below a value, with what cost the score: assert_score(sample, metric, at_least=0.7)."""

    def assert_score(sample: Sample | Mapping[str, Any], metric: Metric, *, at_least: float | None = None) -> Score:
        __tracebackhide__ = True
        with _progress(request.config.stash.get(_TERMINAL, None), f"{request.node.name}: {metric.name}"):
            return testing.assert_score(sample, metric, at_least=at_least)

    return assert_score


@contextmanager
def _progress(terminal: IO[str] | None, what: str) -> Generator[None, None, None]:
    """Print a line every ten seconds in which the judge has not answered."""
    done = threading.Event()

    def print_lines() -> None:
        for times in count(1):
            if done.wait(SECONDS_BETWEEN_LINES):
                return
            print(f"\n{what}: the judge works for {times * SECONDS_BETWEEN_LINES:.0f} s", file=terminal, flush=True)

    if terminal is None:
        yield
        return
    thread = threading.Thread(target=print_lines, name="ragstone-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
