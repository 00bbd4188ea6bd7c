"""The page: what it says of what it was given. How it looks and that nothing runs: test_browser."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from ragstone.reporting.live.facts import Bin, Bucket, Cost, Findings, Group, Low, Queue, Reason
from ragstone.reporting.live.figures import Estimate, bin_edges
from ragstone.reporting.live.page import page
from ragstone.reporting.live.svg import Bar, bar_chart

from .data import NOON

DAY = 86_400
MORNING = int(NOON) // DAY * DAY


def group(**changes):
    edges = bin_edges(0.0, 1.0)
    given = {
        "metric": "mine",
        "version": "1",
        "judge": "j",
        "scored": 2,
        "unscored": 1,
        "estimate": Estimate(2, 0.5, 0.4, 0.6),
        "distribution": tuple(Bin(a, b, int(a == 0.5) * 2, float(a == 0.5)) for a, b in pairwise(edges)),
        "series": (Bucket(MORNING, Estimate(2, 0.5, 0.4, 0.6)),),
        "reasons": (Reason("timeout", 1, "s1", "after 30 s"),),
        "lowest": (Low("s2", 0.25, None, NOON, "Why."),),
        "first": NOON,
        "last": NOON,
    }
    return Group(**{**given, **changes})


def findings(*groups, **changes):
    given = {"source": "a.db", "first": NOON, "last": NOON, "width": DAY, "groups": groups, "outcomes": 3}
    return Findings(**{**given, **changes})


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
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def text_of(found):
    return Text(page(found, made_at=NOON)).text


def test_nothing_was_scored_yet():
    empty = Findings(source="a.db")
    assert "Nothing was scored yet." in text_of(empty)
    assert "no samples" in text_of(empty)
    assert "Nothing was submitted since 1970-01-01 00:01 UTC." in text_of(Findings(source="a.db", since=60.0))


def test_what_a_group_says():
    text = text_of(findings(group()))
    for words in ("mean 0.500", "0.400 – 0.600", "scored 2", "unscored 1", "timeout", "after 30 s", "0.250 s2"):
        assert words in text
    assert "weighted" not in text
    assert "never averaged" not in text


def test_nothing_scored_is_no_mean():
    text = text_of(findings(group(scored=0, estimate=None, distribution=(), series=(), lowest=())))
    assert "mean – nothing was scored" in text
    assert "nan" not in text.lower()
    assert "0.000" not in text


def test_unknown_tokens_are_never_zero():
    costs = {MORNING: Cost(2, 7, 1, 0, 0, 2), MORNING + DAY: Cost(2, 5, 0, 1_500, 90, 1)}
    text = text_of(findings(costs=costs))
    assert "judge calls 12 embedder calls 1 tokens in at least 1,500 tokens out at least 90" in text
    assert "of 3 of 4 outcomes" in text
    assert "2 7 1 unknown unknown" in text
    told = text_of(findings(costs={MORNING: Cost(2, 7, 1, 10, 5)}))
    assert "at least" not in told
    assert "tokens in 10 tokens out 5" in told


def queue(name, **counts):
    return Queue(name, NOON, NOON - 60, counts, {"dropped": {"queue_full": counts.get("dropped", 0)}}, 5)


def test_queues_add_up_or_say_that_they_do_not():
    whole = text_of(findings(queues=(queue("a", accepted=5, scored=3, dropped=2), queue("b", accepted=1, pending=1))))
    assert "evaluations 6 accepted longest queue 5 samples scored 3 dropped 2 pending 1" in whole
    assert "Every accepted evaluation is accounted for." in whole
    assert "dropped queue_full 2" in whole
    assert "4 of them are not accounted for" in text_of(findings(queues=(queue("a", accepted=5, scored=1),)))


def test_the_whole_page_is_well_formed_and_names_every_element_once():
    groups = (group(), group(version="2"), group(metric="other", scored=0, estimate=None, series=(), distribution=()))
    html = page(findings(*groups, costs={MORNING: Cost(1, 1)}, queues=(queue("a"),)), made_at=NOON)
    read = Text(html)
    for link in re.findall(r'href="#([^"]*)"', html):
        assert link in read.ids
    for labels in re.findall(r'aria-labelledby="([^"]*)"', html):
        assert set(labels.split()) <= set(read.ids)
    assert html.count("<svg") == html.count("<desc") == 5
    assert html.startswith('<!doctype html>\n<html lang="en">')


def test_bars():
    given = [Bar(0, 0.5, 0.0, "none"), Bar(0.5, 1.0, 2.0, "two")]
    chart = bar_chart("c", given, x=(0, 1), top=4.0, x_ticks=[(0, "0")], y_ticks=[(4, "4")], title="t", description="d")
    (bar,) = ElementTree.fromstring(chart).iter("rect")
    assert bar.find("title").text == "two"
    assert float(bar.get("height")) == pytest.approx((210 - 12 - 28) / 2)
