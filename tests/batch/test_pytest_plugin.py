"""`assert_score`, by itself and as a fixture in a run of pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
from ragstone import ContextRelevancy, Sample
from ragstone.testing import FakeLLM, assert_score

SAMPLE = Sample(user_input="Who wrote Emma?", retrieved_contexts=["Jane Austen wrote it. It rains. It snows."])


def metric(reply=None, **changes):
    return ContextRelevancy(llm=FakeLLM(reply or (lambda request: {"ids": [1]})), **changes)


def message(*args, **changes):
    with pytest.raises(AssertionError) as caught:
        assert_score(*args, **changes)
    return str(caught.value).splitlines()


def test_what_reaches_it_comes_back():
    assert assert_score(SAMPLE, metric(), at_least=1 / 3).value == pytest.approx(1 / 3)
    assert assert_score(SAMPLE.model_dump(exclude_none=True), metric(), at_least=0.0).metric == "context_relevancy"


def test_a_failure_shows_what_cost_it_and_nothing_else():
    assert message(SAMPLE, metric(), at_least=0.7) == [
        "context_relevancy is 0.333, at least 0.7 is wanted",
        "  The question needs 1 of 3 sentences, from 1 of 1 contexts.",
        "  sentence 2: irrelevant: It rains.",
        "      [context 1 22-31]",
        "  sentence 3: irrelevant: It snows.",
        "      [context 1 32-41]",
    ]


def test_what_cannot_be_scored_is_no_low_score():
    assert message(Sample(user_input="Why?"), metric(), at_least=0.0) == [
        "context_relevancy was not scored (missing_input); this is not a low score",
        "  retrieved_contexts: is missing; context_relevancy needs it",
    ]


def test_the_threshold_stands_for_at_least():
    assert message(SAMPLE, metric(threshold=0.5))[0].endswith("at least 0.5 is wanted")
    assert assert_score(SAMPLE, metric(threshold=0.5), at_least=0.1).passed is False


@pytest.mark.parametrize(("at_least", "said"), [(None, "has no threshold"), (float("nan"), "outside")])
def test_what_can_never_hold_is_refused_before_the_judge_is_asked(at_least, said):
    given = metric()
    with pytest.raises(ValueError, match=said):
        assert_score(SAMPLE, given, at_least=at_least)
    assert given.llm.requests == []


TEST = """
from ragstone import ContextRelevancy, Sample
from ragstone.testing import FakeLLM

SAMPLE = Sample(user_input="Who wrote Emma?", retrieved_contexts=["Jane Austen wrote it. It rains."])
METRIC = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))

def test_good(assert_score):
    assert assert_score(SAMPLE, METRIC, at_least=0.5).value == 0.5

def test_bad(assert_score):
    assert_score(SAMPLE, METRIC, at_least=0.7)  # the line of the test
"""


def run_pytest(folder, test, *options):
    (folder / "test_app.py").write_text(test)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environ["PYTHONPATH"] = str(Path(ragstone.__file__).parents[1])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--rootdir", str(folder)]
    done = subprocess.run(
        [*command, *options, str(folder)], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_the_plugin_is_loaded_where_it_is_asked_for(tmp_path):
    out = run_pytest(tmp_path, TEST, "-p", "ragstone.pytest_plugin")
    assert "1 failed, 1 passed" in out
    assert "AssertionError: context_relevancy is 0.500, at least 0.7 is wanted" in out
    assert "sentence 2: irrelevant: It rains." in out
    assert "# the line of the test" in out
    assert "def assert_score" not in out  # nor any other line of ours


def test_a_slow_judge_is_seen_to_work(tmp_path):
    quick = "from ragstone import pytest_plugin; pytest_plugin.SECONDS_BETWEEN_LINES = 0.01"
    (tmp_path / "conftest.py").write_text(
        f'pytest_plugins = ["ragstone.pytest_plugin"]\ndef pytest_configure(): {quick}\n'
    )
    slow = TEST.replace("request: {", 'request: __import__("time").sleep(0.5) or {')
    assert slow != TEST
    out = run_pytest(tmp_path, slow)
    assert "\ntest_good: context_relevancy: the judge works for " in out
    assert "1 failed, 1 passed" in out
