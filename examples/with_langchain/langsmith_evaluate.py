"""Score a data set with `langsmith.evaluate`: no account, and nothing sent.

`upload_results=False` alone does not do that: LangSmith asks its server what it can do, `aevaluate` uploads the
target's run, and LangChain runs inside the target are traced. The client below and `tracing_context` stop these.
"""

import uuid
from typing import Any

from app import QUESTIONS
from judge import judge
from langsmith import Client, evaluate
from langsmith.run_helpers import tracing_context
from langsmith.schemas import Example
from rag_chain import chain

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone_langchain import RagEvaluator

examples = [Example(id=uuid.uuid4(), inputs={"question": question}) for question in QUESTIONS]


def target(inputs: dict[str, Any]) -> dict[str, Any]:
    """Run the app, untraced."""
    with tracing_context(enabled=False):
        return chain.invoke(inputs)


def main() -> None:
    """Print a table of scores, and how many there are of how many."""
    llm, embedder = judge()
    evaluators = [
        RagEvaluator(ContextRelevancy(llm=llm)),
        RagEvaluator(ResponseRelevancy(llm=llm, embedder=embedder)),
    ]
    client = Client(api_key="none", auto_batch_tracing=False, tracing_sampling_rate=0)
    results = list(evaluate(target, data=examples, evaluators=evaluators, upload_results=False, client=client))
    keys = [evaluator.key for evaluator in evaluators]
    print("".join(f"{key:>20}" for key in keys) + "  question")
    scores: dict[str, list[float]] = {key: [] for key in keys}
    for row in results:
        found = {result.key: result.score for result in row["evaluation_results"]["results"]}
        for key in keys:
            if found[key] is not None:
                scores[key].append(float(found[key]))
        cells = "".join(f"{'unscored' if found[key] is None else format(found[key], '.3f'):>20}" for key in keys)
        print(f"{cells}  {row['example'].inputs['question']}")
    for key in keys:
        mean = f"mean {sum(scores[key]) / len(scores[key]):.3f}" if scores[key] else "no mean"
        print(f"{key}: {mean} of {len(scores[key])} scored out of {len(results)}")


if __name__ == "__main__":
    main()
