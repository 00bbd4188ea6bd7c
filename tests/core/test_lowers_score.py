"""Which verdicts a metric marks as lowering its score."""

import pytest

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Sample, SummarizationScore
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import script

QUESTIONS = ("A?", "B?", "C?")
SAMPLE = Sample(user_input="Q?", retrieved_contexts=["One. Two.", "Three."], response="Q?")
ANSWERS = script(
    answers={"answers": {"1": "yes", "2": "no", "3": "yes"}},
    claims={"claims": ["a", "b", "c"]},
    verdicts={
        "verdicts": {
            str(i): {"evidence": [], "verdict": word}
            for i, word in enumerate(("supported", "contradicted", "not_in_source"), 1)
        }
    },
    source_answers={"answers": {"1": "yes", "2": "no", "3": "yes"}},
    summary_answers={"answers": {"1": "yes", "2": "yes", "3": "cannot_tell"}},
    sentences={"ids": [2]},
    copies={"sentences": ["One.", "Four."]},
)


@pytest.mark.parametrize(
    ("metric", "options", "lowered"),
    [
        (SummarizationScore, {"questions": QUESTIONS}, ["question 2"]),
        (AlignmentCoverage, {"assessment_questions": QUESTIONS}, ["claim 2", "claim 3", "summary_answer 3"]),
        (
            AlignmentCoverage,
            {"assessment_questions": QUESTIONS, "coverage_rule": "agreement"},
            ["claim 2", "claim 3", "summary_answer 2", "summary_answer 3"],
        ),
        (ContextRelevancy, {}, ["sentence 1", "sentence 3"]),
        (ContextRelevancy, {"granularity": "chunk"}, ["sentence 3"]),
        (ContextRelevancy, {"selection": "verbatim"}, ["sentence 2", "sentence 3"]),
    ],
)
def test_a_metric_marks_what_lowers_its_score(metric, options, lowered):
    score = metric(llm=FakeLLM(ANSWERS), **options).score(SAMPLE)
    assert [f"{v.kind} {v.id}" for v in score.verdicts if v.lowers_score] == lowered


@pytest.mark.parametrize(
    ("rule", "flags", "lowered"),
    [
        ("all", (False, True), []),
        ("any", (False, True), ["Q?"]),
        ("off", (True, True), []),
        ("all", (True, True), ["Q?"] * 2),
    ],
)
def test_a_noncommittal_question_lowers_a_score_that_it_makes_zero(rule, flags, lowered):
    reply = {"questions": [{"question": "Q?", "noncommittal": flag} for flag in flags]}
    metric = ResponseRelevancy(
        llm=FakeLLM(lambda request: reply), embedder=FakeEmbedder(), strictness=2, noncommittal=rule
    )
    assert [v.text for v in metric.score(SAMPLE).verdicts if v.lowers_score] == lowered


def test_a_question_lowers_the_score_by_its_distance():
    reply = {"questions": [{"question": text, "noncommittal": False} for text in ("Q?", "Another?")]}
    metric = ResponseRelevancy(llm=FakeLLM(lambda request: reply), embedder=FakeEmbedder(), strictness=2)
    assert [v.text for v in metric.score(SAMPLE).verdicts if v.lowers_score] == ["Another?"]
