"""Judges by name: each that cannot be had is said at once, with what to do."""

import sys

import pytest
from click import ClickException

from ragstone import ContextRelevancy, Sample, judge_names
from ragstone.cli.options import connected_embedder, connected_llm
from ragstone.errors import without_keys
from ragstone.live import Monitor, Queue, SQLiteSink
from ragstone.testing import FakeLLM

from ..support.openai_server import Answer, error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import MODEL, answer

NOBODY = "http://127.0.0.1:9"


def llm(spec):
    return connected_llm(spec, max_concurrency=4)


def embedder(spec, llm_spec="", judge=None):
    return connected_embedder(spec, llm_spec, judge, max_concurrency=4)


def test_a_server_names_its_model_or_is_told_which(server):
    assert llm(server.url).model == MODEL
    same = llm(f"{MODEL}@{server.url.removesuffix('/v1')}")
    assert same.model == MODEL
    assert {seen.path for seen in server.seen} == {"/v1/models"}  # it was asked whether it is there; nothing was spent
    assert embedder(None, server.url, same) is same
    assert embedder(None, server.url).model == MODEL


def test_openai_without_a_key(monkeypatch, run, six):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    done = run("score", six, "--llm", "openai:gpt-5")
    assert done.exit_code == 2
    assert (
        "--llm openai:gpt-5: no API key for OpenAI: set the environment variable OPENAI_API_KEY "
        "or name another server: MODEL@URL"
    ) in done.stderr
    with pytest.raises(ValueError, match=r"set OPENAI_API_KEY or pass api_key or base_url$") as caught:
        judge_names.make_llm("openai:gpt-5")
    assert without_keys(str(caught.value)) == str(caught.value)


def test_nobody_is_there():
    with pytest.raises(ClickException, match=f"--llm {NOBODY}: .*is the server running") as caught:
        llm(NOBODY)
    assert caught.value.exit_code == 2
    with pytest.raises(ClickException, match=f"--embedder m@{NOBODY}: .*is the server running"):
        embedder(f"m@{NOBODY}")


def test_a_wrong_key_is_said_before_the_first_row(openai_server):
    server = openai_server(answer)
    server.models = error(401, "Incorrect API key provided")
    with pytest.raises(ClickException, match="--llm m@http.*Incorrect API key provided"):
        llm(f"m@{server.url}")


def test_a_server_that_lists_no_models_may_be_a_judge(openai_server):
    server = openai_server(answer, models=())
    with pytest.raises(ClickException, match="lists no models: load one into the server, or name a model"):
        llm(server.url)
    for models in (error(404, "Not Found"), error(403, "missing scope"), Answer(b"<html>"), {"data": []}):
        server.models = models
        assert llm(f"{MODEL}@{server.url}").model == MODEL


def test_embedded_models_that_are_error_of(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path))
    with pytest.raises(ClickException, match="--llm local:.*none.gguf: no such model file"):
        llm(f"local:{tmp_path / 'none.gguf'}")
    pytest.importorskip("xllamacpp")
    with pytest.raises(ClickException, match=f"--llm local: qwen.* is not in {tmp_path}; .*`ragstone pull`"):
        llm("local")
    (tmp_path / "rows.jsonl").write_text("{}")
    with pytest.raises(ClickException, match="llama.cpp cannot load"):
        llm(f"local:{tmp_path / 'rows.jsonl'}")


@pytest.fixture
def outbox(tmp_path, monkeypatch):
    """A folder with an outbox in which a sample waits, and a module with a judge."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "no_one.py").write_text(
        "from ragstone.testing import FakeLLM\njudge = FakeLLM(lambda request: 1 / 0)\n"
    )
    metric = ContextRelevancy(llm=FakeLLM(lambda request: 1 / 0))
    monitor = Monitor(metric, sinks=SQLiteSink("ragstone.db"), outbox="o.db", queue=Queue(workers=0))
    monitor.submit(Sample(user_input="Who?", retrieved_contexts=["Ann."]))
    monitor.close()


@pytest.mark.parametrize(
    "name",
    [
        "openai:m?temperature=abc", "openai:m?temperature=nan", "openai:m?temprature=0", "openai:m?seed=1.5", "openai:m?seed", "openai:m?",
        "openai:m?seed=1&seed=2", "http://127.0.0.1:9?seed=x", "m@http://127.0.0.1:9/v1?temprature=0", "m@http://h:abc/v1", "http://[",
        "systemone:m@http://127.0.0.1:9?seed=7", "langchain:openai:m?temperature=0", "local?seed=7", "azure", "openai/gpt-4o",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "command",
    [
        "score FILE --metric faithfulness --llm NAME",
        "score FILE --metric faithfulness --llm NAME --dry-run",
        "score FILE --metric alignment_coverage --llm no_one:judge --writer NAME",
        "score FILE --metric response_relevancy --llm no_one:judge --embedder NAME",
        "doctor --llm NAME",
        "live worker --outbox o.db --llm NAME",
    ],
)
def test_a_wrong_name_is_a_usage_error_of_one_sentence(run, six, outbox, command, name):
    done = run(*({"FILE": six, "NAME": name}.get(word, word) for word in command.split()))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert name in done.stderr
