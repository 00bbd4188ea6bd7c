from data import question
from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase
from engine_app import engine

response = engine.query(question)
contexts = [node.get_content() for node in response.source_nodes]
case = LLMTestCase(input=question, actual_output=str(response), retrieval_context=contexts)
print(FaithfulnessMetric(model="gpt-5-mini").measure(case))
