"""Evaluate an agent with a query-engine tool: what its tools retrieved is the context of its answer."""

import asyncio

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.tools import QueryEngineTool
from with_llama_index.app import QUESTIONS, Reader, index
from words import judge

from ragstone_llama_index import MetricEvaluator

engine = index().as_query_engine(llm=Reader(), similarity_top_k=1)
handbook = QueryEngineTool.from_defaults(engine, name="handbook", description="The museum's handbook.")
agent = ReActAgent(tools=[handbook], llm=Reader())


async def main() -> None:
    """Print each answer with its scores and the reasons for them."""
    llm, embedder = judge()
    evaluators = (MetricEvaluator("response_relevancy", llm, embedder), MetricEvaluator("context_relevancy", llm))
    for question in QUESTIONS:
        answer = await agent.run(question)
        print(f"{question}\n  {answer}")
        for evaluator in evaluators:
            result = await evaluator.aevaluate_response(query=question, response=answer)
            score = "unscored" if result.invalid_result else f"{result.score:8.3f}"
            print(f"  {result.metric:18} {score}  {result.feedback or result.invalid_reason}")
        print()


if __name__ == "__main__":
    asyncio.run(main())
