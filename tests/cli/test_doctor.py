"""`ragstone doctor` and `ragstone pull`; and the embedded model, where its files have been pulled."""

import importlib.metadata
import re

import pytest

import ragstone.local

from .conftest import MODEL

NOBODY = "http://127.0.0.1:9"


def test_all_is_well(run, server):
    done = run("doctor", "--llm", server.url)
    assert (done.exit_code, done.stderr) == (0, "")
    first, base, *_, asked, placed = done.stdout.splitlines()
    assert first.startswith(f"ragstone {ragstone.__version__}, Python 3.")
    assert f"numpy {importlib.metadata.version('numpy')}" in base
    extras = {"labels", "langchain", "llama-index", "local", "openai", "otel", "sql"}
    assert extras <= set(re.findall(r"^ragstone\[(.*)\]: ", done.stdout, re.MULTILINE))
    assert asked.startswith(f"judge {server.url}: {MODEL} answers 'yes', gives probabilities, is asked together (")
    assert placed.startswith(f"embedder default: {MODEL} answers with 8 dimensions (")


def test_nobody_is_there(run, server, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path))
    done = run("doctor", "--llm", NOBODY, "--embedder", server.url)
    assert done.exit_code == 1
    judged, placed = done.stdout.splitlines()[-2:]
    assert judged.startswith(f"judge: --llm {NOBODY}: cannot ask")
    assert placed.startswith(f"embedder {server.url}: {MODEL} answers with 8 dimensions")
    pytest.importorskip("xllamacpp")
    assert run("doctor").stdout.count("download it once: `ragstone pull`") == 2


def test_a_folder_that_cannot_be_written_is_said(run, tmp_path, monkeypatch):
    pytest.importorskip("filelock")
    (tmp_path / "plain").touch()
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path / "plain" / "home"))
    done = run("pull")
    assert (done.exit_code, "set RAGSTONE_HOME to a folder that you can write" in done.stderr) == (2, True)
