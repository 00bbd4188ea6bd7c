from data import answer, contexts, question
from deepeval import assert_test
from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase


def test_answer() -> None:
    case = LLMTestCase(input=question, actual_output=answer, retrieval_context=contexts)
    assert_test(case, [FaithfulnessMetric(model="gpt-5-mini")])
