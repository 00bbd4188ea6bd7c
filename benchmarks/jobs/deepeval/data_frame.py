import pandas as pd
from data import rows
from deepeval import evaluate
from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase

frame = pd.DataFrame(rows)
cases = [
    LLMTestCase(input=row.user_input, actual_output=row.response, retrieval_context=row.retrieved_contexts)
    for row in frame.itertuples()
]
print(evaluate(cases, [FaithfulnessMetric(model="gpt-5-mini")]))
