"""What the commands that read labels need is said before anybody labels."""

import sys

import pytest

from ragstone import ContextRelevancy, evaluate
from ragstone.testing import FakeLLM


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"question": f"Q{i}?", "contexts": ["One. Two."]} for i in range(3)]
    evaluate(rows, ContextRelevancy(llm=FakeLLM(lambda _: {"ids": [1]})), progress=False).to_json("runs.jsonl")
    return "runs.jsonl"


@pytest.mark.parametrize("command", [["choose", "runs.jsonl", "-n", "2"], ["label", "runs.jsonl"]])
def test_before_the_labelling(run, results, command, monkeypatch):
    assert "will need" not in run(*command).stderr
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert 'will need: pip install "ragstone[calibrate]"' in run(*command).stderr
