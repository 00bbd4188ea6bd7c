from data import rows

from ragstone import evaluate
from ragstone.batch import compare

old, new = (evaluate(each, ["faithfulness"], llm="openai:gpt-5-mini") for each in (rows, rows))
print(compare(old, new))
