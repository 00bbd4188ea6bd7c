"""Nothing in prompts or parsing takes the sample for English, but for the fixed words of replies."""

import dataclasses

from ragstone import Sample, Score
from ragstone.testing import FakeLLM

from ..support.judges import metrics, obliging  # noqa: TID252 - under importlib mode tests are no package

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
