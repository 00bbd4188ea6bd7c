"""The command as a user runs it, in a process of its own, against a server on loopback."""

import doctest
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from agreement.lines import read_lines

from ..support.openai_server import HANG, embeddings  # noqa: TID252
from .conftest import BENCHMARK
from .data import tiny, write

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
    arguments = (folder, "--judge", f"test-model@{server.url}", "--out", out)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    lines = read_lines(out / "scores" / "ragstone.jsonl")
    assert [line.unscored for line in lines] == [None] * 38
    shown = (out / "table.md").read_text()
    for word in ("judge test-model", "pairwise accuracy", "sentence F1", "rho within documents", "take all"):
        assert word in shown
    asked = len(server.bodies)
    assert run(*arguments).returncode == 0
    assert [body for body in server.bodies[asked:] if body] == []  # a look at the models, and nothing else
    (out / "table.md").unlink()
    done = run("table", out)
    assert (done.returncode, (out / "table.md").read_text()) == (0, shown)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_killed_and_run_again(tmp_path, openai_server):
    answered, stuck, back = [], threading.Event(), threading.Event()

    def stops(body):
        if not back.is_set() and len(answered) == 14:
            stuck.set()
            return HANG
        answered.append(json.dumps(body, sort_keys=True))
        return reply(body)

    server = openai_server(stops)
    folder, out = tiny(tmp_path / "data"), tmp_path / "out"
    arguments = (folder, "--judge", f"test-model@{server.url}", "--out", out, "--max-concurrency", 1)
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True)
    try:
        assert stuck.wait(120)
        time.sleep(0.5)  # the journal writes what came up to 0.05 s ago
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    before = [text for text in answered if "messages" in text]  # embeddings are not kept, being cheap
    back.set()
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert len(before) > 5
    assert all(answered.count(text) == 1 for text in before)
    assert len(read_lines(out / "scores" / "ragstone.jsonl")) == 38


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--judge", "nobody"), "--judge nobody: is none of local,"),
        (("--judge", "local:none.gguf"), "none.gguf"),
        (("--judge", "local", "--name", "../x"), "--name ../x: is no file name"),
        (("--judge", "local", "--calibration", __file__), "test_command.py: "),
        (("--judge", "local", "--limit", "0"), "0 is not in the range"),
        (("--judge", "local", "--metric", "faithfulness"), "'faithfulness' is not one of"),
        (("--judge", "local", "--set", "context_relevancy.colour=red"), "has no option 'colour'"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    done = run(tiny(tmp_path / "data"), "--out", tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_bad_row(tmp_path):
    write(tmp_path / "data" / "x.jsonl", [{"id": "a"}])
    done = run(tmp_path / "data", "--out", tmp_path / "out", "--judge", "local")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().endswith("x.jsonl, line 1: use: is missing; it has to be an object")


@pytest.mark.parametrize(
    "name",
    [
        "rows",
        "gold",
        "statistics",
        "floors",
        "labels",
        "lines",
        "fields",
        "comparison",
        "sentences",
        "readings",
        "facts",
    ],
)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(f"agreement.{name}")).failed == 0
