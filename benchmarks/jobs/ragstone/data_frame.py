import pandas as pd
from data import rows

from ragstone import evaluate

print(evaluate(pd.DataFrame(rows), ["faithfulness"], llm="openai:gpt-5-mini").to_pandas())
