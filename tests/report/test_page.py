"""The page: what it says of what it was given. How it looks and that nothing runs: tests/browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from ragstone import Evidence, Sample, Usage, Verdict
from ragstone.report import Report, compare
from ragstone.results.memory import MemoryResults
from ragstone.results.record import Record, without_texts

from .data import NOON, health
from .reports import data_of, records, report, scored, unscored


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


def text_of(report, *also):
    return Text(report.html(*also)).text


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


def test_what_it_says_of_a_metric():
    text = text_of(Report.of(live([0.25, 0.75, None]), name="a.db"))
    for words in ("a.db 3 samples, 3 outcomes, samples submitted from 2026-", "demo 0.500", "2/3", "Mean score per minute",
                  "unscored by demo: 1 timeout; first: q2: after 60 s", "Distribution of scores", "0.25 – 0.3 50.0 % 1"):  # fmt: skip
        assert words in text
    assert "weighted" not in text
    assert "never averaged" not in text


def test_nothing_scored_is_no_mean():
    text = text_of(report([None, None]))
    assert "demo – – 0/2" in text
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
        new: tuple[Record, ...] = ()

        def records(self, since=None):
            yield from super().records(since)
            yield from self.new
            self.new = tuple(live([0.3], version="2"))

    page = Report(Growing(live([0.1]))).html()
    assert "demo (version 2, judge judge)" in page
    assert {each["key"][1] for each in data_of(page)["metrics"]} == {"1", "2"}


def test_unknown_tokens_are_never_zero():
    counted, unknown = Usage(llm_calls=5, input_tokens=1_500, output_tokens=90), Usage(llm_calls=7, input_tokens=None)
    given = [Record("a", scored(1.0, usage=counted), "j"), Record("b", unscored(usage=unknown), "j", row=1)]
    report = Report.of(given)
    assert (report.usage.input_tokens, report.usage.llm_calls) == (None, 12)
    assert "at least 1,500" in str(report)
    assert "12 0 at least 1,500 90" in text_of(report)
    assert "at least" not in text_of(Report.of(given[:1]))


def test_queues_add_up_or_say_that_they_do_not():
    results = Monitored([])
    results.processes = [health(scored=3, unscored=0, not_sampled=0, dropped=2, pending=1)]
    whole = text_of(Report(results))
    assert "process started last seen accepted scored dropped pending longest queue all 6 3 2 1 812" in whole
    assert "not accounted for" not in whole
    assert "dropped queue_full 2" in whole
    results.processes = [results.processes[0].model_copy(update={"counts": {"accepted": 5, "scored": 1}})]
    assert "4 of them are not accounted for" in text_of(Report(results))


def test_the_whole_page_is_well_formed_and_names_every_element_once():
    given = [*live([0.5, 1.0, 0.2]), *live([0.7], version="2"), *live([None], metric="other")]
    results = Monitored(given)
    results.processes = [health()]
    html = Report(results).html()
    for link in re.findall(r'href="#([^"]*)"', html):
        assert link in Text(html).ids
    assert html.startswith('<!doctype html>\n<html lang="en">')


def test_a_comparison_stands_before_the_scores():
    old, new = report([0.25] * 20, name="old"), report([0.75] * 20, name="new")
    text = text_of(new, compare(old, new))
    assert text.index("demo: by this judge, new is better") < text.index("Mean score by metric")


PASSAGE = Evidence(field="retrieved_contexts", chunk=0, start=0, end=9, text="It is red")
VERDICTS = (
    Verdict(id="1", kind="claim", text="It is big.", verdict="supported"),
    Verdict(id="2", kind="claim", text="It is green.", verdict="contradicted", evidence=(PASSAGE,), lowers_score=True),
)


def test_the_table_holds_each_text_once_and_what_lowered_a_score_first():
    sample = Sample(retrieved_contexts=["It is red."], response="It is green.")
    score = scored(0.1, verdicts=VERDICTS)
    (row,) = data_of(Report.of([Record("a", score)], samples=[sample]).html())["rows"]
    (record,) = row["records"]
    assert record["verdicts"] == [
        ["2", "claim", "contradicted", True, [[0, 0, 9]], "It is green."],
        ["1", "claim", "supported", False, [], "It is big."],
    ]
    assert record["sample"] == {"retrieved_contexts": ["It is red."], "response": "It is green."}
    (bare,) = data_of(Report.of([Record("a", without_texts(score))]).html())["rows"]
    assert "sample" not in bare["records"][0]
    assert "green" not in str(bare)


def test_of_many_rows_the_lowest_and_others_by_chance_are_in_the_table():
    given = [(i * 7_919 % 3_001) / 3_001 for i in range(3_001)]
    data = data_of(report(given).html())
    found = [row["records"][0] for row in data["rows"]]
    assert (data["total"], len(found)) == (3_001, 2_000)
    assert [each["row"] for each in found] == sorted(each["row"] for each in found)
    assert set(sorted(given)[:1_000]) <= {each["value"] for each in found}


def test_a_long_text_is_cut_and_says_so():
    long = "x" * 1_000_000
    verdict = Verdict(id="1", kind="claim", text=long, verdict="supported")
    page = report([0.1], samples=[Sample(response=long)], verdicts=(verdict,)).html()
    assert len(page) < 60_000
    assert "(20,000 of 1,000,000 characters)" in page
    assert "(400 of 1,000,000 characters)" in page


def test_the_sample_stands_once_in_its_row(tmp_path):
    given = [Record("a", scored(0.1, metric)) for metric in ("demo", "other")]
    path = tmp_path / "a.jsonl"
    Report.of(given, samples=[Sample(response="It is green.")]).to_json(path)
    assert Report.load(path).html().count("It is green.") == 1
