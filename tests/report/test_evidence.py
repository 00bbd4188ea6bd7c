"""One low score: the verdicts shown, the passages marked, what is cut and says so."""

import re

import pytest

from ragstone import Evidence, Sample, Score, Unscored, Verdict
from ragstone.page.samples import joined, low_score
from ragstone.report.aggregates import Worst
from ragstone.results.record import Record, without_texts

from .test_page import Text


def shown(*verdicts, sample=None, at=0.0, keep=lambda score: score):
    score = keep(Score(metric="mine", value=0.1, reason="Why.", verdicts=verdicts, version="1"))
    return low_score(Worst(0.1, 1, score, Record("a", score, submitted_at=at)), sample)


def claim(*spans, text="It is green.", lowers=True, number="1"):
    evidence = [Evidence(field="retrieved_contexts", chunk=0, start=a, end=b, text="?") for a, b in spans]
    verdict = "contradicted" if lowers else "supported"
    return Verdict(id=number, kind="claim", text=text, verdict=verdict, evidence=evidence, lowers_score=lowers)


def marked(html):
    return re.findall("<mark>(.*?)</mark>", html)


def test_only_what_lowered_the_score_is_shown_and_marked():
    sample = Sample(
        retrieved_contexts=["It is red. It is big."], response="It is green. It is big.", reference="It is blue."
    )
    html = shown(claim((0, 10)), claim((11, 21), text="It is big!", lowers=False, number="2"), sample=sample, at=5.0)
    assert "claim 1" in html
    assert "claim 2" not in html
    assert marked(html) == ["It is red."]
    for words in ("Why.", "Submitted 1970-01-01 00:00 UTC", "It is green. It is big.", "It is blue."):
        assert words in html


def test_a_notebook_shows_an_outcome_with_its_verdicts_those_that_lower_it_first():
    hostile = "<script>alert(1)</script>"
    verdicts = [
        claim((0, 4), text="fine", lowers=False),
        *[claim((5, 9), text=hostile, number=str(n)) for n in range(30)],
    ]
    score = Score(metric="mine", value=0.25, passed=False, reason=hostile, verdicts=verdicts, version="1")
    html = score._repr_html_()
    words = Text(html).text  # its elements are closed in order
    assert "<script" not in html
    assert words.startswith(f"mine 0.250 below its threshold {hostile} 31 verdicts; ")
    assert html.count("<b>") == html.count("retrieved_contexts[0] 5-9") == 20
    assert "fine" not in words, "what lowered it comes first, and twenty verdicts are enough"
    none = Unscored(metric="mine", reason="timeout", detail=hostile, version="1")
    assert Text(none._repr_html_()).text == f"mine unscored (timeout): {hostile}"


def test_history_stands_folded_above_the_question_as_text():
    turns = [{"role": "user", "content": "Is <b>it</b> red?"}, {"role": "assistant", "content": "It is."}]
    html = shown(claim(), sample=Sample(user_input="And big?", history=turns * 15))
    folded = html[html.index("<details", 1) : html.index("And big?")]
    assert "history (the last 20 turns)" in folded
    assert folded.count("Is &lt;b&gt;it&lt;/b&gt; red?") == 10
    assert "<b>it" not in html
    assert "history" not in shown(claim(), sample=Sample(user_input="And big?"))


def test_where_no_verdict_is_marked_all_are_shown_and_nothing_is_claimed():
    html = shown(claim((0, 5), lowers=False), sample=Sample(retrieved_contexts=["It is red."]))
    assert "No single verdict is known to have lowered it." in html
    assert "claim 1" in html
    assert "word plain" in html
    assert marked(html) == []


@pytest.mark.parametrize(
    ("spans", "marks"),
    [
        ([(5, 8), (0, 3), (3, 5)], [(0, 3), (3, 5), (5, 8)]),
        ([(0, 5), (3, 8)], [(0, 8)]),
        ([(-4, 3), (8, 99), (50, 99), (5, 5), (7, 2)], [(0, 3), (8, 10)]),
    ],
)
def test_marks_never_overlap_and_stay_in_the_text(spans, marks):
    assert joined(spans, 10) == marks


def test_without_stored_texts_ids_words_and_places():
    html = shown(claim((4, 9)), keep=without_texts)
    for words in ("claim 1", "contradicted", "retrieved_contexts[0] 4-9"):
        assert words in html
    assert "passage" not in html


def test_long_texts_are_cut_and_say_so():
    sample = Sample(retrieved_contexts=["x" * 1_000_000] * 25)
    html = shown(claim((3_990, 4_010), (9_000, 9_001), text="y" * 1_000_000), sample=sample)
    assert marked(html) == ["x" * 10]
    assert "Cut after 4,000 of 1,000,000 characters; 1 marked passages come later." in html
    assert html.count("<h4>") == 20
    assert "5 further contexts are not shown." in html
    assert "y" * 400 not in html
    assert "y" * 399 + "…" in html
