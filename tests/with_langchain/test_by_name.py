"""Judges by name: "langchain:PROVIDER:MODEL" in Python, on the command line and in a worker."""

import json
from importlib.metadata import entry_points

import pytest

from ragstone import ResponseRelevancy, evaluate
from ragstone.judge_names import RegistryError, make_embedder, make_llm

from ..support.command import said  # noqa: TID252

JUDGE = "langchain:openai:gpt-4o"
ROW = {"user_input": "Which?", "retrieved_contexts": ["This. Not that."], "response": "This."}


@pytest.fixture(scope="module", autouse=True)
def _installed():
    assert entry_points(group="ragstone.judges"), "this installation is older than the entry points: install it again"


@pytest.fixture
def server(openai_server, monkeypatch):
    server = openai_server(lambda body: '{"ids": [1]}')
    for name, value in (("OPENAI_BASE_URL", server.url), ("OPENAI_API_BASE", server.url), ("OPENAI_API_KEY", "k")):
        monkeypatch.setenv(name, value)
    return server


def in_python(folder):
    return evaluate([ROW], ["context_relevancy"], llm=JUDGE, progress=False)[0].outcome.value


def on_the_command_line(folder):
    (folder / "rows.jsonl").write_text(json.dumps(ROW))
    asked = ("--llm", JUDGE, "--metric", "context_relevancy")
    said("score", folder / "rows.jsonl", *asked, "--out", folder / "out.jsonl")
    return json.loads((folder / "out.jsonl").read_text().splitlines()[-1])["value"]


@pytest.mark.parametrize("way", [in_python, on_the_command_line])
def test_one_name_everywhere(way, server, tmp_path) -> None:
    assert way(tmp_path) == 0.5
    assert {body["model"] for body in server.bodies} == {"gpt-4o"}
    assert all("temperature" not in body for body in server.bodies), "the provider's own settings"


def test_an_embedder_by_name(server) -> None:
    embedder = make_embedder("langchain:openai:text-embedding-3-small", JUDGE)
    assert repr(embedder) == "LangChainEmbedder('text-embedding-3-small')"  # its tokenizer needs the network
    with pytest.raises(RegistryError, match="embedder: LangChainLLM does not embed texts; name an embedder"):
        ResponseRelevancy(llm=JUDGE)


def test_a_name_that_langchain_does_not_know(server) -> None:
    for name in ("langchain:nobody:m", "langchain:zork"):
        with pytest.raises(RegistryError, match=f"{name} cannot be made .ValueError: Unable to infer model provider"):
            make_llm(name)
    for name in ("langchain:", "langchian:openai:gpt-4o"):
        with pytest.raises(RegistryError, match=f"'{name}' is none of local, .*, langchain:MODEL, or module"):
            make_llm(name)
    for name in ("langchain:anthropic:", "langchain:openai: "):
        with pytest.raises(RegistryError, match=f"{name} cannot be made .*names no model: {name.strip()}MODEL"):
            make_llm(name)
