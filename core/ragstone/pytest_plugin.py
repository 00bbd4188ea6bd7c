"""Scores in pytest: the fixture `assert_score`.

Loaded where it is asked for, by `-p ragstone.pytest_plugin` or in a conftest.py by

    pytest_plugins = ["ragstone.pytest_plugin"]

and nowhere else: installing ragstone changes no run of pytest. `ragstone.testing.assert_score` is the same without it.

    def test_the_answer_is_to_the_point(assert_score):
        sample = Sample(user_input="Who wrote Emma?", response=my_app("Who wrote Emma?"))
        assert_score(sample, ResponseRelevancy(llm=llm, embedder=embedder), at_least=0.7)
"""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from ragstone import testing
from ragstone.metrics.base import Metric
from ragstone.outcome import Score
from ragstone.sample import Sample

SECONDS_BETWEEN_LINES = 10.0


@pytest.fixture(name="assert_score")
def _assert_score(request: pytest.FixtureRequest) -> Callable[..., Score]:
    """Scores a sample and fails below a value, with what cost the score: assert_score(sample, metric, at_least=0.7)."""
    config = request.config

    def assert_score(sample: Sample | Mapping[str, Any], metric: Metric, *, at_least: float | None = None) -> Score:
        __tracebackhide__ = True
        with _progress(config, f"{request.node.name}: {metric.name}"):
            return testing.assert_score(sample, metric, at_least=at_least)

    return assert_score


@contextmanager
def _progress(config: pytest.Config, what: str) -> Generator[None, None, None]:
    """Print a line every ten seconds in which the judge has not answered, where pytest prints its own."""
    done = threading.Event()

    def tell() -> None:
        for times in count(1):
            if done.wait(SECONDS_BETWEEN_LINES):
                return
            config.get_terminal_writer().line(f"\n{what}: the judge works for {times * SECONDS_BETWEEN_LINES:.0f} s")

    if config.pluginmanager.has_plugin("terminalreporter"):  # not in a worker of xdist
        threading.Thread(target=tell, name="ragstone-progress", daemon=True).start()
    try:
        yield
    finally:
        done.set()
