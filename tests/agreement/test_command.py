"""The command as a user runs it, in a process of its own, against a server on loopback."""

import doctest
import importlib
import json
import subprocess
import sys

import pytest
from agreement.files import Line, read_records

from ragstone.report import Report

from ..support.openai_server import embeddings  # noqa: TID252
from .conftest import BENCHMARK
from .data import response_row, tiny, write

ALL_AT_ONCE = {
    "ids": {"ids": [1]},
    "items": {"items": [{"keyphrase": "cats", "question": "Are there cats?"}]},
    "claims": {"claims": ["It left."]},
    "verdicts": {"verdicts": {"1": {"evidence": [1], "verdict": "supported"}}},
}


def reply(body):
    """Answers every metric's questions, all items in one call."""
    if "input" in body:
        return embeddings([[1.0, float(i)] for i in range(len(body["input"]))])
    (name,) = properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if name in ALL_AT_ONCE:
        return json.dumps(ALL_AT_ONCE[name])
    if name == "answers":
        return json.dumps({name: dict.fromkeys(properties[name]["properties"], "yes")})
    item = {"question": "What?", "noncommittal": False}
    kind = properties[name]["items"].get("type")
    n = properties[name]["minItems"]
    return json.dumps({name: [f"Is it {i}?" if kind == "string" else item for i in range(n)]})


def command(*arguments):
    return [sys.executable, str(BENCHMARK), *map(str, arguments)]


def run(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=300)


def test_whole_command(tmp_path, openai_server):
    server = openai_server(reply)
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"
    arguments = (folder, "--judge", f"test-model@{server.url}", "--out", out, "--limit", 1)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    lines = read_records(out / "scores" / "ragstone.jsonl", Line)
    assert {line.unscored for line in lines} == {None}
    shown = (out / "table.md").read_text()
    for word in ("judge test-model", "pairwise accuracy", "sentence F1", "take all"):
        assert word in shown
    asked = len(server.bodies)
    assert run(*arguments).returncode == 0
    assert [body for body in server.bodies[asked:] if body] == []  # a look at the models, and nothing else


def test_replies_that_score_recorded_are_a_judge(tmp_path, openai_server):
    def steady(body):
        return embeddings([[1.0, len(text)] for text in body["input"]]) if "input" in body else reply(body)

    server = openai_server(steady)
    data = tmp_path / "rows.jsonl"
    write(data, [response_row(i, i % 2, "binary") for i in range(6)])
    results, recording, out = (tmp_path / name for name in ("results.jsonl", "recording.jsonl", "out"))
    score = ["score", data, "--metric", "response_relevancy", "--llm", f"test-model@{server.url}", "--out", results]
    subprocess.run([sys.executable, "-m", "ragstone", *score, "--record", recording], check=True)
    asked = len(server.bodies)
    done = run(data, "--replay", recording, "--metric", "response_relevancy", "--out", out)
    assert done.returncode == 0, done.stderr
    scored = {result.sample_id: result.outcome.value for result in Report.load(results).results()}
    lines = read_records(out / "scores" / "ragstone.jsonl", Line)
    assert {line.id: line.value for line in lines} == pytest.approx(scored, abs=1e-6)
    assert len(server.bodies) == asked
    assert "judge test-model" in (out / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name one of --judge and --replay"),
        (("--judge", "nobody"), "--judge nobody: 'nobody' is none of local,"),
        (("--judge", "local", "--name", "../x"), "--name ../x: is no file name"),
        (("--judge", "local", "--set", "context_relevancy.colour=red"), "has no option 'colour'"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    done = run(tiny(tmp_path / "data"), "--out", tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_examples():
    for name in ("rows", "measures", "floors", "table"):
        assert doctest.testmod(importlib.import_module(f"agreement.{name}")).failed == 0
