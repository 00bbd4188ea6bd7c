from data import answer, question
from deepeval.metrics import GEval
from deepeval.test_case import LLMTestCase, SingleTurnParams

shown = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]
polite = GEval("polite", shown, criteria="Is the response polite?", model="gpt-5-mini", strict_mode=True)
print(polite.measure(LLMTestCase(input=question, actual_output=answer)))
