import json
from pathlib import Path

from mlflow.genai.judges import is_grounded

for line in Path("answers.jsonl").read_text().splitlines():
    row = json.loads(line)
    shown = {"request": row["user_input"], "response": row["response"], "context": row["retrieved_contexts"]}
    print(is_grounded(**shown, model="openai:/gpt-5-mini").value)
