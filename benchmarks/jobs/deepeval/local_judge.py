from data import answer, contexts, question, url
from deepeval.metrics import FaithfulnessMetric
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase

case = LLMTestCase(input=question, actual_output=answer, retrieval_context=contexts)
print(FaithfulnessMetric(model=LocalModel("qwen3:8b", base_url=url, api_key="none")).measure(case))
