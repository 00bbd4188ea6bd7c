from chain_app import chain
from data import question
from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase

state = chain.invoke({"question": question})
contexts = [document.page_content for document in state["context"]]
case = LLMTestCase(input=question, actual_output=state["answer"], retrieval_context=contexts)
print(FaithfulnessMetric(model="gpt-5-mini").measure(case))
