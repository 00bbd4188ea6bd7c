"""SummarizationScore against its formula."""

import pytest

from ragstone import Sample, SummarizationScore
from ragstone.testing import FakeLLM

from .judges import graded, script, truth

FACTS = [f"Fact number {i} is here." for i in range(4)]
XY = Sample(retrieved_contexts=["x"], response="y")
CONTEXTS = ["a" * 49, "b" * 50]  # 100 characters with the line break between them


def items(*questions):
    return {"items": [{"keyphrase": "k", "question": question} for question in questions]}


def judge(*answers):
    asked = [f"Question {i}?" for i in range(len(answers))]
    return FakeLLM(script(questions=items(*asked), answers={"answers": {str(i): a for i, a in enumerate(answers, 1)}}))


def score(size, yes, no, **options):
    llm = judge(*["yes"] * yes, *["no"] * no)
    return SummarizationScore(llm=llm, **options).score(Sample(retrieved_contexts=CONTEXTS, response="s" * size))


@pytest.mark.parametrize(
    ("size", "yes", "no", "options", "value"),
    [
        (50, 1, 3, {}, 0.375),
        (50, 4, 0, {}, 0.75),
        (100, 4, 0, {}, 0.5),
        (300, 4, 0, {}, 0.5),  # longer than its source is as long as its source
        (1, 0, 1, {}, 0.495),
        (80, 1, 1, {"coeff": 0.3}, 0.41),
        (80, 1, 1, {"coeff": 0.0}, 0.5),
        (80, 1, 1, {"coeff": 1.0}, 0.2),
        (80, 1, 3, {"coeff": 0.3, "length_penalty": False}, 0.25),
    ],
    ids=str,
)
def test_rows_computed_by_hand(size, yes, no, options, value):
    outcome = score(size, yes, no, **options)
    assert outcome.value == pytest.approx(value, abs=1e-9)
    assert [(v.verdict, v.lowers_score) for v in outcome.verdicts] == [("yes", False)] * yes + [("no", True)] * no
    assert f"{yes} of {yes + no} questions" in outcome.reason


KEPT = Sample(retrieved_contexts=[" ".join(FACTS[:2]), " ".join(FACTS[2:])], response=f"{FACTS[0]} {FACTS[2]}")


def test_where_nobody_writes_questions_the_source_s_sentences_stand_in_and_say_where_they_stand():
    metric = SummarizationScore(llm=FakeLLM(truth, asking="one_by_one"), length_penalty=False)
    outcome = metric.score(KEPT.model_copy(update={"retrieved_contexts": [FACTS[0], f"{FACTS[1]} {FACTS[0]}"]}))
    assert outcome.value == 0.5, "a sentence that is repeated counts once"
    assert [(v.kind, v.evidence[0].chunk, v.lowers_score) for v in outcome.verdicts] == [
        ("sentence", 0, False),
        ("sentence", 1, True),
    ]
    assert "says 1 of 2 sentences of the source" in outcome.reason
    (kind,) = metric.item_kinds
    assert (kind.kind, kind.origin) == ("sentence", "text")
    assert SummarizationScore.value_of(outcome.verdicts, KEPT, {"length_penalty": False, "coeff": 0.5}) == 0.5


def test_given_questions_need_one_call_and_no_source_goes_out():
    llm = judge("yes", "no")
    metric = SummarizationScore(llm=llm, questions=["First?", "Second?"], length_penalty=False)
    outcome = metric.score(Sample(retrieved_contexts=["The source itself."], response="A summary."))
    assert outcome.value == 0.5
    assert [request.task for request in llm.requests] == ["summarization_score.answers"]
    assert "The source itself." not in llm.requests[0].user


@pytest.mark.parametrize(
    ("made", "asked"),
    [(["A?", "B?", " A? ", "C?"], ["A?", "B?", "C?"]), (list("abcdefghijklmno"), list("abcdefghijklmno"))],
    ids=["said twice", "more than it may"],
)
def test_the_denominator_is_what_was_asked(made, asked):
    def answers(request):
        return {"answers": dict.fromkeys(request.schema["properties"]["answers"]["required"], "yes") | {"2": "no"}}

    llm = FakeLLM(script(questions=items(*made), answers=answers))
    outcome = SummarizationScore(llm=llm, length_penalty=False).score(XY)
    assert outcome.value == pytest.approx((len(asked) - 1) / len(asked))
    assert [v.text for v in outcome.verdicts] == asked


@pytest.mark.parametrize("scoring", ["count", "expected"])
def test_one_by_one_with_probabilities(scoring):
    asked = {"A?": 0.9, "B?": 0.6, "C?": 0.2}

    def probabilities(request):
        p = next(p for question, p in asked.items() if question in request.user)
        return {"yes": p, "no": 1 - p}

    llm = FakeLLM(graded(probabilities), asking="one_by_one")
    metric = SummarizationScore(llm=llm, questions=list(asked), length_penalty=False, scoring=scoring)
    outcome = metric.score(XY)
    assert outcome.breakdown["qa"] == pytest.approx(2 / 3)
    assert outcome.breakdown["qa_expected"] == pytest.approx((0.9 + 0.6 + 0.2) / 3)
    assert outcome.value == outcome.breakdown["qa" if scoring == "count" else "qa_expected"]
    assert [v.probability for v in outcome.verdicts] == pytest.approx([0.9, 0.6, 0.2])


def test_no_question_is_undefined():
    outcome = score(50, 0, 0)
    assert (outcome.reason, outcome.detail.split(":")[0], outcome.usage.llm_calls) == ("undefined", "qa", 1)
