"""An evaluator for Langfuse' `run_experiment`. An Unscored is a text score named `..._unscored`."""

from langfuse import Evaluation, get_client
from scores import outcomes


def rag(*, input, output, **_):
    found = outcomes(user_input=input, response=output["answer"], retrieved_contexts=output["contexts"])
    evaluations = []
    for outcome in found:
        if outcome.value is None:
            name = f"{outcome.metric}_unscored"
            evaluations.append(
                Evaluation(name=name, value=outcome.reason, comment=outcome.detail, data_type="CATEGORICAL")
            )
        else:
            evaluations.append(Evaluation(name=outcome.metric, value=outcome.value, comment=outcome.reason))
    return evaluations


def app(*, item, **_):
    return {"answer": "Jane Austen wrote Emma.", "contexts": ["Emma is a novel by Jane Austen."]}


langfuse = get_client()
result = langfuse.run_experiment(name="emma", data=[{"input": "Who wrote Emma?"}], task=app, evaluators=[rag])
print(result.format(include_item_results=True))
