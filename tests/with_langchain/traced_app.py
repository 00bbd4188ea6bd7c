"""An app under LANGSMITH_TRACING that calls a judge; run by test_tracing.py: python traced_app.py MODE...

"judge": a judge as it is; "traced": with `trace=True`; "evaluate", "aevaluate": a chain in LangSmith's evaluation with
the client of docs/langchain.md. Traces go to LANGSMITH_ENDPOINT.
"""

import asyncio
import sys
import uuid

from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.langchain import wait_for_all_tracers
from langsmith import Client, aevaluate, evaluate
from langsmith.run_helpers import tracing_context
from langsmith.schemas import Example

from ragstone import ContextRelevancy, LLMRequest
from ragstone_langchain import LangChainLLM, RagEvaluator

REQUEST = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))


def main(mode: str) -> None:
    judge = LangChainLLM(FakeListChatModel(responses=["yes"]), trace=mode == "traced")

    async def ask():
        return (await judge.agenerate(REQUEST)).text

    with tracing_context(enabled=True):
        assert judge.generate(REQUEST).text == asyncio.run(ask()) == "yes"
    wait_for_all_tracers()


def evaluation(mode: str) -> None:
    chain = RunnableLambda(lambda inputs: {"answer": "It is.", "context": ["It is."]}) | RunnableLambda(lambda x: x)
    judge = LangChainLLM(FakeListChatModel(responses=['{"ids": [1]}']))
    settings = {
        "data": [Example(id=uuid.uuid4(), inputs={"question": "Is it?"})],
        "evaluators": [RagEvaluator(ContextRelevancy(llm=judge))],
        "upload_results": False,
        "client": Client(api_key="none", auto_batch_tracing=False, tracing_sampling_rate=0),
    }

    async def rows():
        return [row async for row in await aevaluate(chain.ainvoke, **settings)]

    (row,) = asyncio.run(rows()) if mode == "aevaluate" else evaluate(chain.invoke, **settings)
    assert [result.score for result in row["evaluation_results"]["results"]] == [1.0]
    wait_for_all_tracers()


if __name__ == "__main__":
    for mode in sys.argv[1:]:
        (main if mode in ("judge", "traced") else evaluation)(mode)
