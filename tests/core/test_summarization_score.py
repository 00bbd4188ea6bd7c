"""SummarizationScore against its formula, written a second time here."""

import dataclasses
import math

import pytest

from ragstone import Sample, Score, SummarizationScore, Unscored
from ragstone.testing import FakeLLM

from .judges import ASKS, graded, script, truth

FACTS = [f"Fact number {i} is here." for i in range(4)]


def items(*questions):
    return {"items": [{"keyphrase": "k", "question": question} for question in questions]}


def judge(answers):
    asked = [f"Question {i}?" for i in range(len(answers))]
    return FakeLLM(script(questions=items(*asked), answers={"answers": {str(i): a for i, a in enumerate(answers, 1)}}))


def reference(yes, asked, summary, source, coeff, weights, penalty):
    qa = yes / asked
    conciseness = 1 - min(len(summary), len(source)) / (len(source) + 1e-10)
    if not penalty:
        return qa
    if weights == "qa":
        return qa * coeff + conciseness * (1 - coeff)
    return qa * (1 - coeff) + conciseness * coeff


@pytest.mark.parametrize("penalty", [True, False])
@pytest.mark.parametrize("weights", ["conciseness", "qa"])
@pytest.mark.parametrize("coeff", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("answers", [["no"] * 4, ["yes", "no", "no", "no"], ["yes"] * 4, ["no"], ["yes"]])
@pytest.mark.parametrize("size", [1, 50, 100, 300])
def test_the_formula(size, answers, coeff, weights, penalty):
    contexts, summary = ["a" * 49, "b" * 50], "s" * size  # 100 characters with the newline between them
    metric = SummarizationScore(llm=judge(answers), coeff=coeff, coeff_weights=weights, length_penalty=penalty)
    outcome = metric.score(Sample(retrieved_contexts=contexts, response=summary))
    yes = answers.count("yes")
    expected = reference(yes, len(answers), summary, "\n".join(contexts), coeff, weights, penalty)
    assert outcome.value == pytest.approx(expected, abs=1e-12)
    assert outcome.breakdown["qa"] == yes / len(answers)
    assert outcome.breakdown["conciseness"] == pytest.approx(max(0.0, 1 - size / 100), abs=1e-9)
    assert 0.0 <= outcome.value <= 1.0
    assert math.copysign(1, outcome.value) == 1
    assert [v.verdict for v in outcome.verdicts] == answers
    assert f"{yes} of {len(answers)} questions" in outcome.reason


def test_defaults_are_those_the_issue_names():
    metric = SummarizationScore(llm=judge(["yes"]))
    assert (metric.coeff, metric.coeff_weights, metric.length_penalty, metric.questions) == (
        0.5,
        "conciseness",
        True,
        None,
    )
    assert metric.threshold is None


def test_an_empty_summary_is_not_half_right():
    llm = judge(["no"])
    outcome = SummarizationScore(llm=llm).score(Sample(retrieved_contexts=["A text."], response=""))
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "empty_input"
    assert outcome.detail.startswith("response: ")
    assert not llm.requests


def test_a_verbatim_copy_does_not_beat_a_good_summary():
    metric = SummarizationScore(llm=FakeLLM(truth), questions=[ASKS + fact for fact in FACTS])
    source = [f"{fact} Padding goes on and on." for fact in FACTS]
    copy, good, poor = (
        metric.score(Sample(retrieved_contexts=source, response=text))
        for text in ("\n".join(source), " ".join(FACTS), FACTS[0])
    )
    assert [o.breakdown["qa"] for o in (copy, good, poor)] == [1.0, 1.0, 0.25]
    assert copy.value == pytest.approx(0.5, abs=1e-9)
    assert good.value > copy.value


def test_a_truthful_judge_sees_what_is_kept_and_what_is_not():
    summary = f"{FACTS[0]} {FACTS[2]}"
    outcome = SummarizationScore(llm=FakeLLM(truth), length_penalty=False).score(
        Sample(retrieved_contexts=[" ".join(FACTS[:2]), " ".join(FACTS[2:])], response=summary)
    )
    assert outcome.value == 0.5
    assert [v.verdict for v in outcome.verdicts] == ["yes", "no", "yes", "no"]
    assert [v.text for v in outcome.verdicts] == [ASKS + fact for fact in FACTS]


def test_given_questions_need_one_call_and_no_source_goes_out():
    llm = judge(["yes", "no"])
    metric = SummarizationScore(llm=llm, questions=["First?", "Second?"], length_penalty=False)
    outcome = metric.score(Sample(retrieved_contexts=["The source itself."], response="A summary."))
    assert outcome.value == 0.5
    assert [request.task for request in llm.requests] == ["summarization_score.answers"]
    assert "The source itself." not in llm.requests[0].user


def test_questions_said_twice_count_once_and_the_denominator_is_what_was_asked():
    def answers(request):
        asked = request.schema["properties"]["answers"]["required"]
        return {"answers": dict.fromkeys(asked, "yes") | {"2": "no"}}

    llm = FakeLLM(script(questions=items("A?", "B?", " A? ", "C?"), answers=answers))
    outcome = SummarizationScore(llm=llm, length_penalty=False).score(Sample(retrieved_contexts=["x"], response="y"))
    assert outcome.value == pytest.approx(2 / 3)
    assert [v.text for v in outcome.verdicts] == ["A?", "B?", "C?"]


@pytest.mark.parametrize("replied", [["yes"], ["yes"] * 3])
def test_answers_that_are_not_those_asked_for_are_no_denominator(replied):
    reply = {"answers": {str(i): answer for i, answer in enumerate(replied, 1)}}
    llm = FakeLLM(script(questions=items("A?", "B?"), answers=reply))
    outcome = SummarizationScore(llm=llm).score(Sample(retrieved_contexts=["x"], response="y"))
    assert (outcome.reason, outcome.usage.llm_calls) == ("judge_unparseable", 3)


def test_a_judge_that_makes_more_questions_than_it_may_is_taken_at_its_word():
    """All of them are put to the summary: the denominator is what was asked."""
    questions = [f"Question {i}?" for i in range(25)]
    asked = {"answers": {str(i): "yes" if i == 1 else "no" for i in range(1, 26)}}
    llm = FakeLLM(script(questions=items(*questions), answers=asked))
    outcome = SummarizationScore(llm=llm, length_penalty=False).score(Sample(retrieved_contexts=["x"], response="y"))
    assert outcome.value == 1 / 25


def test_no_question_is_undefined_and_names_the_part():
    outcome = SummarizationScore(llm=FakeLLM(script(questions=items()))).score(
        Sample(retrieved_contexts=["x"], response="y")
    )
    assert outcome.reason == "undefined"
    assert outcome.detail.startswith("qa: ")
    assert outcome.usage.llm_calls == 1


@pytest.mark.parametrize("scoring", ["count", "expected"])
def test_one_by_one_with_probabilities(scoring):
    asked = {"A?": 0.9, "B?": 0.6, "C?": 0.2}

    def probabilities(request):
        p = next(p for question, p in asked.items() if question in request.user)
        return {"yes": p, "no": 1 - p}

    llm = FakeLLM(graded(probabilities), asking="one_by_one")
    metric = SummarizationScore(llm=llm, questions=list(asked), length_penalty=False, scoring=scoring)
    outcome = metric.score(Sample(retrieved_contexts=["x" * 10], response="y" * 5))
    assert outcome.breakdown["qa"] == pytest.approx(2 / 3)
    assert outcome.breakdown["qa_expected"] == pytest.approx((0.9 + 0.6 + 0.2) / 3)
    assert outcome.value == outcome.breakdown["qa" if scoring == "count" else "qa_expected"]
    assert [v.probability for v in outcome.verdicts] == pytest.approx([0.9, 0.6, 0.2])
    assert len(llm.requests) == 3
    assert all(request.choices == ("yes", "no") for request in llm.requests)


def test_without_probabilities_both_ways_of_asking_agree():
    sample = Sample(retrieved_contexts=[" ".join(FACTS)], response=FACTS[1])
    together = SummarizationScore(llm=FakeLLM(truth)).score(sample)
    alone = SummarizationScore(llm=FakeLLM(truth), asking="one_by_one").score(sample)
    assert together.value == alone.value
    assert together.verdicts == alone.verdicts
    assert alone.usage.llm_calls == 1 + len(FACTS)


def test_nothing_of_one_document_survives_into_the_next():
    llm = FakeLLM(truth)
    metric = SummarizationScore(llm=llm, length_penalty=False)
    for i in range(3):
        fact = f"Document {i} has this."
        outcome = metric.score(Sample(retrieved_contexts=[fact], response=fact))
        assert (outcome.value, [v.text for v in outcome.verdicts]) == (1.0, [ASKS + fact])
    assert metric.questions is None


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"coeff": 1.7}, ValueError, "coeff"),
        ({"coeff": -0.1}, ValueError, "coeff"),
        ({"coeff": math.nan}, ValueError, "coeff"),
        ({"coeff_weights": "both"}, ValueError, "coeff_weights"),
        ({"questions": []}, ValueError, "questions"),
        ({"questions": ["A?", "  "]}, ValueError, r"questions\[1\]"),
        ({"questions": "A?"}, TypeError, "questions"),
        ({"questions": ["A?", 3]}, TypeError, r"questions\[1\]"),
        ({"threshold": 1.5}, ValueError, "threshold"),
        ({"threshold": math.nan}, ValueError, "threshold"),
        ({"asking": "nicely"}, ValueError, "asking"),
        ({"scoring": "best"}, ValueError, "scoring"),
        ({"scoring": "expected"}, ValueError, "scoring"),
        ({"max_input_tokens": 0}, ValueError, "max_input_tokens"),
        ({"max_characters": 0}, ValueError, "max_characters"),
        ({"llm": "gpt"}, TypeError, "llm"),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(options, error, named):
    with pytest.raises(error, match=named):
        SummarizationScore(**({"llm": judge(["yes"])} | options))


@pytest.mark.parametrize(("threshold", "passed"), [(None, None), (0.5, True), (0.51, False)])
def test_passing(threshold, passed):
    metric = SummarizationScore(llm=judge(["yes", "no"]), length_penalty=False, threshold=threshold)
    outcome = metric.score(Sample(retrieved_contexts=["x"], response="y"))
    assert isinstance(outcome, Score)
    assert outcome.passed is passed


def test_a_copy_with_another_option_leaves_the_first_as_it_was():
    metric = SummarizationScore(llm=judge(["yes"]))
    other = dataclasses.replace(metric, coeff=0.1)
    assert (metric.coeff, other.coeff) == (0.5, 0.1)
