"""`ragstone score --calibration`, with judges on loopback and of one's own."""

import json
import math
from hashlib import sha256

import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli

from ..support.openai_server import chat, embeddings, error  # noqa: TID252 - under importlib mode tests are no package
from .made import _SAID, calibration

MODEL = "test-model"
RELEVANCY = ("--metric", "context_relevancy")
ROWS = [
    {"user_input": f"Who did {i}?", "retrieved_contexts": [f"Ann {i} did it p0.93. Bob {i} did it p0.6."]}
    for i in range(6)
]


def reply(body):
    """The share of yes that the sentence names, in log-probabilities."""
    if "input" in body:
        return embeddings([[byte / 255 for byte in sha256(text.encode()).digest()[:8]] for text in body["input"]])
    if body["model"] != MODEL:
        return error(404, "no such model")
    user = body["messages"][-1]["content"]
    p = float(_SAID.search(user.rpartition("<sentence")[2])[1]) if "<sentence" in user else 0.5
    top = [{"token": "yes", "logprob": math.log(p)}, {"token": "no", "logprob": math.log(1 - p)}]
    word = "yes" if p >= 0.5 else "no"
    first = {"token": word, "logprob": math.log(max(p, 1 - p)), "top_logprobs": top}
    return chat(word, logprobs={"content": [first]})


@pytest.fixture
def score(openai_server):
    server = openai_server(reply)
    return lambda *args: CliRunner().invoke(cli, ["score", *map(str, args), "--llm", server.url])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def out(tmp_path):
    calibration(judge=MODEL).save(path := tmp_path / "c.json")
    return path


def test_a_calibration_is_applied_and_named_in_each_outcome(score, file, out, tmp_path):
    done = score(file, *RELEVANCY, "--calibration", out, "--out", scores := tmp_path / "scores.jsonl")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in scores.read_text().splitlines()[1:]]
    assert all(line["version"].endswith(f"+cal:{calibration(judge=MODEL).digest}") for line in lines)
    assert [(line["value"], line["breakdown"]["sentence_uncalibrated"]) for line in lines] == [(0.5, 1.0)] * 6


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
    calibration(judge="own", embedder="fake-8").save(out := tmp_path / "c.json")
    given = ["score", str(file), *RELEVANCY, "--llm", "of_their_own:judge", "--calibration", str(out)]
    embedded = ["--embedder", "of_their_own:embedder"]
    assert CliRunner().invoke(cli, [*given, *embedded]).exit_code == 0
    assert CliRunner().invoke(cli, [*given, "--dry-run"]).exit_code == 0
    done = CliRunner().invoke(cli, given)
    assert (done.exit_code, "embedder: made with 'fake-8', this has None" in done.output) == (2, True)


def test_score_refuses_a_calibration_of_something_else(score, file, out):
    done = score(file, "--metric", "summarization_score", "--calibration", out)
    assert (done.exit_code, "add --metric context_relevancy" in done.output) == (2, True)
    done = score(file, *RELEVANCY, "--calibration", out, "--asking", "together")
    assert (done.exit_code, "asking one by one: made with True" in done.output) == (2, True)
    done = score(file, *RELEVANCY, "--calibration", file)
    assert (done.exit_code, "calibration" in done.output) == (2, True)
