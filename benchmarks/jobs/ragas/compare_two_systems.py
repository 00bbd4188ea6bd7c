from data import rows
from ragas import EvaluationDataset, evaluate
from ragas.metrics import Faithfulness

old, new = (evaluate(EvaluationDataset.from_list(each), [Faithfulness()]) for each in (rows, rows))
print(sum(new["faithfulness"]) / len(rows) - sum(old["faithfulness"]) / len(rows))
