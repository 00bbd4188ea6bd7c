"""Score a data set with `langsmith.evaluate`: no account, and nothing sent.

`upload_results=False` alone does not do that: LangSmith asks its server what it can do, `aevaluate` uploads the
target's run, and LangChain runs inside the target are traced. The client below stops all three.
"""

import uuid

from langsmith import Client, evaluate
from langsmith.schemas import Example
from with_langchain.app import QUESTIONS
from with_langchain.rag_chain import chain
from words import judge

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone_langchain import RagEvaluator

examples = [Example(id=uuid.uuid4(), inputs={"question": question}) for question in QUESTIONS]


def main() -> None:
    """Print a table of scores, and how many there are of how many."""
    llm, embedder = judge()
    evaluators = [
        RagEvaluator(ContextRelevancy(llm=llm)),
        RagEvaluator(ResponseRelevancy(llm=llm, embedder=embedder)),
    ]
    client = Client(api_key="none", auto_batch_tracing=False, tracing_sampling_rate=0)
    results = list(evaluate(chain.invoke, data=examples, evaluators=evaluators, upload_results=False, client=client))
    print("".join(f"{evaluator.keys[0]:>20}" for evaluator in evaluators) + "  question")
    for row in results:
        scores = [result.score for result in row["evaluation_results"]["results"]]
        cells = ["unscored" if score is None else format(score, ".3f") for score in scores]
        print("".join(f"{cell:>20}" for cell in cells) + f"  {(row['example'].inputs or {})['question']}")
    for place, evaluator in enumerate(evaluators):
        found = [row["evaluation_results"]["results"][place].score for row in results]
        scored = [float(score) for score in found if score is not None]
        mean = f"mean {sum(scored) / len(scored):.3f}" if scored else "no mean"
        print(f"{evaluator.keys[0]}: {mean}, {len(scored)} of {len(found)} scored")


if __name__ == "__main__":
    main()
