"""With the embedded model: slow, and only where its files have been pulled."""

import pytest

from ragstone.local import model_files

from .conftest import row
from .test_score import results, table

pytest.importorskip("xllamacpp")
pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        not all(file.path.is_file() for file in model_files()), reason="needs the model files: `ragstone pull`"
    ),
]


def test_doctor(run):
    done = run("doctor")
    assert done.exit_code == 0
    assert "judge local: local:qwen2.5-coder-1.5b-instruct-q4_k_m answers 'yes', gives probabilities" in done.stdout
    assert "is asked one by one" in done.stdout
    assert "embedder default: local:all-minilm-l6-v2-int8 answers with 384 dimensions" in done.stdout


def test_a_row(run, rows, tmp_path):
    given = rows(row(1, retrieved_contexts=["Ann wrote book 1. It rains."]))
    metrics = ("--metric", "context_relevancy", "--metric", "response_relevancy")
    done = run("score", given, *metrics, "--set", "response_relevancy.strictness=1", "--out", tmp_path / "out.jsonl")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [cells["scored"] for cells in table(done.stdout).values()] == ["1/1", "1/1"]
    context, _ = (outcome for _, _, outcome in results(tmp_path / "out.jsonl"))
    assert len(context.verdicts) == 2
    assert all(0.0 < verdict.probability < 1.0 for verdict in context.verdicts)
