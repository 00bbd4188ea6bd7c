"""The command as a user runs it, in a process of its own, against a server on loopback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ragstone.report import Report

from ..support.judges import served  # noqa: TID252

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "agreement"


def row(number, metric, task, target, **more):
    use = {"metric": metric, "task": task, "target": target}
    return {"id": f"{metric[0]}{number}", "user_input": f"What does bird {number} eat?", "use": use, **more}


def write(path, rows):
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return path


def run(*arguments):
    command = [sys.executable, str(BENCHMARK), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def scored(out):
    lines = (out / "scores" / "ragstone.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if "metric" in record]


def test_whole_command(tmp_path, openai_server):
    server = openai_server(served)
    sentences = [["A bird sings", "and sleeps."], ["It was seen in spring.", "It eats seeds."]]
    contexts = [" ".join(each) for each in sentences]
    target = {"relevant": [[1, 1]], "share": 0.25}
    share = {"sentences": sentences, "retrieved_contexts": contexts}
    pairs = [(i, target) for i in range(4) for target in (1, 0)]
    write(
        tmp_path / "sentences.jsonl",
        [row(i, "ContextRelevancy", "sentence labels + share", target, **share) for i in range(6)],
    )
    write(
        tmp_path / "pairs.jsonl",
        [
            row(2 * i + t, "ResponseRelevancy", "pairwise", t, pair_id=f"p{i}", response="Seeds." if t else "Sorry.")
            for i, t in pairs
        ],
    )
    write(
        tmp_path / "summaries.jsonl",
        [
            row(
                i,
                "SummarizationScore + Summarization",
                "correlation",
                {"coverage": i % 3 / 2, "alignment": i % 2 / 2},
                doc_id=f"doc{i // 3}",
                source=f"The bird {i // 3} lived in a house. It left.",
                response="The bird left. " * (1 + i % 3),
            )
            for i in range(9)
        ],
    )
    out = tmp_path.with_name(f"{tmp_path.name}-out")
    arguments = (tmp_path, "--judge", f"test-model@{server.url}", "--out", out, "--limit", 1)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert scored(out)
    assert not any(line.get("unscored") for line in scored(out))
    shown = (out / "table.md").read_text()
    for word in ("judge test-model", "pairwise accuracy", "sentence F1", "take all"):
        assert word in shown
    asked = len(server.bodies)
    assert run(*arguments).returncode == 0
    assert [body for body in server.bodies[asked:] if body] == []  # a look at the models, and nothing else
    assert "name one of --judge and --results" in run(tmp_path, "--out", out).stderr


def test_a_results_file_stands_for_a_judge(tmp_path, openai_server):
    server = openai_server(served)
    rows = [row(i, "ResponseRelevancy", "binary", i % 2, response="Seeds.") for i in range(6)]
    data = write(tmp_path / "rows.jsonl", rows)
    results, out = tmp_path / "results.jsonl", tmp_path / "out"
    score = ["score", data, "--metric", "response_relevancy", "--llm", f"test-model@{server.url}", "--no-texts"]
    strict = ["--set", "response_relevancy.strictness=2", "--out", results]
    subprocess.run([sys.executable, "-m", "ragstone", *score, *strict], check=True)
    asked = len(server.bodies)
    done = run(data, "--results", results, "--out", out)
    assert done.returncode == 0, done.stderr
    values = {result.sample_id: result.outcome.value for result in Report.load(results).results()}
    assert {line["id"]: line["value"] for line in scored(out)} == pytest.approx(values, abs=1e-6)
    assert len(server.bodies) == asked
    assert "judge test-model" in (out / "table.md").read_text()
    info = json.loads((out / "run.json").read_text())["ragstone"]
    assert info["options"] == {"response_relevancy": {"strictness": "2"}}
    others = write(tmp_path / "others.jsonl", [row(9, "ResponseRelevancy", "binary", 1, response="No.")])
    done = run(others, "--results", results, "--out", out)
    assert (done.returncode, "has no score of these rows, by their ids" in done.stderr) == (2, True)
