"""llama-index-core: AnswerRelevancyEvaluator and ContextRelevancyEvaluator.

    python of_llama_index.py FOLDER --url http://127.0.0.1:8399/v1 --out DIR/scores/llama-index-core-0.14.25.jsonl

Needs an environment with llama-index-core 0.14.25.
"""

from typing import Any

import httpx
from llama_index.core.evaluation import AnswerRelevancyEvaluator, ContextRelevancyEvaluator, EvaluationResult
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from scorelines import MODEL, Data, Found, Place, Scorers, main

CONTEXT_TOKENS = 16_384  # serve.py's default
REPLY_TOKENS = 512  # feedback and a number: the small judge may give the same feedback again without end


class Judge(CustomLLM):
    """Asks the server; llama-index-core has no client of its own."""

    url: str
    key: str
    seconds: float

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=CONTEXT_TOKENS, num_output=REPLY_TOKENS, model_name=MODEL)

    async def acomplete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ANN401, ARG002
        messages = [{"role": "user", "content": prompt}]
        body = {"model": MODEL, "messages": messages, "temperature": 0.0, "max_tokens": REPLY_TOKENS}
        async with httpx.AsyncClient(timeout=self.seconds) as client:
            headers = {"Authorization": f"Bearer {self.key}"}
            reply = await client.post(f"{self.url}/chat/completions", json=body, headers=headers)
        return CompletionResponse(text=reply.raise_for_status().json()["choices"][0]["message"]["content"])

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ANN401
        raise NotImplementedError("only `aevaluate` is used here")

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:  # noqa: ANN401
        raise NotImplementedError("nothing is streamed")


def scorers(place: Place) -> Scorers:
    judge = Judge(url=place.url, key=place.key, seconds=place.seconds)
    answer, context = AnswerRelevancyEvaluator(llm=judge), ContextRelevancyEvaluator(llm=judge)

    async def answer_relevancy(row: Data) -> Found:
        return read(await answer.aevaluate(query=row["user_input"], response=row["response"]))

    async def context_relevancy(row: Data) -> Found:
        return read(await context.aevaluate(query=row["user_input"], contexts=row["retrieved_contexts"]))

    return {"ResponseRelevancy": answer_relevancy, "ContextRelevancy": context_relevancy}


def read(result: EvaluationResult) -> Found:
    """Return the score, which llama-index leaves out where it finds no "[RESULT]" and a number."""
    return Found(None, unscored="invalid_result") if result.score is None else Found(float(result.score))


if __name__ == "__main__":
    main("llama-index-core", scorers)
