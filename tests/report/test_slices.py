"""Means by what outcomes say of their runs, by what people said of the answers, and by metadata."""

import re
from dataclasses import replace

import pytest

from ragstone import Sample
from ragstone.live import Feedback, SQLiteSink
from ragstone.report import MetricInfo, Report

from ..support.command import command  # noqa: TID252
from .data import NOON
from .reports import data_of, records, rows_of, words_of

TAGS = [("canary", "eu"), ("eu",), ("canary", "canary"), ()]


def slices(report):
    """Return the rows of each slice on the page: value, mean, how many."""
    return {
        each["title"]: [(value, round(mean[0], 3), mean[1]) for value, (mean,) in each["rows"]]
        for each in data_of(report.html())["slices"]
    }


def tagged():
    return [replace(each, tags=TAGS[each.row], rate=0.5) for each in records([0.2, 0.8, 0.4, 0.9])]


def test_a_row_counts_once_for_each_of_its_tags_and_the_worst_stand_first():
    assert slices(Report.of(tagged())) == {"tag": [("canary", 0.3, 2), ("eu", 0.5, 2), ("none", 0.9, 1)]}
    lower = MetricInfo("demo", "1", "judge", higher_is_better=False)
    assert [value for value, *_ in slices(Report.of(tagged(), [lower]))["tag"]] == ["none", "eu", "canary"]


def test_means_weigh_by_the_rate():
    given = [
        replace(each, run_name="b" if each.row == 2 else "a", rate=0.25 if each.row else 1.0)
        for each in records([0.5, 0.8, 0.1])
    ]
    by_name = {"run name": [("b", 0.1, 1), ("a", pytest.approx((0.5 + 4 * 0.8) / 5), 2)]}
    assert slices(Report.of(given)) == by_name
    # A sample's metadata may say the same: it is one slice.
    samples = [Sample(response="a", metadata={"run_name": each.run_name}) for each in given]
    assert slices(Report.of(given, samples=samples)) == by_name
    unnamed = [replace(each, run_name=None) for each in given]
    assert slices(Report.of(unnamed, samples=samples)) == by_name


def test_what_tells_all_rows_apart_or_none_is_no_slice():
    samples = [
        Sample(response="a", metadata={"tags": "de" if i % 2 else "en", "n": i, "one": 1, "score": 0.5, "list": ["x"]})
        for i in range(60)
    ]
    given = [replace(each, run_name="rag") for each in records([i % 2 for i in range(60)])]
    assert slices(Report.of(given, samples=samples)) == {"tags": [("en", 0.0, 30), ("de", 1.0, 30)]}


def test_people_are_told_apart_only_where_asked_for(tmp_path):
    report = Report.of([replace(each, user_id=f"u{each.row % 25}") for each in records([i / 50 for i in range(50)])])
    assert slices(report) == {}
    report.to_json(path := tmp_path / "a.jsonl")
    done = command("report", path, "--by", "user_id", "--by", "thread_id", "--out", "-")
    assert [re.split("  +", line)[:3] for line in done.stderr.splitlines() if line.startswith("u0")] == [
        ["u0", "2", "0.250"]
    ]
    assert "--by thread_id: no sample has one" in done.stderr
    assert "and 5 more" in done.stderr
    assert data_of(done.stdout)["slices"][0]["more"] == 5
    assert {user: each.n for user, each in report.by("user_id")["demo"].items()} == {f"u{i}": 2 for i in range(25)}
    assert slices(report)["user id"][0] == ("u0", 0.25, 2)


def test_feedback_is_read_from_the_database_the_latest_and_comments_are_shown_where_the_texts_are(tmp_path):
    def said(row, value, comment=None, at=NOON):
        return Feedback(sample_id=f"q{row}", value=value, comment=comment, at=at)

    sample = Sample(user_input="Who?", response="She.")
    sink = SQLiteSink(tmp_path / "a.db")
    sink.write([replace(each, sample=None if each.row else sample) for each in records([0.2, 0.4, 0.9])])
    sink.feedback([said(0, "no"), said(0, "thumbs_down", "<b>wrong", NOON + 1), said(1, "thumbs_up", "secret")])
    sink.close()
    report = Report.load(tmp_path / "a.db")
    assert slices(report) == {"feedback": [("thumbs_down", 0.2, 1), ("thumbs_up", 0.4, 1), ("none", 0.9, 1)]}
    page = report.html()
    assert "do not stand for the whole traffic" in words_of(page)
    assert [row[3] for row in rows_of(page)["rows"]] == [
        ["thumbs_down", "<b>wrong"], ["thumbs_up", ""], None,
    ]  # fmt: skip
    assert "secret" not in page
