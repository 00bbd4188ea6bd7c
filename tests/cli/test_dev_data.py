"""All four metrics over real samples. The data are not ours to publish: they lie beside the repository, or not at all."""

import json
import time
from pathlib import Path

import pytest

from ragstone import Unscored, Usage

from .conftest import judge
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


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason=f"needs the development data in {DEV}")
def test_every_row_by_every_metric_killed_twice_is_as_if_it_had_not_been(process, openai_server, tmp_path):
    """With a judge on loopback: the same report, and nothing asked again but the last moments before the kills."""
    given = tmp_path / "all.jsonl"
    with given.open("w", encoding="utf-8") as lines:
        for path in FILES:
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                source = {"retrieved_contexts": [row["source"]]} if "source" in row else {}
                lines.write(json.dumps(row | source | {"id": f"{path.stem} {row['id']}"}) + "\n")

    def run(name, server):
        arguments = ["--set", "alignment_coverage.source=retrieved_contexts", "--journal", tmp_path / f"{name}.db"]
        return process("score", given, *arguments, "--out", tmp_path / f"{name}.jsonl", "--llm", server.url)

    def asked(server):
        return [json.dumps(seen.body, sort_keys=True) for seen in list(server.seen) if "messages" in seen.body]

    def report(name):
        return [
            (sample_id, line, outcome.model_copy(update={"usage": Usage()}))
            for sample_id, line, outcome in results(tmp_path / f"{name}.jsonl")
        ]

    unbroken, broken = openai_server(judge), openai_server(judge)
    command = run("unbroken", unbroken)
    _, errors = command.communicate(timeout=900)
    assert command.returncode == 0, errors
    calls = asked(unbroken)
    last_moments = len(calls) // 20  # far more than are in flight, or answered and not yet written
    kills = []
    for share in (1, 2):
        command = run("broken", broken)
        while len(asked(broken)) < len(calls) * share / 3:
            assert command.poll() is None
            time.sleep(0.05)
        command.kill()
        command.communicate()
        kills.append(len(asked(broken)))
    command = run("broken", broken)
    _, errors = command.communicate(timeout=900)
    assert command.returncode == 0, errors
    assert report("broken") == report("unbroken")
    of_all = asked(broken)
    assert set(of_all) == set(calls)
    for kill in kills:
        assert not set(of_all[: kill - last_moments]) & set(of_all[kill:])
