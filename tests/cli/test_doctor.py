"""`ragstone doctor` and `ragstone pull`."""

import importlib.metadata

import pytest

import ragstone.local

from ..support.openai_server import error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import MODEL, judge

NOBODY = "http://127.0.0.1:9"


def test_all_is_well(run, server):
    done = run("doctor", "--llm", server.url)
    assert (done.exit_code, done.stderr) == (0, "")
    first, base, calibrate, openai, local, asked, placed = done.stdout.splitlines()
    assert first.startswith(f"ragstone {ragstone.__version__}, Python 3.")
    assert f"numpy {importlib.metadata.version('numpy')}" in base
    assert calibrate.startswith("ragstone[calibrate]: ")
    assert openai.startswith("ragstone[openai]: openai ")
    assert local.startswith("ragstone[local]: xllamacpp ")
    assert asked.startswith(f"judge {server.url}: {MODEL} answers 'yes', gives probabilities, is asked together (")
    assert placed.startswith(f"embedder default: {MODEL} answers with 8 dimensions (")


def test_a_judge_without_probabilities(run, openai_server):
    server = openai_server(lambda body: judge(body) if "input" in body else "yes")
    assert "answers 'yes', gives no probabilities" in run("doctor", "--llm", server.url).stdout


def test_nobody_is_there(run, server):
    done = run("doctor", "--llm", NOBODY, "--embedder", server.url)
    assert done.exit_code == 1
    judged, placed = done.stdout.splitlines()[-2:]
    assert judged.startswith(f"judge: --llm {NOBODY}: cannot ask")
    assert placed.startswith(f"embedder {server.url}: {MODEL} answers with 8 dimensions")


def test_a_server_that_does_not_embed(run, openai_server):
    server = openai_server(lambda body: error(400, "no\x1b[1membeddings") if "input" in body else judge(body))
    done = run("doctor", "--llm", server.url)
    assert done.exit_code == 1
    assert "embedder default: does not answer: BadRequestError: " in done.stdout
    assert "no\ufffd[1membeddings" in done.stdout


def test_what_is_missing(run, server, monkeypatch):
    monkeypatch.setattr("ragstone.cli.doctor._EXTRAS", {"local": ("no-such-package", "numpy")})
    assert "ragstone[local]: no-such-package missing, numpy 2" in run("doctor", "--llm", server.url).stdout


def test_nothing_is_pulled(run, tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path))
    done = run("doctor")
    assert done.exit_code == 1
    assert done.stdout.count("fetch it once with `ragstone pull`") == 2


class TestPull:
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path / "home"))

    def test_a_file_that_is_another(self, run, tmp_path):
        wrong = tmp_path / "model.gguf"
        wrong.write_bytes(b"GGUF")
        done = run("pull", "--llm", wrong)
        assert done.exit_code == 1
        assert "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf: " in done.stderr

    def test_a_path_to_nothing(self, run):
        done = run("pull", "--llm", "none.gguf")
        assert done.exit_code == 2
        assert "'none.gguf' does not exist" in done.stderr

    @pytest.mark.parametrize(
        ("raised", "code", "message"),
        [
            (ImportError('the embedded models need platformdirs: pip install "ragstone[local]"'), 2, "ragstone[local]"),
            (ragstone.local.PullError("a.gguf: the disk is full"), 1, "a.gguf: the disk is full\n"),
            (KeyboardInterrupt(), 130, "Interrupted: run it again to go on from here.\n"),
        ],
    )
    def test_what_goes_wrong(self, run, monkeypatch, raised, code, message):
        def fetch(*paths):
            raise raised

        monkeypatch.setattr(ragstone.local, "pull", fetch)
        done = run("pull")
        assert done.exit_code == code
        assert message in done.stderr

    def test_the_paths_are_printed(self, run, tmp_path, monkeypatch):
        given = []
        monkeypatch.setattr(
            ragstone.local, "pull", lambda *paths: given.extend(paths) or (tmp_path / "a", tmp_path / "b")
        )
        done = run("pull", "--tokenizer", tmp_path)
        assert done.stdout == f"{tmp_path / 'a'}\n{tmp_path / 'b'}\n"
        assert given == [None, None, tmp_path]
