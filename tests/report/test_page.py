"""The page: what it says of what it was given. How it looks and that nothing runs: test_browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from ragstone import Usage
from ragstone.page.charts import distribution
from ragstone.report import Report
from ragstone.report.statistics import Bin
from ragstone.results.read import MemoryResults
from ragstone.results.record import Record

from .data import NOON, health
from .reports import data_of, records, report, scored, unscored

DAY = 86_400


class Text(HTMLParser):
    """The words of a page, and whether its elements are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.words, self.open, self.ids = [], [], []
        self.feed(html)
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)


def text_of(report):
    return Text(report.html()).text


def live(values, at=NOON, **changes):
    """Return records of a monitor, one a minute."""
    return [
        replace(each, submitted_at=at + 60 * each.row, scored_at=at + 60 * each.row + 1)
        for each in records(values, **changes)
    ]


class Monitored(MemoryResults):
    processes = ()

    def health(self):
        return self.processes


def test_nothing_was_scored_yet():
    assert "Nothing was submitted since 1970-01-01 00:01 UTC." in text_of(Report(MemoryResults([]), since=60.0))


def test_what_a_metric_s_section_says():
    text = text_of(Report.of(live([0.25, 0.75, None]), name="a.db"))
    for words in ("a.db 3 samples, 3 outcomes, samples submitted from 2026-", "0.500 0.500 on a scale from 0 to 1", "1 unscored",
                  "1 unscored", "timeout 1 1 outcome: timeout metric message samples outcomes demo after 60 s q2 1", "0.250 q0", "Mean score per minute"):  # fmt: skip
        assert words in text
    assert "weighted" not in text
    assert "never averaged" not in text


def test_nothing_scored_is_no_mean():
    text = text_of(report([None, None]))
    assert "– nothing was scored; 2 unscored." in text
    assert "nan" not in text.lower()
    assert "0.000" not in text


def test_versions_and_judges_stand_apart_and_the_newest_first():
    given = [*live([0.1], at=NOON - 9_000), *live([0.2], version="2"), *live([0.9], metric="another", at=NOON - 99_000)]
    text = text_of(Report.of(given))
    assert "by different versions or judges are not comparable, so they are never averaged" in text
    places = [
        text.index(words) for words in ("Version 2 , judge judge", "Version 1 , judge judge", "another Version 1")
    ]
    assert places == sorted(places)


def test_what_a_monitor_writes_while_the_page_is_made_is_in_it():
    class Growing(Monitored):
        def records(self, since=None):
            records, self._records = super().records(since), (*self._records, *live([None, 0.3], version="2"))
            return records

    page = Report(Growing(live([0.1]))).html()
    assert "demo (version 2, judge judge)" in page
    assert {len(row["cells"]) for row in data_of(page)["rows"]} == {2}


def test_unknown_tokens_are_never_zero():
    told, untold = Usage(llm_calls=5, input_tokens=1_500, output_tokens=90), Usage(llm_calls=7, input_tokens=None)
    given = [
        Record("a", scored(1.0, usage=told), "j", scored_at=NOON),
        Record("b", unscored(usage=untold), "j", row=1, scored_at=NOON + DAY),
    ]
    report = Report.of(given)
    assert (report.usage.input_tokens, report.usage.llm_calls) == (None, 12)
    assert "at least 1,500" in str(report)
    text = text_of(report)
    assert "judge calls 12 embedder calls 0 tokens in at least 1,500 tokens out 90" in text
    assert "did not report all tokens of 1 of 2 outcomes" in text
    assert "1 7 0 unknown 0" in text
    assert "at least" not in text_of(Report.of(given[:1]))


def test_queues_add_up_or_say_that_they_do_not():
    results = Monitored([])
    results.processes = [health(scored=3, unscored=0, not_sampled=0, dropped=2, pending=1)]
    whole = text_of(Report(results))
    assert "evaluations 6 accepted longest queue 812 samples scored 3 dropped 2 pending 1" in whole
    assert "Every accepted evaluation is accounted for." in whole
    assert "dropped queue_full 2" in whole
    results.processes = [results.processes[0].model_copy(update={"counts": {"accepted": 5, "scored": 1}})]
    assert "4 of them are not accounted for" in text_of(Report(results))


def test_the_whole_page_is_well_formed_and_names_every_element_once():
    given = [*live([0.5, 1.0, 0.2]), *live([0.7], version="2"), *live([None], metric="other")]
    results = Monitored(given)
    results.processes = [health()]
    html = Report(results).html()
    read = Text(html)
    for link in re.findall(r'href="#([^"]*)"', html):
        assert link in read.ids
    for labels in re.findall(r'aria-labelledby="([^"]*)"', html):
        assert set(labels.split()) <= set(read.ids)
    assert html.count("<desc") == 5
    assert html.count("<svg") == html.count('aria-label="0.') + 5 == 7
    assert html.startswith('<!doctype html>\n<html lang="en">')


def test_bars():
    chart = distribution([Bin(0, 0.5, 0, 0.0), Bin(0.5, 1.0, 2, 0.5)], "c", "small")
    none, two = ElementTree.fromstring(re.search("<svg.*</svg>", chart)[0]).iter("rect")
    assert two.find("title").text == "0.5 – 1: 50.0 %, 2 scores"
    assert float(none.get("height")) == 0
    assert float(two.get("height")) == pytest.approx((210 - 12 - 28) * 0.5 / 0.6, abs=0.05)
