"""ResponseCompleteness against its formula."""

import pytest

from ragstone import ResponseCompleteness, Sample, evaluate
from ragstone.metrics.fitted import ANSWERED
from ragstone.testing import FakeDecisions, FakeLLM

from .judges import fenced, graded, mapped, script, step, truth

SAMPLE = Sample(user_input="When was Emma written? Who printed Emma?", response="It was written in 1815.")


def judge(*words):
    parts = [f"Part {i}?" for i in range(len(words))]
    return FakeLLM(script(parts={"parts": parts}, answered={"answers": dict(zip("12345678", words, strict=False))}))


@pytest.mark.parametrize(
    ("words", "value"),
    [(["yes"], 1.0), (["no"], 0.0), (["no"] * 3, 0.0), (["yes", "no", "no"], 1 / 3), (["yes"] * 8, 1.0)],
)
def test_the_score_is_the_share_of_parts_that_are_answered(words, value):
    outcome = ResponseCompleteness(llm=judge(*words), threshold=0.5).score(SAMPLE)
    assert outcome.value == pytest.approx(value)
    assert outcome.breakdown == {"answered": words.count("yes"), "parts": len(words)}
    assert [(v.id, v.kind, v.text) for v in outcome.verdicts] == [
        (str(i + 1), "part", f"Part {i}?") for i in range(len(words))
    ]
    assert [v.verdict for v in outcome.verdicts] == words
    assert [v.lowers_score for v in outcome.verdicts] == [word == "no" for word in words]
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls, outcome.passed) == (2, 0, value >= 0.5)
    assert f"{words.count('yes')} of {len(words)} parts" in outcome.reason


@pytest.mark.parametrize(
    ("parts", "asked", "wrong"),
    [
        ([], None, "parts: 0 in the list where at least 1"),
        (["When?", ""], None, "a part is blank"),
        ([f"{i}?" for i in range(9)], [f"{i}?" for i in range(9)], ""),  # the bound is a stop for small judges
        (["Who?", "Who? "], ["Who?"], ""),
    ],
)
def test_no_part_or_a_blank_one_is_no_reply_and_one_that_is_said_twice_counts_once(parts, asked, wrong):
    llm = FakeLLM(lambda request: {"parts": parts} if step(request) == "parts" else truth(request))
    outcome = ResponseCompleteness(llm=llm).score(SAMPLE)
    if asked:
        assert [v.text for v in outcome.verdicts] == asked
        assert outcome.breakdown["parts"] == len(asked)
    else:
        assert (outcome.reason, wrong in outcome.detail) == ("judge_unparseable", True)
        assert outcome.usage.llm_calls == 2, "the parts were asked for twice, and nothing of them"


@pytest.mark.parametrize("scoring", ["count", "expected"])
def test_one_by_one_has_probabilities(scoring):
    def probabilities(request):
        p = 0.9 if "written" in fenced(request)[0]["question"] else 0.2
        return {"yes": p, "no": 1 - p}

    def reply(request):
        return graded(probabilities)(request) if request.choices else truth(request)

    outcome = ResponseCompleteness(llm=FakeLLM(reply, asking="one_by_one"), scoring=scoring).score(SAMPLE)
    shares = [mapped(ANSWERED, p) for p in (0.9, 0.2)]
    assert outcome.breakdown["expected"] == pytest.approx(sum(shares) / 2)
    assert outcome.value == pytest.approx(sum(shares) / 2 if scoring == "expected" else 0.5)
    assert [v.probability for v in outcome.verdicts] == pytest.approx(shares)
    assert [v.verdict for v in outcome.verdicts] == ["yes", "no"]


GIVEN = Sample(user_input="When and who?", response="In 1815.", metadata={"asked": ["When?", "Who?"]})


def test_parts_that_the_sample_brings_are_not_asked_for():
    judge = FakeDecisions(lambda question, texts: 0.9 if "When" in question.instruction else 0.2)
    outcome = ResponseCompleteness(llm=judge, parts="asked").score(GIVEN)
    assert (outcome.value, outcome.breakdown["parts"], len(judge.requests)) == (pytest.approx(0.55), 2.0, 1)


@pytest.mark.parametrize("metadata", [{}, {"asked": "When?"}, {"asked": []}, {"asked": ["When?", " "]}, {"asked": [3]}])
def test_parts_that_are_none_are_a_reason_and_no_number(metadata):
    judge = FakeDecisions(lambda question, texts: 0.9)
    outcome = ResponseCompleteness(llm=judge, parts="asked").score(GIVEN.model_copy(update={"metadata": metadata}))
    assert (outcome.reason, judge.requests) == ("missing_input", [])
    assert outcome.detail.startswith("metadata.asked")


def test_a_journal_tells_samples_of_other_parts_apart(tmp_path):
    judge = FakeDecisions(lambda question, texts: 0.9 if "When" in question.instruction else 0.2)
    metric = ResponseCompleteness(llm=judge, parts="asked")
    other = GIVEN.model_copy(update={"metadata": {"asked": ["When?"]}})
    for _ in range(2):
        report = evaluate([GIVEN, other], [metric], journal=tmp_path / "j.db", progress=False)
        assert [record.outcome.value for record in report.results()] == pytest.approx([0.55, 0.9])
    assert len(judge.requests) == 2
