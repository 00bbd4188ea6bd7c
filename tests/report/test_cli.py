"""`ragstone report`: what it writes, says and returns."""

import subprocess
import sys
from functools import partial

import pytest

from ragstone.report import MetricInfo

from ..support.command import command  # noqa: TID252
from .data import database, records
from .reports import report, words_of


@pytest.fixture
def path(tmp_path):
    return database(tmp_path / "a.db", records(10))


run = partial(command, "report")


def test_it_writes_a_page_named_after_its_source_here(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(path)
    assert done.exit_code == 0
    names = "alignment_coverage, context_relevancy, response_relevancy, summarization_score"
    assert done.output == f"{path.stem}-report.html: 40 outcomes of {names}\n"
    assert (tmp_path / f"{path.stem}-report.html").read_bytes().startswith(b"<!doctype html>")


def test_standard_output_holds_the_page_alone(path):
    command = [sys.executable, "-m", "ragstone", "report", str(path), "--out", "-"]
    environ = {"PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, check=True, env=environ)
    assert done.stdout.startswith(b"<!doctype html>")
    assert done.stdout.decode().endswith("</html>\n")
    assert done.stderr.startswith(b"-: 40 outcomes of ")


def test_since(path, tmp_path):
    out = tmp_path / "b.html"
    assert run(path, "--out", out, "--since", "1970-01-01").output.startswith(f"{out}: 40 outcomes")
    assert run(path, "--out", out, "--since", "9000-01-01").output == f"{out}: 0 outcomes since then\n"
    assert "Nothing was submitted since 9000-01-01" in out.read_text(encoding="utf-8")


def test_the_change_against_another_run(tmp_path):
    old, new, out = tmp_path / "old.jsonl", tmp_path / "new.jsonl", tmp_path / "a.html"
    metrics = [MetricInfo("demo", "1", "judge", (0.0, 1.0))]
    report([0.25] * 20, metrics=metrics).to_json(old)
    report([0.75] * 20, metrics=metrics).to_json(new)
    report([0.75] * 20, version="2").to_json(tmp_path / "other.jsonl")
    assert run(new, "--against", old, "--out", out).exit_code == 0
    words = "demo: by this judge, new is better (old 0.250, new 0.750); 20 samples got better, 0 worse."
    assert words in words_of(out.read_text("utf-8"))
    refused = run(new, "--against", tmp_path / "other.jsonl", "--out", out)
    assert refused.exit_code == 2
    assert "not comparable" in refused.output
    assert "is --against" in run(new, "--against", old, "--out", old).output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no.db"], "no.db: no such file; pass a results file, a Monitor's database, or a database URL"),
        (["{path}", "--since", "soon"], "--since: 'soon' is no time; write 30m, 24h or 7d"),
        (["{path}", "--out", "{folder}/no/b.html"], "cannot write: there is no folder"),
        (["{path}", "--out", "{folder}"], "is a directory"),
        ([__file__], "has no results"),
    ],
)
def test_errors(path, tmp_path, args, message):
    before = path.read_bytes()
    done = run(*(arg.format(path=path, folder=tmp_path) for arg in args))
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("\n", " ").split())
    assert "Traceback" not in done.output
    assert path.read_bytes() == before
