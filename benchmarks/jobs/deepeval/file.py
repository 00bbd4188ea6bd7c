from deepeval import evaluate
from deepeval.dataset import EvaluationDataset
from deepeval.metrics import FaithfulnessMetric

dataset = EvaluationDataset()
names = {"input_key_name": "user_input", "actual_output_key_name": "response"}
dataset.add_test_cases_from_json_file("answers.json", **names, retrieval_context_key_name="retrieved_contexts")
print(evaluate(dataset.test_cases, [FaithfulnessMetric(model="gpt-5-mini")]))
