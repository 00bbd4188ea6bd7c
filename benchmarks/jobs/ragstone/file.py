from ragstone import evaluate

print(evaluate("answers.jsonl", ["faithfulness"], llm="openai:gpt-5-mini"))
