"""AlignmentCoverage against its formula, and the faults that its model has."""

import pytest

from ragstone import AlignmentCoverage, Sample
from ragstone.metrics.fitted import SUPPORTED
from ragstone.testing import FakeLLM

from .judges import fenced, graded, mapped, script, step, truth

SAMPLE = Sample(user_input="The original is here. It has two sentences.", response="A summary.")
Y, N, C = "yes", "no", "cannot_tell"


def by_number(words):
    return {str(i): word for i, word in enumerate(words, 1)}


def judge(said, on_source, on_summary, **replies):
    return FakeLLM(
        script(
            **{
                "claims": {"claims": [f"Claim {i}." for i in range(len(said))]},
                "questions": {"questions": [f"Question {i}?" for i in range(len(on_source))]},
                "verdicts": {"verdicts": {i: {"evidence": [], "verdict": v} for i, v in by_number(said).items()}},
                "source_answers": {"answers": by_number(on_source)},
                "summary_answers": {"answers": by_number(on_summary)},
            }
            | replies
        )
    )


def score(said, on_source, on_summary, rule="both_yes", **replies):
    llm = judge(said, on_source, on_summary, **replies)
    return AlignmentCoverage(llm=llm, n_questions=len(on_source), coverage_rule=rule).score(SAMPLE)


S, X, M = "supported", "contradicted", "not_in_source"


@pytest.mark.parametrize(
    ("verdicts", "on_source", "on_summary", "both_yes", "agreement"),
    [
        ([S], [Y, Y, Y], [Y, Y, Y], (1, 1), (1, 1)),
        ([S, X], [Y, Y, Y], [Y, N, C], (1 / 2, 1 / 3), (1 / 2, 1 / 3)),
        ([S, M, X, S], [Y, N, C], [Y, N, C], (1 / 2, 1), (1 / 2, 1)),
        ([M], [Y, N, C], [Y, Y, C], (0, 1), (0, 2 / 3)),
        ([S], [N, N, C], [Y, N, Y], None, (1, 1 / 3)),
        ([S, S, X], [Y], [C], (2 / 3, 0), (2 / 3, 0)),
    ],
)
def test_rows_computed_by_hand(verdicts, on_source, on_summary, both_yes, agreement):
    for rule, parts in (("both_yes", both_yes), ("agreement", agreement)):
        outcome = score(verdicts, on_source, on_summary, rule)
        if parts is None:
            assert (outcome.reason, "coverage: " in outcome.detail) == ("undefined", True)
            continue
        assert tuple(outcome.breakdown.values()) == parts
        assert outcome.value == min(parts)
        assert outcome.passed is (min(parts) >= 0.5)
        answers = list(zip(on_source, on_summary, strict=True))
        uncovered = [a != b and (a == Y or rule == "agreement") for a, b in answers]
        assert [(v.kind, v.verdict, v.lowers_score) for v in outcome.verdicts] == [
            *(("claim", verdict, verdict != S) for verdict in verdicts),
            *(("source_answer", answer, False) for answer in on_source),
            *(("summary_answer", answer, low) for answer, low in zip(on_summary, uncovered, strict=True)),
        ]


def test_a_claim_points_to_the_sentences_that_show_it():
    original = ["One thing is true. A second thing is true.", "  A third thing is true."]
    llm = FakeLLM(truth)
    metric = AlignmentCoverage(llm=llm, source="retrieved_contexts", n_questions=2)
    assert tuple(metric.required_fields) == ("retrieved_contexts", "response")
    outcome = metric.score(Sample(retrieved_contexts=original, response="A third thing is true. A fourth is not."))
    first, second = (v for v in outcome.verdicts if v.kind == "claim")
    (shown,) = first.evidence
    assert (first.verdict, shown.chunk, shown.text) == ("supported", 1, "A third thing is true.")
    assert original[1][shown.start : shown.end] == shown.text
    assert (second.verdict, second.evidence) == ("not_in_source", ())
    assert outcome.breakdown == {"alignment": 0.5, "coverage": 0.0}
    (request,) = [request for request in llm.requests if step(request) == "verdicts"]
    assert "[1] One thing is true." in request.user, "claims are checked against the original itself"


def test_no_claims_are_undefined_and_cost_no_second_round():
    outcome = score([], [Y], [Y])
    assert outcome.reason == "undefined"
    assert outcome.detail.startswith("alignment: ")
    assert outcome.usage.llm_calls == 2


SHARES = [mapped(SUPPORTED, 0.9), mapped(SUPPORTED, 0.2)]
P = {"alpha": {"yes": 0.9, "no": 0.05, "cannot_tell": 0.05}, "beta": {"yes": 0.2, "no": 0.5, "cannot_tell": 0.3}}
TWO = SAMPLE.model_copy(update={"response": "It is alpha. It is beta."})


def probable(request):
    """Of alpha and of beta, in claims (yes or no) and in questions."""
    data, _ = fenced(request)
    p = P["alpha" if "alpha" in data.get("claim", data.get("question")) else "beta"]
    return p if "question" in data else {"yes": p["yes"], "no": 1 - p["yes"]}


@pytest.mark.parametrize(
    ("rule", "scoring", "coverage"),
    [
        ("both_yes", "count", 0.85 / 1.1),
        ("both_yes", "expected", 0.85 / 1.1),
        ("agreement", "expected", (0.815 + 0.38) / 2),
    ],
)
def test_probabilities(rule, scoring, coverage):
    llm = FakeLLM(graded(probable), asking="one_by_one")
    outcome = AlignmentCoverage(
        llm=llm, assessment_questions=["Is alpha?", "Is beta?"], coverage_rule=rule, scoring=scoring
    ).score(TWO)
    parts = {"alignment": 0.5, "alignment_expected": sum(SHARES) / 2, "alignment_least": SHARES[1]}
    parts |= {"coverage": 1.0, "coverage_expected": coverage}
    assert outcome.breakdown == pytest.approx({**parts, "count": 0.5, "expected": min(coverage, sum(SHARES) / 2)})
    assert outcome.value == outcome.breakdown[scoring]
    claims = [v for v in outcome.verdicts if v.kind == "claim"]
    assert [v.verdict for v in claims] == ["supported", "unsupported"]
    assert [v.probability for v in claims] == pytest.approx(SHARES)
    assert [TWO.response[e.start : e.end] for v in claims for e in v.evidence] == ["It is alpha.", "It is beta."]
    assert {e.field for v in claims for e in v.evidence} == {"response"}


def test_questions_that_the_original_rather_denies_still_have_an_expectation():
    llm = FakeLLM(graded(probable), asking="one_by_one")
    options = {"llm": llm, "assessment_questions": ["Is beta?", "Is it beta?"]}
    outcome = AlignmentCoverage(**options, scoring="expected").score(TWO)
    parts = {"alignment_expected": sum(SHARES) / 2, "alignment_least": SHARES[1], "coverage_expected": 0.2}
    assert outcome.breakdown == pytest.approx({"alignment": 0.5, **parts, "expected": 0.2})
    assert (outcome.value, "coverage: " in outcome.reason) == (pytest.approx(0.2), True)
    assert AlignmentCoverage(**options, scoring="count").score(TWO).reason == "undefined"
