"""Faithfulness against its formula. Its claims are checked as those of AlignmentCoverage, and so are their tests."""

import pytest

from ragstone import Faithfulness, Sample
from ragstone.metrics.fitted import SUPPORTED
from ragstone.testing import FakeLLM

from .judges import fenced, graded, mapped, script, truth

CONTEXTS = ["One is so. Two is so.", "  Three is so."]
SAMPLE = Sample(retrieved_contexts=CONTEXTS, response="Two is so. Not so: Nine is so. Four is so.")
S, X, M = "supported", "contradicted", "not_in_source"


def judge(*words):
    verdicts = {str(i): {"evidence": [], "verdict": word} for i, word in enumerate(words, 1)}
    claims = [f"Claim {i}." for i in range(len(words))]
    return FakeLLM(script(claims={"claims": claims}, verdicts={"verdicts": verdicts}))


@pytest.mark.parametrize(
    ("words", "value"), [([S], 1.0), ([X], 0.0), ([S, X, M], 1 / 3), ([S, S, M, S], 0.75), ([M, M], 0.0)]
)
def test_the_score_is_the_share_of_claims_that_are_supported(words, value):
    outcome = Faithfulness(llm=judge(*words)).score(SAMPLE)
    assert outcome.value == pytest.approx(value)
    assert outcome.breakdown == {"supported": words.count(S), "claims": len(words)}
    assert [v.verdict for v in outcome.verdicts] == words
    assert [v.lowers_score for v in outcome.verdicts] == [word != S for word in words]
    assert (outcome.usage.llm_calls, outcome.passed) == (2, None)
    assert f"{words.count(S)} of {len(words)} claims" in outcome.reason


def test_no_claim_is_no_score():
    outcome = Faithfulness(llm=judge()).score(SAMPLE)
    assert (outcome.reason, outcome.usage.llm_calls) == ("undefined", 1)


@pytest.mark.parametrize("scoring", ["count", "expected"])
def test_one_by_one_has_probabilities(scoring):
    def probabilities(request):
        p = 0.9 if "Two" in fenced(request)[0]["claim"] else 0.2 if "Four" in fenced(request)[0]["claim"] else 0.1
        return {"yes": p, "no": 1 - p}

    llm = FakeLLM(graded(probabilities), asking="one_by_one")
    outcome = Faithfulness(llm=llm, scoring=scoring).score(SAMPLE)
    shares = [mapped(SUPPORTED, p) for p in (0.9, 0.1, 0.2)]
    assert outcome.breakdown["expected"] == pytest.approx(sum(shares) / 3)
    assert outcome.breakdown["least"] == pytest.approx(shares[1])
    assert outcome.value == pytest.approx(sum(shares) / 3 if scoring == "expected" else 1 / 3)
    assert [v.probability for v in outcome.verdicts] == pytest.approx(shares)
    assert [v.verdict for v in outcome.verdicts] == [S, "unsupported", "unsupported"]


def test_one_by_one_the_claims_are_the_responses_sentences_and_one_that_stands_twice_counts_once():
    response = "Two is so.  Four is so. \nTwo is so."
    llm = FakeLLM(truth, asking="one_by_one")
    outcome = Faithfulness(llm=llm).score(SAMPLE.model_copy(update={"response": response}))
    assert [v.text for v in outcome.verdicts] == ["Two is so.", "Four is so."]
    assert (outcome.value, outcome.breakdown) == (0.5, {"supported": 1.0, "claims": 2.0})
    assert [fenced(request)[0]["claim"] for request in llm.requests] == ["Two is so.", "Four is so."]
    for verdict in outcome.verdicts:
        (shown,) = verdict.evidence
        assert (shown.field, shown.chunk, response[shown.start : shown.end]) == ("response", None, verdict.text)
