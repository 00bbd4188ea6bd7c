"""Calls and rounds that the documentation promises, counted from the real requests."""

import pytest

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Sample, SummarizationScore
from ragstone.asking import tokens
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import ASKS, drive, truth

SIZES = {  # of each round, where three facts are known
    "together": {"summary": [1, 1], "alignment": [1, 3], "own": [2, 3], "response": [1, 1], "context": [1]},
    "one_by_one": {
        "summary": [1, 3],
        "alignment": [1, 3 + 2 * 2],
        "own": [2, 3 + 2 * 5],
        "response": [1 + 2, 1],
        "context": [1 + 3],
    },
}


@pytest.mark.parametrize("asking", SIZES)
def test_the_calls_are_those_the_documentation_says(asking):
    text = " ".join(f"Fact number {i} is here." for i in range(3))
    sample = Sample(user_input=text, retrieved_contexts=[text], response=text)
    llm = FakeLLM(truth, asking=asking)
    made = {
        "summary": SummarizationScore(llm=llm),
        "alignment": AlignmentCoverage(llm=llm, assessment_questions=[ASKS + "x."] * 2),
        "own": AlignmentCoverage(llm=llm),
        "response": ResponseRelevancy(llm=llm, embedder=FakeEmbedder()),
        "context": ContextRelevancy(llm=llm),
    }
    rounds = {name: [len(round_) for round_ in drive(metric, sample)[1]] for name, metric in made.items()}
    assert rounds == SIZES[asking]


def test_the_estimate_is_a_quarter_of_the_bytes_rounded_up():
    for text in ("", "abcd", "abcde", "äö", "😀", "\ud800"):
        assert tokens(text) == -(-len(text.encode("utf-8", "replace")) // 4)
    assert tokens("a", "bc", "dd") == 2
