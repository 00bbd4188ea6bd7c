"""`ragstone report`: what it writes, says and returns."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli
from ragstone.report import report

from .data import NOON, database, health, records


@pytest.fixture
def path(tmp_path):
    return database(tmp_path / "a.db", records(10), health())


def run(*args):
    return CliRunner().invoke(cli, ["report", *map(str, args)])


def test_it_writes_report_html_here(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(path)
    assert done.exit_code == 0
    names = "alignment_coverage, context_relevancy, response_relevancy, summarization_score"
    assert done.output == f"report.html: 40 outcomes of {names}\n"
    assert (tmp_path / "report.html").read_bytes().startswith(b"<!doctype html>")


def test_out(path, tmp_path):
    target = tmp_path / "b.html"
    target.write_text("old")
    assert run(path, "--out", target).exit_code == 0
    assert target.read_text(encoding="utf-8").endswith("</html>\n")


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


def test_an_empty_database_is_no_error(tmp_path):
    path = database(tmp_path / "a.db", [], health())
    done = run(path, "--out", tmp_path / "b.html")
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'b.html'}: 0 outcomes; nothing was scored yet\n")
    assert "Nothing was scored yet." in (tmp_path / "b.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no.db"], "no.db: no such file; give the path of a Monitor's SQLiteSink, or a database URL"),
        (["{path}", "--since", "soon"], "--since: 'soon' is no time; write 30m, 24h or 7d"),
        (["{path}", "--out", "{path}"], "is the database itself"),
        (["{path}", "--out", "{folder}/no/b.html"], "cannot write: No such file or directory"),
        (["{path}", "--out", "{folder}"], "is a directory"),
        ([__file__], "is no ragstone database"),
    ],
)
def test_errors(path, tmp_path, args, message):
    before = path.read_bytes()
    done = run(*(arg.format(path=path, folder=tmp_path) for arg in args))
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("\n", " ").split())
    assert "Traceback" not in done.output
    assert path.read_bytes() == before


def test_it_is_listed():
    assert "report" in CliRunner().invoke(cli, ["--help"]).output


def test_the_function(path):
    assert report(path, since=None).startswith("<!doctype html>")
    assert report(path, since="1970-01-01").count("40 outcomes") == 1
    with pytest.raises(ValueError, match="since: 'x' is no time"):
        report(path, since="x")


def test_the_same_page_for_the_same_findings(path):
    from ragstone.report.gather import gather
    from ragstone.report.page import page

    assert page(gather(path), made_at=NOON) == page(gather(path), made_at=NOON)
