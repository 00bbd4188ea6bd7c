import pandas as pd
from data import rows
from ragas import EvaluationDataset, evaluate
from ragas.metrics import Faithfulness

print(evaluate(EvaluationDataset.from_pandas(pd.DataFrame(rows)), [Faithfulness()]).to_pandas())
