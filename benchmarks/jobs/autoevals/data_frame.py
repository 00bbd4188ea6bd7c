import pandas as pd
from autoevals.ragas import Faithfulness
from data import rows

frame = pd.DataFrame(rows)
judge = Faithfulness(model="gpt-5-mini")
shown = [(row.user_input, row.response, row.retrieved_contexts) for row in frame.itertuples()]
print(frame.assign(score=[judge.eval(input=a, output=b, context=c).score for a, b, c in shown]))
