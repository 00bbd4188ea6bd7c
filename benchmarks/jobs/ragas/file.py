from ragas import EvaluationDataset, evaluate
from ragas.metrics import Faithfulness

print(evaluate(EvaluationDataset.from_jsonl("answers.jsonl"), [Faithfulness()]))
