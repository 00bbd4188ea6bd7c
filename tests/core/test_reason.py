"""`reason=True`: the judge says in one sentence why, after the verdicts, and the score stays what it is."""

import pytest

from ragstone import ContextPrecision, Faithfulness, Sample
from ragstone.batch import estimate
from ragstone.metrics.names import make_metric
from ragstone.testing import FakeDecisions, FakeLLM

SAMPLE = Sample(user_input="Who?", retrieved_contexts=["Ann wrote it."], response="Bob wrote it.")


def reply(why):
    def said(request):
        if request.task.endswith(".why"):
            return why
        if request.task.endswith(".claims"):
            return {"claims": ["Bob wrote it."]}
        return {"verdicts": {"1": {"evidence": [], "verdict": "contradicted"}}}

    return said


def test_the_reason_ends_with_the_judges_sentence():
    judge = FakeLLM(reply({"why": "The contexts\nname Ann, not Bob."}))
    plain = Faithfulness(llm=judge).score(SAMPLE)
    calls = len(judge.requests)
    score = Faithfulness(llm=judge, reason=True).score(SAMPLE)
    assert score.reason == f"{plain.reason} In the judge's words: The contexts name Ann, not Bob."
    assert (score.value, score.version, score.verdicts) == (plain.value, plain.version, plain.verdicts)
    asked = judge.requests[-1]
    assert (len(judge.requests) - calls, score.usage.llm_calls) == (calls + 1, plain.usage.llm_calls + 1)
    assert "Bob wrote it." in asked.user
    assert "contradicted" in asked.user
    assert "Bob" not in asked.system
    assert "name Ann" in str(score)


@pytest.mark.parametrize(("more", "seen"), [({}, "Bob wrote it."), ({"reference": "Eve did."}, "Eve did.")])
def test_it_rests_on_the_answer_that_was_judged(more, seen):
    judge = FakeLLM(lambda request: {"why": "So."} if request.task.endswith(".why") else {"answers": {"1": "no"}})
    ContextPrecision(llm=judge, reason=True).score(SAMPLE.model_copy(update=more))
    asked = judge.requests[-1].user
    assert [text in asked for text in ("Bob wrote it.", "Eve did.")] == [seen == "Bob wrote it.", seen == "Eve did."]


@pytest.mark.parametrize("why", ["no JSON", {"why": 3}, {"because": "x"}])
def test_a_sentence_that_cannot_be_read_is_left_out(why):
    judge = FakeLLM(reply(why))
    assert Faithfulness(llm=judge, reason=True).score(SAMPLE).reason == Faithfulness(llm=judge).score(SAMPLE).reason


def test_one_by_one_the_texts_come_first():
    def said(request):
        if request.task.endswith(".why"):
            return {"why": "So."}
        return request.choices[-1] if request.choices else {"claims": ["Bob wrote it."]}

    judge = FakeLLM(said, asking="one_by_one")
    assert Faithfulness(llm=judge, reason=True).score(SAMPLE).reason.endswith("In the judge's words: So.")
    asked = judge.requests[-1].user
    assert asked.index("Bob wrote it.") < asked.index("Answer in one sentence")


def test_a_decision_model_needs_a_writer():
    decisions = FakeDecisions(lambda question, _texts: question.choices[0])
    metric = make_metric("context_relevancy", {"reason": True}, decisions)
    assert "judge's words" not in metric.score(SAMPLE).reason
    writer = FakeLLM({"why": "So."})
    metric = make_metric("context_relevancy", {"reason": True}, decisions, writer=writer)
    assert metric.score(SAMPLE).reason.endswith("In the judge's words: So.")


def test_what_has_no_score_is_not_explained_and_the_dry_run_counts_the_call():
    judge = FakeLLM(reply({"why": "So."}))
    assert Faithfulness(llm=judge, reason=True).score(Sample(response="Bob.")).reason == "missing_input"
    assert judge.requests == []
    with_reason, without = (estimate([SAMPLE], Faithfulness(llm=judge, reason=wanted)) for wanted in (True, False))
    assert (with_reason.calls, with_reason.rounds) == (without.calls + 1, without.rounds + 1)
