"""ragas 0.1.10, the last release with the sentence-level context_relevancy.

    python of_ragas_0_1_10.py FOLDER --url http://127.0.0.1:8399/v1 --out DIR/scores/ragas-0.1.10.jsonl

Needs an environment of its own, with LangChain 0.2.
"""

import os

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_openai import ChatOpenAI
from ragas import RunConfig
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import ContextRelevancy
from readings import chosen, unquoted
from scorelines import MODEL, Data, Found, Place, Scorers, main


class Heard(AsyncCallbackHandler):
    """Keeps what the judge said: the metric counts its sentences and drops them."""

    def __init__(self) -> None:
        self.text = ""

    async def on_llm_end(self, response: LLMResult, **_: Any) -> None:  # noqa: ANN401 - LangChain's signature
        self.text = response.generations[0][0].text


def scorers(place: Place) -> Scorers:
    client = ChatOpenAI(model=MODEL, base_url=place.url, api_key=place.key, max_retries=0)
    metric = ContextRelevancy(llm=LangchainLLMWrapper(client, RunConfig(timeout=int(place.seconds))))

    async def context_relevancy(row: Data) -> Found:
        heard = Heard()
        asked = {"question": row["user_input"], "contexts": row["retrieved_contexts"]}
        value = await metric.ascore(asked, callbacks=[heard])
        sentences = chosen(unquoted(heard.text), row["sentences"]) if "sentences" in row else None
        return Found(float(value), {} if sentences is None else {"quoted": sum(m[2] for m in sentences)}, sentences)

    return {"ContextRelevancy": context_relevancy}


if __name__ == "__main__":
    main("ragas-0.1.10", scorers)
