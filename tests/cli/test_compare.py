"""`ragstone compare`, and the page of `ragstone score --report`."""

import json

import pytest

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


def changed(path, value, name, **more):
    """Return a copy of a result file in which all scores have the value."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    target = path.with_name(f"{name}.jsonl")
    target.write_text("".join(json.dumps({**line, "value": value, **more}) + "\n" for line in lines))
    return target


def test_two_files(run, scored, tmp_path):
    a = scored("a", *(row(i, id=f"q{i}") for i in range(8)))
    b = changed(a, 0.0, "b")
    found = run("compare", a, b, "--report", tmp_path / "c.html")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[:2] == ["a: a.jsonl", "b: b.jsonl"]
    assert "0/0/8" in lines[3]
    assert lines[4].startswith("context_relevancy: a is better: -")
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    assert found.stderr == f"{tmp_path / 'c.html'}: written\n"


def test_the_same_file_twice(run, scored):
    a = scored("a", *(row(i) for i in range(3)))
    found = run("compare", a, a)
    assert found.exit_code == 0
    assert "a: a.jsonl (a)" in found.stdout
    assert "0/3/0" in found.stdout


def test_draws_are_compared_by_their_noise(run, scored):
    a = scored("a", *(row(i) for i in range(4)), options=("--repeat", "2"))
    assert "the judge's own noise" in run("compare", a, a).stdout


@pytest.mark.parametrize("change", [{"version": "9"}, {"judge": "other"}])
def test_other_versions_or_judges(run, scored, change):
    a = scored("a", row(1), row(2))
    b = changed(a, 0.5, "b", **change)
    found = run("compare", a, b)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "are not comparable" in found.stderr
    assert "--any-version" in found.stderr
    assert run("compare", a, b, "--any-version").exit_code == 0


def test_what_is_no_result_file(run, rows, scored):
    a = scored("a", row(1))
    found = run("compare", a, rows(row(1), name="b.jsonl"))
    assert found.exit_code == 2
    assert "holds no results: give a file that `ragstone score --out`" in found.stderr
    assert run("compare", a, "no-such.jsonl").exit_code == 2
    found = run("compare", a, rows(name="empty.jsonl"))
    assert found.exit_code == 2
    assert "no metric is in both: a.jsonl has context_relevancy, empty.jsonl has none" in found.stderr


def test_a_torn_last_line_is_said(run, scored):
    a = scored("a", row(1), row(2), row(3))
    b = a.with_name("b.jsonl")
    b.write_bytes(a.read_bytes()[:-30])
    found = run("compare", a, b)
    assert found.exit_code == 0
    assert "b.jsonl: its end is missing" in found.stdout
    assert "Left out: 1 only in a." in found.stdout


def judged(server):
    return [seen.path for seen in server.seen].count("/v1/chat/completions")


@pytest.mark.parametrize("command", ["compare", "score"])
def test_a_page_that_cannot_be_written_is_said_before_anything_is_done(run, score, scored, server, tmp_path, command):
    a = scored("a", row(1))
    asked = judged(server)
    files = (a, a) if command == "compare" else (tmp_path / "a-rows.jsonl",)
    start = run if command == "compare" else score
    arguments = ("compare", *files) if command == "compare" else files
    for page, said in ((tmp_path / "none" / "p.html", "no such folder: "), (files[0], "is the input ")):
        before = files[0].read_bytes()
        found = start(*arguments, "--report", page)
        assert found.exit_code == 2
        assert said in found.stderr
        assert files[0].read_bytes() == before
    assert judged(server) == asked


def test_score_writes_a_page(score, rows, tmp_path):
    page = tmp_path / "report.html"
    given = rows(*(row(i) for i in range(3)), b"oops", {"user_input": "Why?", "response": "So."})
    found = score(given, "--metric", "context_relevancy", "--metric", "response_relevancy", "--report", page)
    assert found.exit_code == 2  # for the bad line
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "4 rows, 8 outcomes" in text
    assert "rows.jsonl" in text
    assert "Rows that held no sample" in text
    assert "not JSON" in text
    assert "missing_input" in text
    assert "Who wrote book 1?" in text  # the samples' texts are there


def test_a_page_of_nothing(score, rows, tmp_path):
    found = score(rows(b"oops"), "--report", tmp_path / "report.html")
    assert found.exit_code == 2
    assert "0 rows, 0 outcomes" in (tmp_path / "report.html").read_text()
