"""Calls, rounds and prompt tokens of the documentation's own examples, counted from the real requests."""

import pytest

from ragstone import AlignmentCoverage, ContextRelevancy, LLMRequest, ResponseRelevancy, Sample, SummarizationScore
from ragstone.asking import tokens
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import ASKS, drive, truth

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


def talkative(request):
    """Makes seven questions and five claims, as the peers' judges did on these examples."""
    if request.task == "summarization_score.questions":
        return {"items": [{"keyphrase": "app", "question": f"Does the app help with goal {i}?"} for i in range(7)]}
    if request.task == "alignment_coverage.claims":
        return {"claims": [f"The coverage score says how well a summary captures fact {i} of it." for i in range(5)]}
    if request.task == "alignment_coverage.source_answers" and not request.choices:
        return {"answers": dict.fromkeys(request.schema["properties"]["answers"]["required"], "yes")}
    return truth(request)


EMBEDDER = FakeEmbedder()
ASKED = [f"{ASKS}the score is a percentage of answers {i}." for i in range(3)]


@pytest.mark.parametrize(
    ("make", "options", "sample", "sizes", "most"),
    [
        (SummarizationScore, {}, SUMMARY, [1, 1], 900),  # ragas: 3 calls, 3 rounds, 1,315 tokens
        (SummarizationScore, {"questions": ASKED}, SUMMARY, [1], 900),
        (AlignmentCoverage, {}, COVERAGE, [2, 3], 1500),  # DeepEval: 7, 4, 2,629
        (AlignmentCoverage, {"assessment_questions": ASKED}, COVERAGE, [1, 3], 1500),  # DeepEval: 6, 3, 2,366
        (ResponseRelevancy, {"embedder": EMBEDDER}, SUPER_BOWL, [1], 450),  # ragas: 3, 1 or 3, 1,032 to 1,335
        (ContextRelevancy, {}, SUPER_BOWL, [1], 450),
        (ContextRelevancy, {"selection": "verbatim"}, SUPER_BOWL, [1], 450),  # ragas 0.1.10: 1, 1, about 150
        (SummarizationScore, {"asking": "one_by_one"}, SUMMARY, [1, 7], 5000),
        (
            AlignmentCoverage,
            {"asking": "one_by_one", "assessment_questions": ASKED},
            COVERAGE,
            [1, 5 + 2 * 3],
            5000,
        ),
        (ResponseRelevancy, {"embedder": EMBEDDER, "asking": "one_by_one"}, SUPER_BOWL, [1 + 2], 1000),
        (ContextRelevancy, {"asking": "one_by_one"}, SUPER_BOWL, [1 + 3], 1000),
    ],
    ids=range(11),
)
def test_calls_rounds_and_prompt_tokens_stay_within_the_bounds(make, options, sample, sizes, most):
    outcome, rounds = drive(make(llm=FakeLLM(talkative), **options), sample)
    asked = [[r for r in round_ if isinstance(r, LLMRequest)] for round_ in rounds]
    assert [len(round_) for round_ in asked if round_] == sizes
    assert sum(tokens(r.system, r.user) for round_ in asked for r in round_) <= most
    assert outcome.metric, "an outcome of either kind"


def test_the_estimate_is_a_quarter_of_the_bytes_rounded_up():
    for text in ("", "abcd", "abcde", "äö", "😀", "\ud800"):
        assert tokens(text) == -(-len(text.encode("utf-8", "replace")) // 4)
    assert tokens("a", "bc", "dd") == 2
