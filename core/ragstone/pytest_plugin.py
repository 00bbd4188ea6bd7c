"""Scores in pytest: the fixture `assert_score`.

Loaded where it is asked for, by `-p ragstone.pytest_plugin` or in a conftest.py by

    pytest_plugins = ["ragstone.pytest_plugin"]

and nowhere else: installing ragstone changes no run of pytest. `ragstone.testing.assert_score` is the same without it.

    def test_the_answer_is_to_the_point(assert_score):
        sample = Sample(user_input="Who wrote Emma?", response=my_app("Who wrote Emma?"))
        assert_score(sample, ResponseRelevancy(llm=llm, embedder=embedder), at_least=0.7)
"""

from collections.abc import Callable

import pytest

from ragstone import testing
from ragstone.outcome import Score


@pytest.fixture(scope="session", name="assert_score")
def _assert_score() -> Callable[..., Score]:
    """Scores a sample and fails below a value, with what cost the score: assert_score(sample, metric, at_least=0.7)."""
    return testing.assert_score
