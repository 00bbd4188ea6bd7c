from data import rows

from ragstone import compare, evaluate

old, new = (evaluate(each, ["faithfulness"], llm="openai:gpt-5-mini") for each in (rows, rows))
print(compare(old, new))
