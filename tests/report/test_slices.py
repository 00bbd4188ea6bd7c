"""Means by what outcomes say of their runs, and by what people said of the answers."""

import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from ragstone import Sample
from ragstone.cli.main import cli
from ragstone.live import Feedback, SQLiteSink
from ragstone.report import Report, aggregates
from ragstone.results.memory import MemoryResults

from .data import NOON
from .reports import data_of, records, words_of

TAGS = [("canary", "eu"), ("eu",), ("canary", "canary"), ()]


def titles(report):
    return [each["title"] for each in data_of(report.html())["slices"]]


def tagged():
    given = records([0.2, 0.8, 0.4, 0.9])
    return [replace(each, tags=TAGS[each.row], user_id=f"u{each.row % 2}", rate=0.5) for each in given]


def said(row, value, comment=None, at=NOON):
    return Feedback(sample_id=f"q{row}", value=value, comment=comment, at=at)


class Answered(MemoryResults):
    given: tuple[Feedback, ...] = ()

    def feedback(self):
        return {each.sample_id: each for each in self.given}


def answered(given, *feedback):
    results = Answered(given)
    results.given = feedback
    return Report(results)


def test_by_tags_a_row_counts_once_for_each_of_its_tags_and_the_worst_stand_first():
    means = Report.of(tagged()).by("tags")["demo"]
    assert [(tag, each.n, round(each.mean, 3)) for tag, each in means.items()] == [
        ("canary", 2, 0.3), ("eu", 2, 0.5), ("", 1, 0.9),
    ]  # fmt: skip
    assert means[""].low is None
    assert means["eu"].low < 0.5 < means["eu"].high


def test_where_lower_is_better_the_highest_stand_first():
    info = aggregates.MetricInfo("demo", "1", "judge", higher_is_better=False)
    assert list(Report.of(tagged(), [info]).by("tags")["demo"]) == ["", "eu", "canary"]


def test_means_weigh_by_the_rate_and_draws_count_once():
    given = [*records([[0.0, 1.0], 0.8])]
    given = [replace(each, run_name="rag", rate=0.25 if each.row else 1.0) for each in given]
    assert Report.of(given).by("run_name")["demo"]["rag"].mean == pytest.approx((0.5 + 4 * 0.8) / 5)
    assert Report.of(given).by("run_name")["demo"]["rag"].n == 2


def test_people_are_told_apart_only_where_asked_for():
    report = Report.of(tagged())
    assert "user id" not in titles(report)
    assert {user: each.n for user, each in report.by("user_id")["demo"].items()} == {"u0": 2, "u1": 2}
    assert list(report.by("thread_id")["demo"]) == [""]
    (shown,) = (each for each in data_of(report.html())["slices"] if each["title"] == "user id")
    assert [(value, round(mean[0], 3), mean[1]) for value, (mean,) in shown["rows"]] == [
        ("u0", 0.3, 2),
        ("u1", 0.85, 2),
    ]


def test_many_values_do_not_fill_the_memory_and_the_page_shows_the_worst():
    given = [replace(each, run_name=f"r{each.row}") for each in records([i / 10_100 for i in range(10_100)])]
    report = Report.of(given)
    assert len(report.by("run_name")["demo"]) == 10_000
    (shown,) = data_of(report.html())["slices"]
    assert [value for value, _ in shown["rows"]] == [f"r{i}" for i in range(20)]
    assert shown["more"] == 9_980


def test_one_value_is_no_section():
    given = [replace(each, run_name="rag") for each in records([0.2, 0.8])]
    assert titles(Report.of(given)) == []


def test_feedback_is_a_facet():
    report = answered([*records([0.2, 0.4, 0.9])], said(0, "thumbs_down"), said(1, "thumbs_up"))
    means = report.by("feedback")["demo"]
    assert {word: (each.n, each.mean) for word, each in means.items()} == {
        "thumbs_down": (1, 0.2), "thumbs_up": (1, 0.4), "": (1, 0.9),
    }  # fmt: skip
    assert "do not stand for the whole traffic" in words_of(report.html())
    assert sum(each.n for each in report.by("run_name")["demo"].values()) == 3


def test_comments_are_shown_where_the_texts_are():
    sample = Sample(user_input="Who?", response="She.")
    given = [*records([0.2, 0.4])]
    given[0] = replace(given[0], sample=sample)
    html = answered(given, said(0, "thumbs_down", "<b>wrong"), said(1, "thumbs_up", "secret")).html()
    assert [row["feedback"] for row in data_of(html)["rows"]] == [["thumbs_down", "<b>wrong"], ["thumbs_up", ""]]
    assert "secret" not in html


def test_slices_by_metadata_leave_out_what_tells_all_rows_apart():
    samples = [
        Sample(response="a", metadata={"tags": "de" if i % 2 else "en", "n": i, "one": 1, "score": 0.5, "list": ["x"]})
        for i in range(60)
    ]
    found = Report.of(records([i % 2 for i in range(60)]), samples=samples)
    slices = found.aggregates()
    assert slices.metadata_keys() == ["tags"]
    (summary,) = slices
    assert {value: (each.n, each.mean) for value, each in slices.by_metadata("tags", summary.info).items()} == {
        "en": (30, 0.0), "de": (30, 1.0),
    }  # fmt: skip
    assert titles(found) == ["tags"]


def test_the_command_prints_it_and_reads_feedback_from_the_database(tmp_path):
    path = tmp_path / "a.db"
    sink = SQLiteSink(path)
    sink.write([replace(each, submitted_at=NOON) for each in tagged()])
    sink.feedback([said(0, "thumbs_down"), said(0, "thumbs_up", at=NOON + 1)])
    sink.close()
    out = tmp_path / "a.html"
    done = CliRunner().invoke(
        cli, ["report", str(path), "--by", "user_id", "--by", "feedback", "--out", str(out)], catch_exceptions=False
    )
    lines = [re.split("  +", line) for line in done.output.splitlines()]
    assert ["u0", "2", "0.300", "-0.971 – 1.571"] in lines
    assert ["thumbs_up", "1", "0.200", "no interval: one value"] in lines
    assert "user id" in words_of(out.read_text(encoding="utf-8"))
    assert CliRunner().invoke(cli, ["report", str(path), "--by", "name"]).exit_code == 2
