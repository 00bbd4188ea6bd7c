"""The ten jobs: ragstone's snippets run against a server on loopback, and the page's table is true."""

import json
import runpy
import sys

import pytest

from ragstone.sources import SourceError

from ..support.openai_server import OpenAIServer  # noqa: TID252
from .test_pages import ROOT
from .test_snippets import openai

FOLDER = ROOT / "benchmarks" / "jobs"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the checkout: benchmarks/")
JOBS = sorted(path.stem for path in (FOLDER / "ragstone").glob("*.py"))


@pytest.fixture
def table():
    return runpy.run_path(str(FOLDER / "table.py"))


def test_the_table_is_true(table):
    page = (ROOT / "docs" / "ten-jobs.md").read_text(encoding="utf-8")
    assert table["written"](page, table["table"]()) == page
    counts = [[table["lines"](library, job) for library in table["LIBRARIES"]] for job in table["JOBS"]]
    assert all(ours <= min(filter(None, theirs), default=ours) for ours, *theirs in counts), "ahead or level"


@pytest.mark.parametrize("job", JOBS)
def test_a_snippet_of_ragstone_runs(job, tmp_path, monkeypatch, capsys):
    pytest.importorskip("llama_index.core")
    monkeypatch.chdir(tmp_path)
    for name in ("data", "chain_app", "engine_app"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(FOLDER))
    with OpenAIServer(openai, models=["gpt-5-mini"]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        rows = runpy.run_path(str(FOLDER / "data.py"))["rows"]
        (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
        source = (FOLDER / "ragstone" / f"{job}.py").read_text(encoding="utf-8")
        (tmp_path / f"{job}.py").write_text(source.replace("http://127.0.0.1:11434/v1", server.url))
        try:
            for name, function in runpy.run_path(f"{job}.py").items():
                if name.startswith("test_"):
                    function()
        except SourceError as error:
            raise AssertionError(str(error)) from error
        assert any("chat" in seen.path for seen in server.seen), "it asked the judge"
    for name in ("data", "chain_app", "engine_app"):
        monkeypatch.delitem(sys.modules, name, raising=False)
