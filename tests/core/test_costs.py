"""Calls, rounds and prompt tokens of the documentation's own examples, counted from the real requests."""

import pytest

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMRequest,
    ResponseCompleteness,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.judging import tokens
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import drive, truth  # noqa: TID252

SUMMARY = Sample(
    retrieved_contexts=[
        "A company is launching a new product, a smartphone app designed to help users track their fitness goals. "
        "The app allows users to set daily exercise targets, log their meals, and track their water intake. It also "
        "provides personalized workout recommendations and sends motivational reminders throughout the day."
    ],
    response="A company is launching a fitness tracking app that helps users set exercise goals, log meals, and track "
    "water intake, with personalized workout suggestions and motivational reminders.",
)
COVERAGE = Sample(
    user_input="The 'coverage score' is calculated as the percentage of assessment questions for which both the "
    "summary and the original document provide a 'yes' answer. This method ensures that the summary not only includes "
    "key information from the original text but also accurately represents it. A higher coverage score indicates a "
    "more comprehensive and faithful summary, signifying that the summary effectively encapsulates the crucial points "
    "and details from the original content.",
    response="The coverage score quantifies how well a summary captures and accurately represents key information from "
    "the original text, with a higher score indicating greater comprehensiveness.",
)
SUPER_BOWL = Sample(
    user_input="When was the first super bowl?",
    response="The first superbowl was held on Jan 15, 1967",
    retrieved_contexts=[
        "The first AFL-NFL World Championship Game was played on January 15, 1967, at the Los Angeles Memorial "
        "Coliseum. It is known as Super Bowl I. The Green Bay Packers beat the Kansas City Chiefs."
    ],
)
# What ragas and DeepEval themselves ask on these examples: seven and six questions, five and four claims.
QUESTIONS = [
    "Is a company launching a new product?",
    "Is the product a smartphone app?",
    "Does the app help users to track fitness goals?",
    "Can users log their meals with the app?",
    "Does the app track water intake?",
    "Does the app recommend workouts?",
    "Does the app send reminders throughout the day?",
]
ASSESSMENT = [
    "Is the coverage score based on a percentage of 'yes' answers?",
    "Does the score ensure the summary's accuracy with the source?",
    "Does a higher score mean a more comprehensive summary?",
]
CLAIMS = [
    "The coverage score quantifies how well a summary captures key information from the original text.",
    "The coverage score quantifies how accurately a summary represents key information from the original text.",
    "A higher coverage score indicates greater comprehensiveness.",
    "The key information is that of the original text.",
    "Comprehensiveness is what the coverage score is about.",
]


def talkative(request):
    """Makes as many questions and claims as the peers' judges made; answers them truthfully."""
    if request.task == "summarization_score.questions":
        return {"items": [{"keyphrase": q.split()[-1], "question": q} for q in QUESTIONS]}
    if request.task == "alignment_coverage.claims":
        return {"claims": CLAIMS}
    if request.task == "alignment_coverage.questions":
        return {"questions": [*ASSESSMENT, "Is the original a text?", "Does the summary hold its crucial points?"]}
    if request.task == "alignment_coverage.source_answers":
        return {"answers": dict.fromkeys(request.schema["properties"]["answers"]["required"], "yes")}
    return truth(request)


# What docs/metrics say: metric, sample, (calls, rounds, prompt tokens)
CASES = {
    "SummarizationScore": (SummarizationScore, {}, SUMMARY, (2, 2, 479)),
    "SummarizationScore(questions=)": (SummarizationScore, {"questions": QUESTIONS}, SUMMARY, (1, 1, 231)),
    "AlignmentCoverage": (AlignmentCoverage, {}, COVERAGE, (5, 2, 1295)),
    "AlignmentCoverage(assessment_questions=)": (
        AlignmentCoverage, {"assessment_questions": ASSESSMENT}, COVERAGE, (4, 2, 1001)
    ),
    "ResponseRelevancy": (ResponseRelevancy, {"embedder": FakeEmbedder()}, SUPER_BOWL, (1, 1, 187)),
    "ResponseCompleteness": (ResponseCompleteness, {}, SUPER_BOWL, (2, 2, 305)),
    "ContextRelevancy": (ContextRelevancy, {}, SUPER_BOWL, (1, 1, 188)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_calls_rounds_and_prompt_tokens_are_those_of_the_documentation(name):
    metric, options, sample, documented = CASES[name]
    outcome, rounds = drive(metric(llm=FakeLLM(talkative), **options), sample)
    assert outcome.metric, "an outcome of either kind"
    asked = [[r for r in round_ if isinstance(r, LLMRequest)] for round_ in rounds]
    counted = sum(map(len, asked)), sum(map(bool, asked)), sum(tokens(r.system, r.user) for each in asked for r in each)
    print(f"{name}: calls, rounds, prompt tokens {counted}")  # with -s
    assert counted == documented


def test_the_estimate_is_a_quarter_of_the_bytes_rounded_up():
    for text in ("", "abcd", "abcde", "äö", "😀", "\ud800"):
        assert tokens(text) == -(-len(text.encode("utf-8", "replace")) // 4)
    assert tokens("a", "bc", "dd") == 2
