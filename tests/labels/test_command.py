"""`ragstone calibrate`, then `ragstone score --calibration`, with a judge on loopback."""

import json
import math
import random
from hashlib import sha256

import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli
from ragstone.labels import Calibration

from ..support.openai_server import chat, embeddings, error  # noqa: TID252 - under importlib mode tests are no package
from .made import _SAID

MODEL = "test-model"
RELEVANCY = ("--metric", "context_relevancy")


def reply(body):
    """The share of yes that the sentence names, in log-probabilities or, for another model, in votes."""
    if "input" in body:
        return embeddings([[byte / 255 for byte in sha256(text.encode()).digest()[:8]] for text in body["input"]])
    if body["model"] != MODEL:
        return error(404, "no such model")
    user = body["messages"][-1]["content"]
    return said(float(_SAID.search(user.rpartition("<sentence")[2])[1]) if "<sentence" in user else 0.5)


def said(p):
    top = [{"token": "yes", "logprob": math.log(p)}, {"token": "no", "logprob": math.log(1 - p)}]
    word = "yes" if p >= 0.5 else "no"
    first = {"token": word, "logprob": math.log(max(p, 1 - p)), "top_logprobs": top}
    return chat(word, logprobs={"content": [first]})


@pytest.fixture
def server(openai_server):
    return openai_server(reply)


@pytest.fixture
def run(server):
    return lambda command, *args: CliRunner().invoke(cli, [command, *map(str, args), "--llm", server.url])


def labelled(n=24):
    """Sentences of which the judge says yes with more than 1/2 to nearly all; needed are those above 0.8."""
    chance = random.Random(3)
    for i in range(n):
        ps = [round(chance.uniform(0.45, 0.99), 2) for _ in range(4)]
        ps[0] = 0.93  # one is needed
        yield {
            "user_input": f"Who did {i}?",
            "retrieved_contexts": [" ".join(f"Ann {i} did it p{p}." for p in ps)],
            "labels": [p > 0.8 for p in ps],
        }


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labelled()))
    return path


def test_the_whole_way(run, file, tmp_path):
    out = tmp_path / "calibration.json"
    done = run("calibrate", file, *RELEVANCY, "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].split() == ["out", "of", "fold,", "95", "%", "before", "after", "difference"]
    assert "labels: 96 (sentence) in 24 samples" in done.stdout
    assert "Warning: 24 independent samples are few" in done.stderr
    found = Calibration.load(out)
    first = found.agreement[0]
    assert first.name == "sentence F1"
    assert first.difference.low > 0
    assert (found.judge, found.metric, found.item, found.labels) == (MODEL, "context_relevancy", "sentence", 96)
    assert found.threshold == pytest.approx(found.apply([0.8])[0], abs=0.2)

    scores = tmp_path / "scores.jsonl"
    done = run("score", file, *RELEVANCY, "--calibration", out, "--out", scores)
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in scores.read_text().splitlines()[1:]]
    assert all(line["version"].endswith(f"+cal:{found.digest}") for line in lines)
    uncalibrated = sum(line["breakdown"]["sentence_uncalibrated"] for line in lines)
    assert sum(line["value"] for line in lines) < uncalibrated


def test_a_journal_keeps_what_the_judge_said(run, file, tmp_path, server):
    given = ("calibrate", file, *RELEVANCY, "--journal", tmp_path / "journal", "--out", tmp_path / "c.json")
    assert run(*given).exit_code == 0
    asked = sum(seen.path.endswith("/chat/completions") for seen in server.seen)
    first = (tmp_path / "c.json").read_bytes()
    assert run(*given).exit_code == 0
    assert sum(seen.path.endswith("/chat/completions") for seen in server.seen) == asked == 24 + 96
    assert (tmp_path / "c.json").read_bytes() == first


OWN = """
from ragstone import LLMReply
from ragstone.testing import FakeEmbedder, FakeLLM

def judge():
    said = LLMReply("yes", probabilities={"yes": 0.6, "no": 0.4})
    return FakeLLM(lambda request: said, asking="one_by_one", model="own", gives_probabilities=True)

embedder = FakeEmbedder
"""


def test_the_embedder_that_ranked_the_sentences_belongs_to_their_calibration(file, tmp_path, monkeypatch):
    (tmp_path / "of_their_own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    judged, embedded = ("--llm", "of_their_own:judge"), ("--embedder", "of_their_own:embedder")
    given = [str(file), *RELEVANCY, *judged]
    done = CliRunner().invoke(cli, ["calibrate", *given, *embedded, "--out", str(out := tmp_path / "c.json")])
    assert done.exit_code == 0, done.output
    assert Calibration.load(out).embedder == "fake-8"
    score = ["score", *given, "--calibration", str(out)]
    assert CliRunner().invoke(cli, [*score, *embedded]).exit_code == 0
    assert CliRunner().invoke(cli, [*score, "--dry-run"]).exit_code == 0
    done = CliRunner().invoke(cli, score)
    assert (done.exit_code, "embedder: made with 'fake-8', this has None" in done.output) == (2, True)


def test_score_refuses_a_calibration_of_something_else(run, file, tmp_path):
    out = tmp_path / "c.json"
    assert run("calibrate", file, *RELEVANCY, "--out", out).exit_code == 0
    done = run("score", file, "--metric", "summarization_score", "--calibration", out)
    assert (done.exit_code, "add --metric context_relevancy" in done.output) == (2, True)
    done = run("score", file, *RELEVANCY, "--calibration", out, "--asking", "together")
    assert (done.exit_code, "asking one by one: made with True" in done.output) == (2, True)
    done = run("score", file, *RELEVANCY, "--calibration", file)
    assert (done.exit_code, "calibration" in done.output) == (2, True)
