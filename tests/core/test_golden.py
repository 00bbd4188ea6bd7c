"""The metrics that compare with a reference answer, against their formulas."""

import pytest

from ragstone import ContextRecall, FactualCorrectness, Sample
from ragstone.metrics.fitted import SUPPORTED
from ragstone.testing import FakeLLM

from .judges import fenced, graded, mapped, script

S, X, M = "supported", "contradicted", "not_in_source"


def verdicts(words):
    # In another order than asked for: answers belong to ids, not to places.
    return {str(i): {"evidence": [1, 1], "verdict": word} for i, word in reversed(list(enumerate(words, 1)))}


def correctness(response, reference):
    claims = {
        "response": [f"Claim {i}." for i in range(len(response))],
        "reference": [f"Fact {i}." for i in range(len(reference))],
    }
    checked = {"response": verdicts(response), "reference": verdicts(reference)}
    return FakeLLM(script(claims=claims, verdicts=checked))


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        ([S], [S], 1.0),
        ([X], [M, M], 0.0),  # both parts are 0, and so is every mean of them
        ([S], [S, M], 2 / 3),
        ([S, M, X, S], [S], 2 / 3),
        ([S, M], [S, M, M, M], 1 / 3),
    ],
)
def test_factual_correctness_is_f1(response, reference, value):
    llm = correctness(response, reference)
    outcome = FactualCorrectness(llm=llm).score(Sample(response="Ann ran. It rained.", reference="Bob sat. It snowed."))
    assert outcome.value == pytest.approx(value)
    precision, recall = response.count(S) / len(response), reference.count(S) / len(reference)
    assert outcome.breakdown == {"precision": precision, "recall": recall}
    assert [(v.kind, v.id, v.verdict, v.lowers_score) for v in outcome.verdicts] == [
        *(("response_claim", str(i), word, word != S) for i, word in enumerate(response, 1)),
        *(("reference_claim", str(i), word, word != S) for i, word in enumerate(reference, 1)),
    ]
    # A claim's evidence is in the other text, each sentence once.
    assert {(v.kind, *((e.field, e.text) for e in v.evidence)) for v in outcome.verdicts} == {
        ("response_claim", ("reference", "Bob sat.")),
        ("reference_claim", ("response", "Ann ran.")),
    }
    assert len(llm.requests) == outcome.usage.llm_calls == 2


@pytest.mark.parametrize(("response", "reference"), [([], [S]), ([S], [])])
def test_a_text_without_claims_has_no_factual_correctness(response, reference):
    outcome = FactualCorrectness(llm=correctness(response, reference)).score(Sample(response="A.", reference="B."))
    assert (outcome.reason, outcome.usage.llm_calls) == ("undefined", 1)
    assert ("response" if not response else "reference") in outcome.detail


def test_factual_correctness_refuses_a_reply_that_leaves_a_claim_out():
    replies = script(
        claims={"response": ["A."], "reference": ["B.", "C."]},
        verdicts={"response": verdicts([S]), "reference": verdicts([S])},
    )
    outcome = FactualCorrectness(llm=FakeLLM(replies)).score(Sample(response="A.", reference="B. C."))
    assert (outcome.reason, outcome.usage.llm_calls) == ("judge_unparseable", 3)


def test_factual_correctness_by_probabilities():
    def probabilities(request):
        data = fenced(request)[0]
        p = 0.9 if data["claim"] in data["text"] else 0.2
        return {"yes": p, "no": 1 - p}

    llm = FakeLLM(graded(probabilities), asking="one_by_one", gives_probabilities=True)
    sample = Sample(response="One is so. Two is so.", reference="Two is so. Three is so. Four is so. Two is so.")
    outcome = FactualCorrectness(llm=llm).score(sample)
    yes, no = mapped(SUPPORTED, 0.9), mapped(SUPPORTED, 0.2)
    precision, recall = (yes + no) / 2, (yes + 2 * no) / 3
    assert outcome.breakdown["precision_expected"] == pytest.approx(precision)
    assert outcome.breakdown["recall_expected"] == pytest.approx(recall)
    assert (
        outcome.value == outcome.breakdown["expected"] == pytest.approx(2 * precision * recall / (precision + recall))
    )
    assert len(llm.requests) == 5, "a sentence that is repeated is one claim"


def test_context_recall_reads_the_reference_and_not_the_response():
    replies = script(claims={"claims": ["A.", "B.", "C."]}, verdicts={"verdicts": verdicts([S, M, S])})
    llm = FakeLLM(replies)
    sample = Sample(user_input="ZEBRA?", retrieved_contexts=["One. Two."], response="ZEBRA.", reference="A, B and C.")
    outcome = ContextRecall(llm=llm).score(sample)
    assert (outcome.value, outcome.breakdown) == (pytest.approx(2 / 3), {"supported": 2.0, "claims": 3.0})
    assert fenced(llm.requests[0])[0] == {"reference": "A, B and C."}
    assert not any("ZEBRA" in request.user for request in llm.requests)
