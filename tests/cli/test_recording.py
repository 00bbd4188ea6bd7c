"""`ragstone score --record`, then `--replay` with no model at all."""

import json

import pytest

from ragstone.report import Report

from .conftest import row

MODELS = """
from ragstone.batch.estimation import synthetic_reply
from ragstone.testing import FakeDecisions, FakeEmbedder, FakeLLM

def judge():
    return FakeLLM(synthetic_reply, model="together")

def small():
    return FakeLLM(synthetic_reply, model="small", asking="one_by_one", gives_probabilities=True)

def decisions():
    return FakeDecisions(lambda question, texts: 0.8 if "1" in question.instruction else 0.3)

embedder = FakeEmbedder
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, rows):
    (tmp_path / "models_of_ours.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows(*(row(i, response=f"Ann {i} did. Bob {i} did not.") for i in range(5)))
    return tmp_path


def results(path):
    found = Report.load(path).results()
    return sorted(
        (each.row, each.outcome.metric, each.outcome.value, each.outcome.version, each.judge) for each in found
    )


@pytest.mark.parametrize(
    "named",
    [
        ["--llm", "models_of_ours:judge"],
        ["--llm", "models_of_ours:small"],
        ["--llm", "models_of_ours:decisions", "--writer", "models_of_ours:judge"],
    ],
)
def test_a_replay_gives_the_same_scores_and_asks_nobody(run, folder, named):
    common = ["score", "rows.jsonl", "--metric", "rag"]
    done = run(*common, *named, "--embedder", "models_of_ours:embedder", "--record", "r.jsonl", "--out", "a.jsonl")
    assert done.exit_code == 0, done.output
    (folder / "models_of_ours.py").unlink()
    done = run(*common, "--replay", "r.jsonl", "--out", "b.jsonl")
    assert done.exit_code == 0, done.output
    assert results(folder / "a.jsonl") == results(folder / "b.jsonl")
    assert len(results(folder / "a.jsonl")) == 20


def test_what_was_not_recorded_is_a_failure_of_the_judge_and_no_number(run, folder):
    run("score", "rows.jsonl", "--metric", "faithfulness", "--llm", "models_of_ours:judge", "--record", "r.jsonl")
    (folder / "rows.jsonl").write_text(json.dumps(row(9, response="Other.")))
    done = run("score", "rows.jsonl", "--metric", "faithfulness", "--replay", "r.jsonl", "--out", "b.jsonl")
    assert done.exit_code == 1
    assert "r.jsonl holds no reply to faithfulness.claims of the judge" in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is no recording"),
        ("{}\n", "is no recording"),
        ("no json\n", "is damaged"),
        ('{"ragstone_recording": 1}\n{"of": 3}\n', "is damaged"),
        ('{"ragstone_recording": 1}\n[]\n', "is damaged"),
    ],
)
def test_a_file_that_is_no_recording(run, folder, content, said):
    (folder / "r.jsonl").write_text(content)
    done = run("score", "rows.jsonl", "--metric", "faithfulness", "--replay", "r.jsonl", "--out", "b.jsonl")
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_options_that_do_not_go_together(run, folder):
    common = ["score", "rows.jsonl", "--metric", "faithfulness", "--llm", "models_of_ours:judge"]
    done = run(*common, "--record", "r.jsonl", "--journal", "j.db")
    assert (done.exit_code, "--record: what --journal has is not asked for" in done.stderr) == (2, True)
    done = run(*common, "--record", "rows.jsonl")
    assert (done.exit_code, "--record rows.jsonl: is the input FILE itself" in done.stderr) == (2, True)
