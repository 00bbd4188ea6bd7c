import json
from pathlib import Path

from autoevals.ragas import Faithfulness

judge = Faithfulness(model="gpt-5-mini")
for line in Path("answers.jsonl").read_text().splitlines():
    row = json.loads(line)
    print(judge.eval(input=row["user_input"], output=row["response"], context=row["retrieved_contexts"]).score)
