"""`ragstone score --calibration`, with a judge of one's own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli

from .made import calibration

RELEVANCY = ("--metric", "context_relevancy")
OWN = """
from ragstone import LLMReply
from ragstone.testing import FakeEmbedder, FakeLLM

def judge():
    said = LLMReply("yes", probabilities={"yes": 0.6, "no": 0.4})
    return FakeLLM(lambda request: said, asking="one_by_one", model="own", gives_probabilities=True)

embedder = FakeEmbedder
"""


@pytest.fixture
def score(tmp_path, monkeypatch):
    (tmp_path / "of_their_own.py").write_text(OWN)
    (tmp_path / "rows.jsonl").write_text(
        '{"user_input": "Who did?", "retrieved_contexts": ["Ann did it. Bob did it."]}\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = ["score", "rows.jsonl", "--llm", "of_their_own:judge", "--calibration", "c.json"]
    return lambda *args: CliRunner().invoke(cli, [*given, *args])


def test_a_calibration_is_applied_and_named_in_each_outcome(score):
    found = calibration(judge="own")
    found.save("c.json")
    done = score(*RELEVANCY, "--out", "scores.jsonl")
    assert done.exit_code == 0, done.output
    line = json.loads(Path("scores.jsonl").read_text().splitlines()[1])
    assert line["version"].endswith(f"+cal:{found.digest}")
    assert (line["value"], line["breakdown"]["sentence_uncalibrated"]) == (0.0, 1.0)


def test_a_calibration_of_something_else_is_refused(score):
    calibration(judge="own", embedder="fake-8").save("c.json")
    assert score(*RELEVANCY, "--embedder", "of_their_own:embedder").exit_code == 0
    assert score(*RELEVANCY, "--dry-run").exit_code == 0
    for args, said in (
        (RELEVANCY, "embedder: made with 'fake-8', this has None"),
        (("--metric", "summarization_score"), "add --metric context_relevancy"),
        ((*RELEVANCY, "--asking", "together"), "asking one by one: made with True"),
        ((*RELEVANCY, "--calibration", "rows.jsonl"), "calibration"),
    ):
        done = score(*args)
        assert (done.exit_code, said in done.output) == (2, True), done.output
