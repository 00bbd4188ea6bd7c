"""RetrievalRank: five measures of ids, against another implementation, and what is no number."""

import math
import random

import pytest

from ragstone import RetrievalRank, Sample, Score, Unscored, evaluate
from ragstone.identity import sample_key
from ragstone.metrics.setup import setup_of

MEASURES = ("hit_rate", "recall", "precision", "mrr", "ndcg")


def scored(wanted, ranked, measure="recall", k=None):
    return RetrievalRank(measure=measure, k=k).score(Sample(reference_ids=wanted, retrieved_ids=ranked))


def by_sets(wanted, ranked, measure, k):
    """The measures as their papers have them, by sets and positions."""
    top, gold = ranked[:k], set(wanted)
    first = {each: top.index(each) + 1 for each in gold if each in top}
    if measure == "hit_rate":
        return float(bool(first))
    if measure == "recall":
        return len(first) / len(gold)
    if measure == "precision":
        return len(first) / len(set(top)) if top else None
    if measure == "mrr":
        return 1 / min(first.values()) if first else 0.0
    best = range(1, min(len(gold), k or len(gold)) + 1)
    return sum(1 / math.log2(rank + 1) for rank in first.values()) / sum(1 / math.log2(rank + 1) for rank in best)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_thousand_random_lists(measure):
    draw = random.Random(measure)
    for _ in range(1_000):
        wanted = [f"d{draw.randrange(12)}" for _ in range(draw.randint(1, 6))]
        ranked = [f"d{draw.randrange(12)}" for _ in range(draw.randint(0, 10))]
        k = draw.choice([None, 1, 3, 20])
        outcome, right = scored(wanted, ranked, measure, k), by_sets(wanted, ranked, measure, k)
        if right is None:
            assert isinstance(outcome, Unscored)
            assert outcome.reason == "undefined"
        else:
            assert isinstance(outcome, Score)
            assert outcome.value == pytest.approx(right, abs=1e-12)
            assert 0 <= outcome.value <= 1


def test_each_id_has_its_verdict():
    score = scored(["a", "b", "z"], ["x", "a", "a", "b", "y"], "ndcg", 4)
    assert [(each.text, each.verdict, each.lowers_score) for each in score.verdicts] == [
        ("x", "irrelevant", True),
        ("a", "relevant", False),
        ("a", "repeated", False),
        ("b", "relevant", False),
        ("z", "missed", True),
    ]
    assert score.breakdown == {"found": 2, "wanted": 3, "retrieved": 3, "first_found": 2}
    assert score.reason == "2 of 3 sources were among the 4 that were retrieved, the first at rank 2."


@pytest.mark.parametrize(
    ("measure", "lowers"),
    [
        ("hit_rate", ["a"]),
        ("recall", ["b"]),
        ("precision", ["x", "y"]),
        ("mrr", ["x"]),
        ("ndcg", ["x", "b"]),
    ],
)
def test_what_lowers_a_score(measure, lowers):
    wanted, ranked = ["a", "b"], ["x", "a", "y"]
    if measure == "hit_rate":
        wanted, ranked = ["a"], ["x"]
    assert [each.text for each in scored(wanted, ranked, measure).verdicts if each.lowers_score] == lowers


def test_what_is_not_there_is_a_reason_and_a_search_that_found_nothing_is_zero():
    metric = RetrievalRank()
    for given, name in (({"retrieved_ids": ["a"]}, "reference_ids"), ({"reference_ids": ["a"]}, "retrieved_ids")):
        outcome = metric.score(Sample(**given))
        assert isinstance(outcome, Unscored)
        assert (outcome.reason, outcome.detail) == ("missing_input", f"{name}: is missing; retrieval_rank needs it")
    assert scored(["a"], []).value == 0
    assert scored(["a"], [], "precision").reason == "undefined"


def test_measures_stand_side_by_side_and_are_set_ups_of_their_own():
    rows = [
        {"question": "How long?", "expected_sources": ["a"], "retrieved_ids": '["b", "a"]'},
        {"question": "Who?", "expected_chunk_id": 7, "retrieved_chunk_ids": [7.0]},
    ]
    mrr = RetrievalRank(measure="mrr", k=5, name="mrr")
    report = evaluate(rows, [RetrievalRank(), mrr], progress=False)
    assert {name: each.mean for name, each in report.summary().items()} == {"retrieval_rank": 1.0, "mrr": 0.75}
    assert (setup_of(RetrievalRank()), setup_of(mrr)) == ("", "k=5, measure=mrr")
    assert report.sample(next(iter(report.results()))).retrieved_ids == ("b", "a")


def test_ids_are_in_a_journal_s_key_and_others_keep_theirs():
    plain = Sample(user_input="Who?")
    assert sample_key(plain) == sample_key(plain.model_copy(update={"reference_ids": ()}))
    keys = {
        sample_key(Sample(reference_ids=["a"], **more))
        for more in ({}, {"retrieved_ids": []}, {"retrieved_ids": ["a"]})
    }
    assert len(keys) == 3
