"""ragas' half: `evaluate` over the metrics that take any LLM, and `batch_score` of the `collections`.

The judges are the fastest that the API allows. Those of `evaluate` return text that the metrics parse (three questions
from one call, as a model with `n` gives them). Those of `collections` return ready objects, with no client. Embedders
return ready lists of 384 floats.
"""

import json
import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from common import FIVE, QUESTION, SOURCE, SUMMARY
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompt_values import PromptValue
from meter import Latency, Way, main
from pydantic import BaseModel
from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
from ragas.embeddings import BaseRagasEmbedding, BaseRagasEmbeddings
from ragas.llms import BaseRagasLLM, InstructorBaseRagasLLM
from ragas.metrics import ResponseRelevancy, SummarizationScore
from ragas.metrics.collections import AnswerRelevancy, SummaryScore

Model = TypeVar("Model", bound=BaseModel)

KEYPHRASES = {"keyphrases": [f"k{i}" for i in FIVE]}
QUESTIONS = {"questions": [f"Is it {i}?" for i in FIVE]}
ANSWERS = {"answers": ["1", "1", "1", "1", "0"]}
RELEVANCE = [{"question": f"{QUESTION} {i}", "noncommittal": 0} for i in "abc"]
ASKED, GENERATED = [1.0, 0.0] * 192, [0.6, 0.8] * 192  # their cosine is 0.6
COSINE, ANSWERED = 0.6, 0.8


def texts(*replies: object) -> LLMResult:
    return LLMResult(generations=[[Generation(text=json.dumps(reply)) for reply in replies]])


TEXTS = {  # by the first words of the prompt, cut where the four differ
    "Extract keyphrase": texts(KEYPHRASES),
    "Based on the give": texts(QUESTIONS),
    "Based on the list": texts(ANSWERS),
    "Generate a questi": texts(*RELEVANCE),
}
FIELDS = {
    "ExtractedKeyphrases": KEYPHRASES,
    "QuestionsGenerated": QUESTIONS,
    "AnswersGenerated": ANSWERS,
    "AnswerRelevanceOutput": RELEVANCE[0],
}


class LegacyJudge(BaseRagasLLM):
    def __init__(self, latency: Latency) -> None:
        super().__init__()
        self._latency = latency

    def is_finished(self, response: LLMResult) -> bool:  # noqa: ARG002
        return True

    def generate_text(self, prompt: PromptValue, **_: object) -> LLMResult:
        return TEXTS[prompt.to_string()[:17]]

    async def agenerate_text(self, prompt: PromptValue, **_: object) -> LLMResult:
        if self._latency.seconds:
            await self._latency.wait()
        return TEXTS[prompt.to_string()[:17]]


class LegacyEmbedder(BaseRagasEmbeddings):
    def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
        return ASKED

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [GENERATED] * len(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.embed_documents(texts)


class ModernJudge(InstructorBaseRagasLLM):
    def __init__(self, latency: Latency) -> None:
        self._latency = latency
        self._ready: dict[type[BaseModel], BaseModel] = {}

    def generate(self, prompt: str, response_model: type[Model]) -> Model:  # noqa: ARG002
        reply = self._ready.get(response_model)
        if reply is None:
            reply = self._ready[response_model] = response_model.model_validate(FIELDS[response_model.__name__])
        return reply

    async def agenerate(self, prompt: str, response_model: type[Model]) -> Model:
        if self._latency.seconds:
            await self._latency.wait()
        return self.generate(prompt, response_model)


class ModernEmbedder(BaseRagasEmbedding):
    def embed_text(self, text: str, **_: object) -> list[float]:  # noqa: ARG002
        return ASKED

    async def aembed_text(self, text: str, **_: object) -> list[float]:  # noqa: ARG002
        return ASKED

    async def aembed_texts(self, texts: list[str], **_: object) -> list[list[float]]:
        return [GENERATED] * len(texts)


def row(i: int) -> dict[str, Any]:
    """Return the fields of a sample of its own."""
    return {
        "user_input": f"{QUESTION} ({i})",
        "response": f"{SUMMARY} ({i})",
        "reference_contexts": [f"{SOURCE} Text number {i}."],
    }


def check(metric: str, scores: list[float], rows: list[dict[str, Any]]) -> None:
    assert len(scores) == len(rows)
    for score, each in zip(scores, rows, strict=True):
        kept = (ANSWERED + 1 - len(each["response"]) / len(each["reference_contexts"][0])) / 2
        right = kept if metric in ("SummarizationScore", "SummaryScore") else COSINE
        assert math.isclose(score, right, rel_tol=1e-6), (metric, score, right)


def by_evaluate(name: str, options: dict[str, Any], latency: Latency, numbers: range) -> Callable[[], None]:
    rows = [row(i) for i in numbers]
    dataset = EvaluationDataset(samples=[SingleTurnSample(**each) for each in rows])
    judge = LegacyJudge(latency)
    summarizes = name == "SummarizationScore"
    metric = SummarizationScore(llm=judge) if summarizes else ResponseRelevancy(llm=judge, embeddings=LegacyEmbedder())

    def run() -> None:
        result = evaluate(dataset, metrics=[metric], **options)
        check(name, result[metric.name], rows)

    return run


def by_batch_score(name: str, latency: Latency, numbers: range) -> Callable[[], None]:
    rows = [row(i) for i in numbers]
    judge = ModernJudge(latency)
    if name == "SummaryScore":
        metric: Any = SummaryScore(llm=judge)
        keys = ("reference_contexts", "response")
    else:
        metric = AnswerRelevancy(llm=judge, embeddings=ModernEmbedder())
        keys = ("user_input", "response")
    inputs = [{key: each[key] for key in keys} for each in rows]

    def run() -> None:
        check(name, [result.value for result in metric.batch_score(inputs)], rows)

    return run


SETTINGS: tuple[tuple[str, Callable[[], dict[str, Any]], int], ...] = (
    ("`evaluate`, defaults (16 workers)", dict, 16),
    (
        "`evaluate`, `RunConfig(max_workers=64)`, `show_progress=False`",
        lambda: {"run_config": RunConfig(max_workers=64), "show_progress": False},
        64,
    ),
)
WAYS = [
    Way(name, said, partial(by_evaluate, name, options()), slots, "samples", rounds)
    for name, rounds in (("ResponseRelevancy", 1), ("SummarizationScore", 3))
    for said, options, slots in SETTINGS
] + [
    way
    for name in ("AnswerRelevancy", "SummaryScore")
    for way in (
        Way(f"collections {name}", "`batch_score` (no limit)", partial(by_batch_score, name), None, "calls", 3),
        Way(
            f"collections {name}",
            "`batch_score`, a client that takes 64 calls",
            partial(by_batch_score, name),
            64,
            "calls",
            3,
            client=64,
        ),
    )
]

if __name__ == "__main__":
    main(WAYS)
