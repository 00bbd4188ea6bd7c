"""One low score: the verdicts shown, the passages marked, what is cut and says so."""

import pytest

from ragstone import ContextRelevancy, Evidence, Sample, Score, Verdict
from ragstone.reporting.live.lowest import low_of
from ragstone.testing import FakeLLM

from .data import bare


def score_of(*verdicts, metric="alignment_coverage", **parts):
    return Score(metric=metric, value=0.1, reason="Why.", breakdown=parts, verdicts=verdicts, version="1")


def claim(word, *evidence, text="It is green.", number="1"):
    return Verdict(id=number, kind="claim", text=text, verdict=word, evidence=evidence)


def place(start, end, field="retrieved_contexts", chunk=0):
    return Evidence(field=field, chunk=chunk, start=start, end=end, text="?")


def marked(low):
    return {p.name: [p.text[start:end] for start, end in p.marks] for p in low.passages if p.marks}


def test_only_what_cost_the_score_is_shown_and_marked():
    sample = Sample(retrieved_contexts=["It is red. It is big."], response="It is green. It is big.")
    verdicts = claim("contradicted", place(0, 10)), claim("supported", place(11, 21), text="It is big.", number="2")
    low = low_of(score_of(*verdicts), sample_id="a", at=5.0, sample=sample)
    assert [(item.name, item.word, item.text, item.costs) for item in low.items] == [
        ("claim 1", "contradicted", "It is green.", True)
    ]
    assert marked(low) == {"retrieved_contexts[0]": ["It is red."], "response": ["It is green."]}
    assert (low.value, low.why, low.at, low.more, low.left_out) == (0.1, "Why.", 5.0, 0, 0)


def test_sentences_that_are_not_needed_are_found_where_they_are():
    contexts = ["Same. Needed. Same.", "Same. Needed."]
    judge = FakeLLM(lambda request: {"ids": [2, 4]})
    sample = Sample(user_input="Why?", retrieved_contexts=contexts)
    low = low_of(ContextRelevancy(llm=judge).score(sample), sample_id="a", sample=sample)
    spans = {p.name: p.marks for p in low.passages if p.marks}
    assert spans == {"retrieved_contexts[0]": ((0, 5), (14, 19)), "retrieved_contexts[1]": ((6, 13),)}


@pytest.mark.parametrize(
    ("spans", "marks"),
    [
        ([(5, 8), (0, 3), (3, 5)], ((0, 3), (3, 5), (5, 8))),
        ([(0, 5), (3, 8)], ((0, 8),)),
        ([(-4, 3), (8, 99), (50, 99), (5, 5), (7, 2)], ((0, 3), (8, 10))),
    ],
)
def test_marks_never_overlap_and_stay_in_the_text(spans, marks):
    sample = Sample(retrieved_contexts=["0123456789"])
    verdict = claim("contradicted", *(place(*span) for span in spans))
    assert low_of(score_of(verdict), sample_id="a", sample=sample).passages[0].marks == marks


def test_without_stored_texts_ids_words_and_places():
    verdict = bare(claim("contradicted", place(4, 9, chunk=2)))
    low = low_of(score_of(verdict), sample_id="a")
    assert [(i.name, i.word, i.text, i.note) for i in low.items] == [
        ("claim 1", "contradicted", "", "retrieved_contexts[2], characters 4 to 9")
    ]
    assert low.passages == ()


def test_long_texts_are_cut_and_say_so():
    sample = Sample(retrieved_contexts=["x" * 1_000_000] * 25)
    verdict = claim("contradicted", place(3_990, 4_010), place(9_000, 9_001), text="y" * 1_000_000)
    low = low_of(score_of(verdict), sample_id="a", sample=sample)
    first = low.passages[0]
    assert (len(first.text), first.length, first.marks, first.beyond) == (4_000, 1_000_000, ((3_990, 4_000),), 1)
    assert (len(low.passages), low.left_out) == (20, 5)
    assert len(low.items[0].text) == 400
