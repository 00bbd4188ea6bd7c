"""`save` goes by the suffix, and what nobody named replaces nothing."""

import json
import stat

import pytest

from ragstone import ContextRelevancy, Report, Score, evaluate
from ragstone.testing import FakeLLM

from ..support.command import command  # noqa: TID252


@pytest.fixture(scope="module")
def report():
    rows = [{"question": "Q?", "contexts": ["One. Two."]}]
    return evaluate(rows, ContextRelevancy(llm=FakeLLM({"ids": [1]})), progress=False)


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.html", b"<!doctype html>"), ("a.csv", b"row,"), ("a.json", b"{"), ("a.JSONL", b"{"), ("a.parquet", b"PAR1")],
)
def test_the_suffix_says_what_is_written(report, tmp_path, name, begins):
    path = tmp_path / name
    report.save(path)
    assert path.read_bytes()[: len(begins)].lower() == begins.lower()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if begins == b"{":
        assert isinstance(next(Report.load(path).results()).outcome, Score)


@pytest.mark.parametrize("name", ["report", "a.html.bak"])
def test_another_suffix_is_refused(report, tmp_path, name):
    with pytest.raises(ValueError, match=r"is none of \.html, \.csv, \.json, \.jsonl, \.parquet; the suffix says"):
        report.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_no_file_that_nobody_named_is_replaced(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report.save("runs.jsonl")
    others = {"runs-report.html", "label.html"}
    for name in others:
        (tmp_path / name).write_text("mine")
    for arguments, made in (
        (["report", "runs.jsonl"], "runs-report-2.html"),
        (["report", "runs.jsonl"], "runs-report-3.html"),
        (["label", "runs.jsonl"], "label-2.html"),
    ):
        done = command(*arguments)
        assert (done.exit_code, made in done.output, (tmp_path / made).exists()) == (0, True, True), done.output
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o600
    assert {(tmp_path / name).read_text() for name in others} == {"mine"}
    assert json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[0])["ragstone_results"] == 1
