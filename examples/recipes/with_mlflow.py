"""A scorer for `mlflow.genai.evaluate`. An Unscored is an error, which MLflow leaves out of the mean."""

import mlflow
from mlflow.entities import Feedback
from mlflow.genai.scorers import scorer
from scores import outcomes


@scorer
def rag(inputs, outputs):
    found = outcomes(user_input=inputs["question"], response=outputs["answer"], retrieved_contexts=outputs["contexts"])
    feedback = []
    for outcome in found:
        if outcome.value is None:
            feedback.append(Feedback(outcome.metric, error=f"{outcome.reason}: {outcome.detail}"))
        else:
            feedback.append(Feedback(outcome.metric, outcome.value, rationale=outcome.reason))
    return feedback


def app(question):
    return {"answer": "Jane Austen wrote Emma.", "contexts": ["Emma is a novel by Jane Austen."]}


results = mlflow.genai.evaluate(data=[{"inputs": {"question": "Who wrote Emma?"}}], predict_fn=app, scorers=[rag])
print(results.metrics)
