"""An app under LANGSMITH_TRACING that calls a judge; run by test_unseen.py: python traced_app.py judge|traced|app

"judge": a judge as it is; "traced": with `trace=True`; "app": the app's own model. The trace goes to LANGSMITH_ENDPOINT.
"""

import asyncio
import sys

from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.langchain import wait_for_all_tracers
from langsmith.run_helpers import tracing_context

from ragstone import LLMRequest
from ragstone_langchain import LangChainLLM

REQUEST = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))


def main(mode: str) -> None:
    model = FakeListChatModel(responses=["yes"])
    judge = LangChainLLM(model, trace=mode == "traced")

    def ask(_):
        return model.invoke("Is it?").content if mode == "app" else judge.generate(REQUEST).text

    async def aask(_):
        return (await model.ainvoke("Is it?")).content if mode == "app" else (await judge.agenerate(REQUEST)).text

    assert ask(None) == "yes"
    assert asyncio.run(aask(None)) == "yes"
    with tracing_context(enabled=True):
        assert ask(None) == "yes"
    if mode != "judge":  # in a chain of the app's, whose own run is traced
        assert RunnableLambda(ask).invoke("x") == "yes"
    wait_for_all_tracers()


if __name__ == "__main__":
    main(sys.argv[1])
