import pandas as pd
from data import rows
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import LLMJudge

rubric = "The output makes only claims that the contexts of the input support."
judge = LLMJudge(rubric, "openai:gpt-5-mini", include_input=True)
cases = [Case(inputs=row) for row in pd.DataFrame(rows).to_dict("records")]
dataset = Dataset(name="answers", cases=cases, evaluators=[judge])
dataset.evaluate_sync(lambda row: row["response"], progress=False).print()
