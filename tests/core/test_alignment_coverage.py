"""AlignmentCoverage against its formula, and the faults that its model has."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from ragstone import AlignmentCoverage, LLMReply, Sample
from ragstone.testing import FakeLLM

from .judges import (
    ASKS,
    graded,
    says,
    script,
    sentences,
    step,
    supported,
    truth,
)

WORDS = ("supported", "contradicted", "not_in_source")
SAMPLE = Sample(user_input="The original is here. It has two sentences.", response="A summary.")


def by_number(words):
    return {str(i): word for i, word in enumerate(words, 1)}


def judge(verdicts, on_source, on_summary):
    return FakeLLM(
        script(
            claims={"claims": [f"Claim {i}." for i in range(len(verdicts))]},
            questions={"questions": [f"Question {i}?" for i in range(len(on_source))]},
            verdicts={"verdicts": {i: {"evidence": [], "verdict": v} for i, v in by_number(verdicts).items()}},
            source_answers={"answers": by_number(on_source)},
            summary_answers={"answers": by_number(on_summary)},
        )
    )


def reference(verdicts, on_source, on_summary, rule):
    alignment = sum(v == "supported" for v in verdicts) / len(verdicts)
    if rule == "agreement":
        coverage = sum(a == b for a, b in zip(on_source, on_summary, strict=True)) / len(on_source)
    else:
        of = [b for a, b in zip(on_source, on_summary, strict=True) if a == "yes"]
        coverage = None if not of else of.count("yes") / len(of)
    return alignment, coverage


ANSWERED = [
    (["yes"] * 3, ["yes"] * 3),
    (["yes"] * 3, ["no"] * 3),
    (["yes"] * 3, ["yes", "no", "cannot_tell"]),
    (["yes", "no", "cannot_tell"], ["yes", "no", "cannot_tell"]),
    (["no", "no", "cannot_tell"], ["yes", "no", "yes"]),
    (["yes"], ["cannot_tell"]),
]


@pytest.mark.parametrize("rule", ["both_yes", "agreement"])
@pytest.mark.parametrize("answered", ANSWERED)
@pytest.mark.parametrize("verdicts", [*([w] for w in WORDS), *(list(w) for w in product(WORDS, repeat=2))])
def test_the_formula(verdicts, answered, rule):
    on_source, on_summary = answered
    metric = AlignmentCoverage(
        llm=judge(verdicts, on_source, on_summary), n_questions=len(on_source), coverage_rule=rule
    )
    outcome = metric.score(SAMPLE)
    alignment, coverage = reference(verdicts, on_source, on_summary, rule)
    if coverage is None:
        assert outcome.reason == "undefined"
        assert outcome.detail.startswith("coverage: user_input")
        return
    assert outcome.breakdown == {"alignment": alignment, "coverage": coverage}
    assert outcome.value == min(alignment, coverage)
    assert outcome.passed is (outcome.value >= 0.5)
    if 0 in (alignment, coverage):
        assert outcome.value == 0.0
    claims = [v for v in outcome.verdicts if v.kind == "claim"]
    assert [v.verdict for v in claims] == verdicts
    assert [v.verdict for v in outcome.verdicts if v.kind == "source_answer"] == on_source
    assert [v.verdict for v in outcome.verdicts if v.kind == "summary_answer"] == on_summary


def test_defaults_are_those_the_issue_names():
    metric = AlignmentCoverage(llm=FakeLLM(truth))
    assert (metric.n_questions, metric.coverage_rule, metric.source, metric.threshold) == (
        5,
        "both_yes",
        "user_input",
        0.5,
    )


@pytest.mark.parametrize("rule", ["both_yes", "agreement"])
@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("n", [1, 5, 9])
def test_a_summary_that_is_its_source_scores_one(n, asking, rule):
    text = " ".join(f"Fact number {i} is here." for i in range(7))
    metric = AlignmentCoverage(llm=FakeLLM(truth), n_questions=n, asking=asking, coverage_rule=rule)
    outcome = metric.score(Sample(user_input=text, response=text))
    assert outcome.value == 1.0
    assert outcome.breakdown == {"alignment": 1.0, "coverage": 1.0}
    assert outcome.passed is True


def test_a_claim_points_to_the_sentences_that_show_it():
    original = ["One thing is true. A second thing is true.", "  A third thing is true."]
    metric = AlignmentCoverage(llm=FakeLLM(truth), source="retrieved_contexts", n_questions=2)
    outcome = metric.score(Sample(retrieved_contexts=original, response="A third thing is true. A fourth is not."))
    first, second = (v for v in outcome.verdicts if v.kind == "claim")
    (shown,) = first.evidence
    assert (first.verdict, shown.chunk, shown.text) == ("supported", 1, "A third thing is true.")
    assert original[1][shown.start : shown.end] == shown.text
    assert (second.verdict, second.evidence) == ("not_in_source", ())
    assert outcome.value == 0.0  # neither of the two questions is answered by the summary
    assert outcome.breakdown["alignment"] == 0.5


def test_the_answer_counts_not_whether_there_is_one():
    """DeepEval counts a summary that says the opposite as covering: it can answer the question."""
    fact = "The door is open."
    outcome = AlignmentCoverage(llm=FakeLLM(truth), n_questions=1).score(
        Sample(user_input=fact, response=f"Not so: {fact}")
    )
    assert [v.verdict for v in outcome.verdicts if v.kind == "summary_answer"] == ["no"]
    assert outcome.breakdown["coverage"] == 0.0


def test_claims_are_checked_against_the_original_itself():
    llm = FakeLLM(truth)
    AlignmentCoverage(llm=llm).score(Sample(user_input="Only the original says this.", response="A claim."))
    (request,) = [request for request in llm.requests if step(request) == "verdicts"]
    assert "[1] Only the original says this." in request.user


def test_evidence_numbers_repeated_or_unsorted_are_one_each_in_order():
    replies = judge(["supported"], ["yes"], ["yes"])
    llm = FakeLLM(
        lambda request: (
            {"verdicts": {"1": {"evidence": [2, 1, 2], "verdict": "supported"}}}
            if step(request) == "verdicts"
            else replies.generate(request)
        )
    )
    outcome = AlignmentCoverage(llm=llm, n_questions=1).score(SAMPLE)
    assert [e.text for e in outcome.verdicts[0].evidence] == ["The original is here.", "It has two sentences."]


def test_no_claims_are_undefined_and_cost_no_second_round():
    llm = FakeLLM(script(claims={"claims": []}, questions={"questions": ["A?"]}))
    outcome = AlignmentCoverage(llm=llm, n_questions=1).score(SAMPLE)
    assert outcome.reason == "undefined"
    assert outcome.detail.startswith("alignment: ")
    assert outcome.usage.llm_calls == 2


def test_a_claim_made_twice_counts_once():
    replies = judge(["supported", "contradicted"], ["yes"], ["yes"])
    llm = FakeLLM(
        lambda request: (
            {"claims": ["Claim 0.", " Claim 0.", "Claim 1."]}
            if step(request) == "claims"
            else replies.generate(request)
        )
    )
    assert AlignmentCoverage(llm=llm, n_questions=1).score(SAMPLE).breakdown["alignment"] == 0.5


@pytest.mark.parametrize("given", [1, 2, 4, 6])
def test_the_denominator_is_what_was_asked(given):
    """A judge that answers more or fewer of the three questions is asked again and then not scored."""
    llm = judge(["supported"], ["yes"] * 3, ["yes"] * given)
    outcome = AlignmentCoverage(llm=llm, n_questions=3).score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert "summary_answers" in outcome.detail
    assert outcome.usage.llm_calls == 6


TWO = [
    Sample(user_input=f"Alpha {i} is so. Beta {i} is so.", response=f"Alpha {i} is so.", id=str(i)) for i in range(2)
]


def check_own(sample, outcome):
    texts = [v.text for v in outcome.verdicts]
    assert texts == [sample.response] + 2 * [ASKS + s for s in sentences(sample.user_input)]
    assert outcome.breakdown == {"alignment": 1.0, "coverage": 0.5}


def test_nothing_of_one_document_survives_into_the_next():
    metric = AlignmentCoverage(llm=FakeLLM(truth), n_questions=2)
    for sample in TWO * 2:
        check_own(sample, metric.score(sample))
    assert metric.assessment_questions is None


def test_two_documents_at_once_stay_apart():
    metric = AlignmentCoverage(llm=FakeLLM(truth), n_questions=2)

    async def both():
        return await asyncio.gather(*(metric.ascore(sample) for sample in TWO))

    with ThreadPoolExecutor(2) as pool:
        for outcomes in (asyncio.run(both()), list(pool.map(metric.score, TWO))):
            for sample, outcome in zip(TWO, outcomes, strict=True):
                check_own(sample, outcome)


def test_interleaved_by_hand_two_documents_stay_apart():
    metric = AlignmentCoverage(llm=FakeLLM(truth), n_questions=2)
    flows = [metric.flow(sample) for sample in TWO]
    replies = [None, None]
    done = {}
    while len(done) < 2:
        for i, flow in enumerate(flows):
            try:
                round_ = flow.send(replies[i])
                replies[i] = tuple(metric.llm.generate(request) for request in round_)
            except StopIteration as stop:
                done[i] = stop.value
    for i, sample in enumerate(TWO):
        check_own(sample, done[i])


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_both_ways_of_asking_agree(asking):
    original = "Alpha is so. Not so: Beta is so. Gamma is so."
    summary = "Alpha is so. Beta is so. Delta is so."
    outcome = AlignmentCoverage(llm=FakeLLM(truth), asking=asking, n_questions=3).score(
        Sample(user_input=original, response=summary)
    )
    claims = [v for v in outcome.verdicts if v.kind == "claim"]
    assert [v.verdict for v in claims] == [supported(original, c) for c in sentences(summary)]
    questions = [ASKS + s for s in sentences(original)]
    on_summary = [v.verdict for v in outcome.verdicts if v.kind == "summary_answer"]
    assert on_summary == [says(summary, q) for q in questions]
    assert outcome.usage.llm_calls == (5 if asking == "together" else 2 + 3 + 2 * 3)


P = {"alpha": (0.9, 0.05, 0.05), "beta": (0.2, 0.5, 0.3)}


def probable(request):
    return dict(zip(request.choices, P["alpha" if "alpha?" in request.user else "beta"], strict=True))


@pytest.mark.parametrize("rule", ["both_yes", "agreement"])
@pytest.mark.parametrize("scoring", ["count", "expected"])
def test_probabilities(scoring, rule):
    free = script(claims={"claims": ["alpha?", "beta?"]})
    llm = FakeLLM(lambda r: graded(probable)(r) if r.choices else free(r), asking="one_by_one")
    metric = AlignmentCoverage(
        llm=llm, assessment_questions=["Is alpha?", "Is beta?"], coverage_rule=rule, scoring=scoring
    )
    outcome = metric.score(SAMPLE)
    yes = [P["alpha"][0], P["beta"][0]]
    agree = [sum(p * p for p in P[name]) for name in ("alpha", "beta")]
    coverage = sum(y * y for y in yes) / sum(yes) if rule == "both_yes" else sum(agree) / 2
    parts = outcome.breakdown
    assert parts["alignment"] == 0.5
    assert parts["coverage"] == 1.0
    assert parts["alignment_expected"] == pytest.approx(0.55)
    assert parts["coverage_expected"] == pytest.approx(coverage)
    assert outcome.value == pytest.approx(0.5 if scoring == "count" else min(0.55, coverage))
    assert [v.probability for v in outcome.verdicts if v.kind == "claim"] == [0.9, 0.2]


def test_a_judge_without_probabilities_is_not_guessed_for():
    free = script(claims={"claims": ["x"]})
    llm = FakeLLM(lambda r: r.choices[0] if r.choices else free(r), asking="one_by_one")
    metric = AlignmentCoverage(llm=llm, assessment_questions=["A?"], scoring="expected")
    outcome = metric.score(SAMPLE)
    assert outcome.reason == "undefined"
    assert "probabilities" in outcome.detail


def test_probabilities_on_one_text_only_give_no_expectation():
    def reply(request):
        if not request.choices:
            return {"claims": ["x"]}
        given = {word: float(word == request.choices[0]) for word in request.choices}
        return LLMReply(request.choices[0], probabilities=None if step(request) == "summary_answers" else given)

    metric = AlignmentCoverage(llm=FakeLLM(reply, asking="one_by_one"), assessment_questions=["A?"])
    assert set(metric.score(SAMPLE).breakdown) == {"alignment", "coverage"}


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"n_questions": 0}, ValueError, "n_questions"),
        ({"source": "response"}, ValueError, "source"),
        ({"coverage_rule": "answerable"}, ValueError, "coverage_rule"),
        ({"assessment_questions": []}, ValueError, "assessment_questions"),
        ({"assessment_questions": "A?"}, TypeError, "assessment_questions"),
        ({"threshold": -0.1}, ValueError, "threshold"),
        ({"language": "xx"}, ValueError, "language"),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(options, error, named):
    with pytest.raises(error, match=named):
        AlignmentCoverage(llm=FakeLLM(truth), **options)


def test_required_fields_follow_the_source():
    llm = FakeLLM(truth)
    assert tuple(AlignmentCoverage(llm=llm).required_fields) == ("user_input", "response")
    assert tuple(AlignmentCoverage(llm=llm, source="retrieved_contexts").required_fields) == (
        "retrieved_contexts",
        "response",
    )
