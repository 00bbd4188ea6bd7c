"""Parts and questions that others than the judge bring: the sample, a writer, or nobody."""

import pytest

from ragstone import ResponseCompleteness, Sample, SummarizationScore, evaluate
from ragstone.testing import FakeDecisions, FakeLLM, by_step

GIVEN = Sample(user_input="When and who?", response="In 1815.", metadata={"asked": ["When?", "Who?"]})


def test_parts_that_the_sample_brings_are_not_asked_for_and_a_journal_tells_others_apart(tmp_path):
    judge = FakeDecisions(lambda question, texts: 0.9 if "When" in question.instruction else 0.2)
    metric = ResponseCompleteness(llm=judge, parts="asked")
    other = GIVEN.model_copy(update={"metadata": {"asked": ["When?"]}})
    for _ in range(2):
        report = evaluate([GIVEN, other], [metric], journal=tmp_path / "j.db", progress=False)
        assert [record.outcome.value for record in report.results()] == pytest.approx([0.55, 0.9])
    assert len(judge.requests) == 2


@pytest.mark.parametrize("metadata", [{}, {"asked": "When?"}, {"asked": []}, {"asked": ["When?", " "]}, {"asked": [3]}])
def test_parts_that_are_none_are_a_reason_and_no_number(metadata):
    judge = FakeDecisions(0.9)
    outcome = ResponseCompleteness(llm=judge, parts="asked").score(GIVEN.model_copy(update={"metadata": metadata}))
    assert (outcome.reason, judge.requests) == ("missing_input", [])
    assert outcome.detail.startswith("metadata.asked")


def test_the_source_s_sentences_stand_in_where_nobody_writes_questions():
    judge = FakeLLM("yes", asking="one_by_one")
    sample = Sample(retrieved_contexts=["One is so."], response="One is so.")
    writes = FakeLLM(by_step(questions={"items": [{"keyphrase": "k", "question": "Is it?"}]}))
    for writer, kind, origin in ((None, "sentence", "text"), (writes, "question", "judge")):
        metric = SummarizationScore(llm=judge, writer=writer)
        assert [(each.kind, each.origin) for each in metric.item_kinds] == [(kind, origin)]
        assert [verdict.kind for verdict in metric.score(sample).verdicts] == [kind]
