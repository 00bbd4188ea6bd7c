import json
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import LLMJudge

rubric = "The output makes only claims that the contexts of the input support."
judge = LLMJudge(rubric, "openai:gpt-5-mini", include_input=True)
rows = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
dataset = Dataset(name="answers", cases=[Case(inputs=row) for row in rows], evaluators=[judge])
dataset.evaluate_sync(lambda row: row["response"], progress=False).print()
