from data import rows
from mlflow.genai.judges import is_grounded

means = []
for system in (rows, rows):
    shown = [(row["user_input"], row["response"], row["retrieved_contexts"]) for row in system]
    verdicts = [is_grounded(request=a, response=b, context=c, model="openai:/gpt-5-mini").value for a, b, c in shown]
    means.append(verdicts.count("yes") / len(verdicts))
print(means[1] - means[0])
