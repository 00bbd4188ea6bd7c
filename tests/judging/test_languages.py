"""Nothing in prompts or parsing takes the sample for English, but for the fixed words of replies."""

import dataclasses

import pytest

from ragstone import ContextRelevancy, Sample, Score, Unscored
from ragstone.testing import FakeLLM

from ..core.judges import metrics, obliging  # noqa: TID252 - under importlib mode tests are no package

ARABIC = Sample(
    user_input="كم عدد الكتب؟",
    retrieved_contexts=["يوجد ١٢ كتابًا. هل هي جديدة؟ نعم."],
    response="يوجد ١٢ كتابًا.",
)


def test_every_prompt_that_has_text_written_asks_for_the_language_of_the_data():
    llm = FakeLLM(obliging)
    for metric in metrics(obliging):
        assert isinstance(dataclasses.replace(metric, llm=llm).score(ARABIC), Score)
    asked = {request.task: request.system for request in llm.requests if "anguage of the" in request.system}
    of = {
        "response_relevancy.questions": "response",
        "response_completeness.parts": "user's question",
        "summarization_score.questions": "text",
        "alignment_coverage.claims": "summary",
        "alignment_coverage.questions": "text",
        "faithfulness.claims": "response",
    }
    assert (
        {task for task, system in asked.items() if f"anguage of the {of.get(task)}" in system}
        == asked.keys()
        == of.keys()
    )
    # Behind the data, too, where the language matters most: the questions are compared with the user's own words.
    named = {request.task for request in llm.requests if "in its language. Write in Arabic. Reply with" in request.user}
    assert named == {"response_relevancy.questions"}


@pytest.mark.parametrize("word", ["نعم", "ja", "ｙｅｓ"])
def test_a_yes_in_another_language_is_asked_again_and_never_guessed(word):
    replies = iter([word, "yes", "no", "no", "yes"])  # passage, sentences, passage again
    llm = FakeLLM(lambda request: next(replies), asking="one_by_one")
    outcome = ContextRelevancy(llm=llm).score(ARABIC)
    assert outcome.value == pytest.approx(1 / 3)
    assert sum("exactly one of: yes, no" in request.user for request in llm.requests) == 1
    never = ContextRelevancy(llm=FakeLLM(lambda request: word, asking="one_by_one")).score(ARABIC)
    assert isinstance(never, Unscored)
    assert never.reason == "judge_unparseable"


@pytest.mark.parametrize("reply", ['{"ids": [١]}', "{“ids”: [1]}"])
def test_numbers_and_marks_in_other_forms_are_no_json(reply):
    outcome = ContextRelevancy(llm=FakeLLM(lambda request: reply)).score(ARABIC)
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "judge_unparseable"
