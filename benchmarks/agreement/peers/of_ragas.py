"""ragas 0.4.3: AnswerRelevancy and SummaryScore of its `collections`, its way that is not deprecated.

    python of_ragas.py FOLDER --url http://127.0.0.1:8399/v1 --out DIR/scores/ragas-0.4.3.jsonl

Needs an environment with ragas 0.4.3 and langchain-community 0.4.1.
"""

import os

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from openai import AsyncOpenAI
from ragas.embeddings import OpenAIEmbeddings
from ragas.llms import llm_factory
from ragas.metrics.collections import AnswerRelevancy, SummaryScore
from readings import qa_and_conciseness
from scorelines import MODEL, Data, Found, Place, Scorers, main


def scorers(place: Place) -> Scorers:
    client = AsyncOpenAI(base_url=place.url, api_key=place.key, timeout=place.seconds, max_retries=0)
    llm = llm_factory(MODEL, client=client)
    answer = AnswerRelevancy(llm=llm, embeddings=OpenAIEmbeddings(client=client, model=MODEL))
    summary = SummaryScore(llm=llm)

    async def answer_relevancy(row: Data) -> Found:
        result = await answer.ascore(user_input=row["user_input"], response=row["response"])
        return Found(float(result.value))

    async def summary_score(row: Data) -> Found:
        result = await summary.ascore(reference_contexts=[row["source"]], response=row["response"])
        return Found(result.value, qa_and_conciseness(result.value, row["source"], row["response"]))

    return {"ResponseRelevancy": answer_relevancy, "SummarizationScore": summary_score}


if __name__ == "__main__":
    main("ragas-0.4.3", scorers)
