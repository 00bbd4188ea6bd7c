"""An `Evaluator` of pydantic-evals. A number is a score, the reason of an Unscored a label."""

from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
from scores import outcomes


@dataclass
class Rag(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> dict[str, EvaluationReason]:
        found = outcomes(
            user_input=ctx.inputs, response=ctx.output["answer"], retrieved_contexts=ctx.output["contexts"]
        )
        results = {}
        for outcome in found:
            if outcome.value is None:
                results[outcome.metric] = EvaluationReason(outcome.reason, outcome.detail)
            else:
                results[outcome.metric] = EvaluationReason(outcome.value, outcome.reason)
        return results


def app(question):
    return {"answer": "Jane Austen wrote Emma.", "contexts": ["Emma is a novel by Jane Austen."]}


dataset = Dataset(name="emma", cases=[Case(name="emma", inputs="Who wrote Emma?")], evaluators=[Rag()])
report = dataset.evaluate_sync(app)
report.print(include_reasons=True)
