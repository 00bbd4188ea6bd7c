from data import rows
from deepeval import evaluate
from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase

means = []
for system in (rows, rows):
    shown = [(row["user_input"], row["response"], row["retrieved_contexts"]) for row in system]
    cases = [LLMTestCase(input=a, actual_output=b, retrieval_context=c) for a, b, c in shown]
    results = evaluate(cases, [FaithfulnessMetric(model="gpt-5-mini")]).test_results
    means.append(sum(result.metrics_data[0].score for result in results) / len(results))
print(means[1] - means[0])
