"""`ragstone compare`, and the page of `ragstone score --report`."""

import json

import pytest

from ragstone.registry import GROUPS

from .conftest import row


@pytest.fixture
def scored(score, rows, tmp_path):
    """Scores rows to a result file by `ragstone score` itself."""

    def make(name, *given, options=()):
        path = tmp_path / f"{name}.jsonl"
        found = score(rows(*given, name=f"{name}-rows.jsonl"), "--metric", "context_relevancy", "--out", path, *options)
        assert found.exit_code == 0, found.output
        return path

    return make


def changed(path, **more):
    """Return a copy of a result file in which all lines say something else."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    target = path.with_name("b.jsonl")
    target.write_text(
        "".join(json.dumps({**line, **more} if "id" in line else {"ragstone_results": 1}) + "\n" for line in lines)
    )
    return target


def test_two_files(run, scored, tmp_path):
    a = scored("a", *(row(i, id=f"q{i}") for i in range(8)))
    found = run("compare", a, changed(a, value=0.0), "--report", tmp_path / "c.html")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[0] == "b.jsonl compared with a.jsonl"
    assert "0/0/8" in lines[2]
    assert lines[3].startswith("context_relevancy: by this judge, a is better: -")
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    assert found.stderr == f"Report: {tmp_path / 'c.html'}\n"


@pytest.mark.parametrize("change", [{"version": "9"}, {"judge": "other"}])
def test_other_versions_or_judges(run, scored, change):
    a = scored("a", row(1), row(2))
    found = run("compare", a, changed(a, **change))
    assert (found.exit_code, found.stdout) == (2, "")
    assert "are not comparable" in found.stderr
    assert "--any-version" in found.stderr
    assert run("compare", a, a.with_name("b.jsonl"), "--any-version").exit_code == 0


def test_score_writes_a_page(score, rows, tmp_path):
    page = tmp_path / "report.html"
    found = score(rows(row(1), b"oops", {"user_input": "Why?", "response": "So."}), "--report", page)
    assert found.exit_code == 2  # for the bad line
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    for part in (
        f"2 samples, {2 * len(GROUPS['rag'])} outcomes",
        "rows.jsonl",
        "Rows that held no sample",
        "not JSON",
        "missing_input",
    ):
        assert part in text
    assert "Who wrote book 1?" in text  # the samples' texts are there
