from data import answer, contexts, question
from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase

case = LLMTestCase(input=question, actual_output=answer, retrieval_context=contexts)
print(FaithfulnessMetric(model="gpt-5-mini").measure(case))
