"""An evaluator for Phoenix' `run_experiment`. An Unscored has a label and no score. `dry_run` stores nothing."""

from phoenix.client import Client
from scores import outcomes


def rag(input, output):
    found = outcomes(user_input=input["question"], response=output["answer"], retrieved_contexts=output["contexts"])
    results = []
    for outcome in found:
        if outcome.value is None:
            results.append({"name": outcome.metric, "label": outcome.reason, "explanation": outcome.detail})
        else:
            results.append({"name": outcome.metric, "score": outcome.value, "explanation": outcome.reason})
    return results


def app(input):
    return {"answer": "Jane Austen wrote Emma.", "contexts": ["Emma is a novel by Jane Austen."]}


client = Client()
dataset = client.datasets.get_dataset(dataset="questions")
experiment = client.experiments.run_experiment(dataset=dataset, task=app, evaluators=[rag], dry_run=True)
