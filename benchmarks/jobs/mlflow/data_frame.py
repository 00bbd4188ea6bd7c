import mlflow
import pandas as pd
from data import rows
from mlflow.genai.judges import is_grounded
from mlflow.genai.scorers import scorer


@scorer
def grounded(inputs: dict[str, object], outputs: str) -> object:
    contexts = inputs["retrieved_contexts"]
    return is_grounded(request=inputs["user_input"], response=outputs, context=contexts, model="openai:/gpt-5-mini")


frame = pd.DataFrame({"inputs": rows, "outputs": [row["response"] for row in rows]})
print(mlflow.genai.evaluate(frame, [grounded]).metrics)
