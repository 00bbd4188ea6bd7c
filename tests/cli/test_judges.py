"""Judges by name: each that cannot be had is said at once, with what to do."""

import pytest
from click import ClickException, UsageError

from ragstone.cli.judges import is_local, make_embedder, make_llm
from ragstone.clients import OpenAICompatible

from ..support.openai_server import Answer, error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import MODEL, judge

NOBODY = "http://127.0.0.1:9"


def llm(spec):
    return make_llm(spec, max_concurrency=4)


def embedder(spec, llm_spec="", judge=None):
    return make_embedder(spec, llm_spec, judge, max_concurrency=4)


@pytest.mark.parametrize(
    "spec", ["", "gpt-5", "openai:", "@http://127.0.0.1:9", "ftp://127.0.0.1", "locally", "http://"]
)
@pytest.mark.parametrize("make", [llm, embedder])
def test_no_name(make, spec):
    with pytest.raises(UsageError) as caught:
        make(spec)
    assert (
        f"{spec}: is none of local, local:PATH" in caught.value.message or "must be like http" in caught.value.message
    )


@pytest.mark.parametrize("spec", ["", "foo", "openai:", "@http://127.0.0.1:9", "ftp://127.0.0.1", "m@http://"])
@pytest.mark.parametrize("option", ["--llm", "--embedder"])
def test_no_name_in_a_dry_run(run, six, option, spec):
    done = run("score", six, "--dry-run", option, spec)
    assert done.exit_code == 2
    assert f"{option} {spec}: is none of" in done.stderr or f"{option} {spec}: base_url must be" in done.stderr


@pytest.mark.parametrize("spec", ["local", "local:/none.gguf", "openai:gpt-5", NOBODY, f"m@{NOBODY}"])
def test_nobody_needs_to_be_there_for_a_dry_run(run, six, monkeypatch, spec):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run("score", six, "--dry-run", "--llm", spec).exit_code == 0
    assert run("score", six, "--dry-run", "--embedder", spec).exit_code == 0


def test_a_server_names_its_model(server):
    assert llm(server.url).model == MODEL
    assert llm(server.url.removesuffix("/v1")).model == MODEL


def test_a_model_and_its_server(server):
    client = llm(f"{MODEL}@{server.url}")
    assert isinstance(client, OpenAICompatible)
    assert client.model == MODEL
    assert {seen.path for seen in server.seen} == {"/v1/models"}  # it was asked whether it is there; nothing was spent


def test_openai(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert llm("openai:gpt-5").model == "gpt-5"
    assert embedder(None, "openai:gpt-5").model == "text-embedding-3-small"
    assert embedder("openai:e", "local").model == "e"


def test_openai_without_a_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ClickException, match="--llm openai:gpt-5: no API key for OpenAI: set OPENAI_API_KEY"):
        llm("openai:gpt-5")


@pytest.mark.parametrize("spec", [NOBODY, f"m@{NOBODY}"])
def test_nobody_is_there(spec):
    with pytest.raises(ClickException, match=f"--llm {spec}: .*is the server running") as caught:
        llm(spec)
    assert caught.value.exit_code == 2
    with pytest.raises(ClickException, match=f"--embedder {spec}: .*is the server running"):
        embedder(spec)


def test_a_wrong_key_is_said_before_the_first_row(openai_server):
    server = openai_server(judge)
    server.models = error(401, "Incorrect API key provided")
    with pytest.raises(ClickException, match="--llm m@http.*Incorrect API key provided"):
        llm(f"m@{server.url}")


@pytest.mark.parametrize(
    "models", [error(404, "Not Found"), error(403, "missing scope"), Answer(b"<html>"), {"data": []}]
)
def test_a_server_that_lists_no_models_may_be_a_judge(openai_server, models):
    server = openai_server(judge)
    server.models = models
    assert llm(f"{MODEL}@{server.url}").model == MODEL


def test_a_server_that_lists_none_must_be_told_which(openai_server):
    with pytest.raises(ClickException, match="has no models: load one into the server, or name the model"):
        llm(openai_server(judge, models=()).url)


def test_a_judge_on_a_server_embeds_too(server):
    same = llm(server.url)
    assert embedder(None, server.url, same) is same
    assert embedder(None, server.url).model == MODEL


@pytest.mark.parametrize(
    ("spec", "local"), [("local", True), ("local:/m.gguf", True), ("locally", False), (NOBODY, False)]
)
def test_is_local(spec, local):
    assert is_local(spec) is local


class TestLocal:
    """Without the models: what is missing is said before a row is read."""

    @pytest.fixture(autouse=True)
    def _nothing_pulled(self, tmp_path, monkeypatch):
        monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path))

    def test_nothing_is_pulled(self, tmp_path):
        pytest.importorskip("xllamacpp")
        with pytest.raises(
            ClickException, match=f"--llm local: qwen.* is not in {tmp_path}: .*`ragstone pull`"
        ) as caught:
            llm("local")
        assert caught.value.exit_code == 2
        with pytest.raises(ClickException, match="--embedder local: all-minilm.*`ragstone pull`"):
            embedder(None, "local")

    def test_a_path_to_nothing(self, tmp_path):
        with pytest.raises(ClickException, match="--llm local:.*none.gguf: no such model file"):
            llm(f"local:{tmp_path / 'none.gguf'}")
        with pytest.raises(ClickException, match="--embedder local:.*none.onnx: no such model file"):
            embedder(f"local:{tmp_path / 'none.onnx'}")

    def test_a_file_that_is_no_model(self, tmp_path):
        pytest.importorskip("xllamacpp")
        path = tmp_path / "rows.jsonl"
        path.write_text("{}")
        with pytest.raises(ClickException, match="llama.cpp cannot load"):
            llm(f"local:{path}")
