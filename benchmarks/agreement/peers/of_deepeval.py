"""DeepEval 4.3.1: SummarizationMetric, AnswerRelevancyMetric and ContextualRelevancyMetric.

    python of_deepeval.py FOLDER --url http://127.0.0.1:8399/v1 --out DIR/scores/deepeval-4.3.1.jsonl

Needs an environment with deepeval 4.3.1.
"""

import os

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
os.environ["DEEPEVAL_DISABLE_DOTENV"] = "1"

from typing import TypeVar

from deepeval.metrics import AnswerRelevancyMetric, ContextualRelevancyMetric, SummarizationMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase
from openai import AsyncOpenAI
from pydantic import BaseModel
from readings import copied
from scorelines import MODEL, Data, Found, Place, Scorers, main

Model = TypeVar("Model", bound=BaseModel)


class Judge(DeepEvalBaseLLM):
    """A custom model as DeepEval's documentation wants it of a small one: the reply is confined to the schema."""

    def __init__(self, place: Place) -> None:
        self._client = AsyncOpenAI(base_url=place.url, api_key=place.key, timeout=place.seconds, max_retries=0)
        super().__init__(MODEL)

    def load_model(self) -> "Judge":
        return self

    def get_model_name(self) -> str:
        return MODEL

    def generate(self, prompt: str, schema: type[Model]) -> Model:
        raise NotImplementedError("only `a_measure` is used here")

    async def a_generate(self, prompt: str, schema: type[Model]) -> Model:
        shape = {"name": schema.__name__, "schema": schema.model_json_schema(), "strict": True}
        reply = await self._client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": prompt}],
            temperature=0.0,
            response_format={"type": "json_schema", "json_schema": shape},
        )
        return schema.model_validate_json(reply.choices[0].message.content or "")


def scorers(place: Place) -> Scorers:
    """Make a metric for each row, as DeepEval keeps a row's results on it; a reason would only cost a call more."""
    judge = Judge(place)

    async def answer_relevancy(row: Data) -> Found:
        metric = AnswerRelevancyMetric(model=judge, include_reason=False)
        case = LLMTestCase(input=row["user_input"], actual_output=row["response"])
        return Found(await metric.a_measure(case, _show_indicator=False), {"statements": len(metric.statements)})

    async def contextual_relevancy(row: Data) -> Found:
        metric = ContextualRelevancyMetric(model=judge, include_reason=False)
        contexts = row["retrieved_contexts"]
        case = LLMTestCase(input=row["user_input"], actual_output="", retrieval_context=contexts)
        value = await metric.a_measure(case, _show_indicator=False)
        said = [verdict.statement for each in metric.verdicts_list for verdict in each.verdicts]
        return Found(value, copied(said, row.get("sentences", ())))

    async def summarization(row: Data) -> Found:
        metric = SummarizationMetric(model=judge, include_reason=False)
        case = LLMTestCase(input=row["source"], actual_output=row["response"])
        value = await metric.a_measure(case, _show_indicator=False)
        return Found(value, {name.lower(): share for name, share in metric.score_breakdown.items()})

    return {
        "ResponseRelevancy": answer_relevancy,
        "ContextRelevancy": contextual_relevancy,
        "AlignmentCoverage": summarization,
    }


if __name__ == "__main__":
    main("deepeval-4.3.1", scorers)
