"""All four metrics over real samples. The data are not ours to publish: they lie beside the repository, or not at all."""

import json
from pathlib import Path

import pytest

from ragstone import Unscored

from .test_score import ALL, results, table

DEV = Path(__file__).parents[3] / "shared" / "data" / "dev"
FILES = sorted(DEV.glob("*/*.jsonl"))
NEEDS = {
    "summarization_score": {"retrieved_contexts", "response"},
    "alignment_coverage": {"retrieved_contexts", "response"},  # with the source that is set below
    "response_relevancy": {"user_input", "response"},
    "context_relevancy": {"user_input", "retrieved_contexts"},
}


@pytest.mark.skipif(not FILES, reason=f"needs the development data in {DEV}")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_first_rows(score, tmp_path, path):
    with path.open("rb") as lines:
        given = [line for line, _ in zip(lines, range(3), strict=False)]
    samples = [json.loads(line) for line in given]
    arguments = ["--set", "alignment_coverage.source=retrieved_contexts", "--out", tmp_path / "out.jsonl"]
    if "source" in samples[0]:
        arguments += ["--field", "retrieved_contexts=source"]
        samples = [{**sample, "retrieved_contexts": sample["source"]} for sample in samples]
    done = score("-", *arguments, input=b"".join(given))
    assert (done.exit_code, done.stderr) == (0, "")
    assert {name: cells["scored"] for name, cells in table(done.stdout).items()} == {
        name: f"{sum(all(sample.get(field) for field in NEEDS[name]) for sample in samples)}/3" for name in ALL
    }
    found = results(tmp_path / "out.jsonl")
    assert [sample_id for sample_id, _, _ in found[::4]] == [sample["id"] for sample in samples]
    unscored = {outcome.reason for _, _, outcome in found if isinstance(outcome, Unscored)}
    assert unscored <= {"missing_input", "empty_input"}
