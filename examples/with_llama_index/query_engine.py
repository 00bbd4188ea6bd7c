"""Evaluate a query engine with all four metrics in LlamaIndex's BatchEvalRunner."""

import asyncio

from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner
from with_llama_index.app import QUESTIONS, Reader, index
from words import judge

from ragstone_llama_index import MetricEvaluator

engine = index().as_query_engine(llm=Reader(), similarity_top_k=2)


async def main() -> None:
    """Print each answer with its scores and the reasons for them."""
    llm, embedder = judge()
    evaluators: dict[str, BaseEvaluator] = {
        "summarization": MetricEvaluator("summarization_score", llm),
        "alignment": MetricEvaluator("alignment_coverage", llm, n_questions=2),
        "response": MetricEvaluator("response_relevancy", llm, embedder),
        "context": MetricEvaluator("context_relevancy", llm, threshold=0.3),
    }
    results = await BatchEvalRunner(evaluators, workers=4).aevaluate_queries(engine, queries=list(QUESTIONS))
    for i, question in enumerate(QUESTIONS):
        print(f"{question}\n  {results['context'][i].response}")
        for name in evaluators:
            result = results[name][i]
            if result.invalid_result:
                print(f"  {name:14} unscored  {result.invalid_reason}")
            else:
                print(f"  {name:14} {result.score:8.3f}  {result.feedback}")
        print()


if __name__ == "__main__":
    asyncio.run(main())
