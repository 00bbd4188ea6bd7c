"""ragas's half of overhead.py, run under a Python that has ragas 0.4.3 (with langchain-community 0.4.1).

    python benchmarks/peer_ragas.py [N]                                   # CPU per sample, instant judge
    python benchmarks/peer_ragas.py [N] --slow [--seconds S] [--in-flight K]   # throughput, slow judge

The last line printed is JSON: a list of {"path", "cpu_ms"}, or with --slow of {"path", "rate", "ideal"}.

The judge is the fastest one its API allows. The legacy metrics parse text, so theirs returns a ready LLMResult
holding the JSON that the prompt asks for; the `collections` metrics take the response model, so theirs returns
a ready instance of it, without instructor and without parsing. Embedders return ready lists of 384 floats.
"""

import asyncio
import json
import math
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple, TypeVar

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from common import FIVE, QUESTION, SOURCE, SUMMARY, Pace, run_peer
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel
from ragas import SingleTurnSample
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
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def is_finished(self, response: LLMResult) -> bool:  # noqa: ARG002
        return True

    def generate_text(self, prompt: PromptValue, **_: object) -> LLMResult:
        return TEXTS[prompt.to_string()[:17]]

    async def agenerate_text(self, prompt: PromptValue, **_: object) -> LLMResult:
        if self._pace.seconds:
            await self._pace.wait()
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
    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._ready: dict[type[BaseModel], BaseModel] = {}

    def generate(self, prompt: str, response_model: type[Model]) -> Model:  # noqa: ARG002
        reply = self._ready.get(response_model)
        if reply is None:
            reply = self._ready[response_model] = response_model.model_validate(FIELDS[response_model.__name__])
        return reply

    async def agenerate(self, prompt: str, response_model: type[Model]) -> Model:
        if self._pace.seconds:
            await self._pace.wait()
        return self.generate(prompt, response_model)


class ModernEmbedder(BaseRagasEmbedding):
    def embed_text(self, text: str, **_: object) -> list[float]:  # noqa: ARG002
        return ASKED

    async def aembed_text(self, text: str, **_: object) -> list[float]:  # noqa: ARG002
        return ASKED

    async def aembed_texts(self, texts: list[str], **_: object) -> list[list[float]]:
        return [GENERATED] * len(texts)


class Case(NamedTuple):
    path: str
    score: Callable[[int], Awaitable[float]]  # of sample number i
    right: Callable[[int], float]  # what that must give
    calls: int
    rounds: int


def cases(pace: Pace, n: int) -> list[Case]:
    """Each path with its samples made ahead: `n` of them, no two alike."""
    sources = [f"{SOURCE} Text number {i}." for i in range(n)]
    summaries = [f"{SUMMARY} ({i})" for i in range(n)]
    questions = [f"{QUESTION} ({i})" for i in range(n)]
    samples = [
        SingleTurnSample(user_input=question, response=summary, reference_contexts=[source])
        for question, summary, source in zip(questions, summaries, sources, strict=True)
    ]
    legacy_summary = SummarizationScore(llm=LegacyJudge(pace))
    legacy_relevancy = ResponseRelevancy(llm=LegacyJudge(pace), embeddings=LegacyEmbedder())
    modern_summary = SummaryScore(llm=ModernJudge(pace))
    modern_relevancy = AnswerRelevancy(llm=ModernJudge(pace), embeddings=ModernEmbedder())

    async def summary_score(i: int) -> float:
        return (await modern_summary.ascore(reference_contexts=[sources[i]], response=summaries[i])).value

    async def answer_relevancy(i: int) -> float:
        return (await modern_relevancy.ascore(user_input=questions[i], response=summaries[i])).value

    def summarized(i: int) -> float:
        return (ANSWERED + 1 - len(summaries[i]) / len(sources[i])) / 2

    return [
        Case(
            "ResponseRelevancy `single_turn_ascore`",
            lambda i: legacy_relevancy.single_turn_ascore(samples[i]),
            lambda _: COSINE,
            1,
            1,
        ),
        Case(
            "SummarizationScore `single_turn_ascore`",
            lambda i: legacy_summary.single_turn_ascore(samples[i]),
            summarized,
            3,
            3,
        ),
        Case("collections AnswerRelevancy `ascore`, no client", answer_relevancy, lambda _: COSINE, 3, 3),
        Case("collections SummaryScore `ascore`, no client", summary_score, summarized, 3, 3),
    ]


async def instant(n: int, repeats: int = 5) -> list[dict[str, Any]]:
    """Return the median CPU ms per sample of each path; the first repeat, left out, warms up."""
    todo = cases(Pace(), (repeats + 1) * n)
    figures: dict[str, list[float]] = {case.path: [] for case in todo}
    for repeat in range(repeats + 1):
        for case in todo:
            numbers = range(repeat * n, (repeat + 1) * n)
            start = time.process_time()
            scores = [await case.score(i) for i in numbers]
            figures[case.path].append((time.process_time() - start) / n * 1000)
            check(case, dict(zip(numbers, scores, strict=True)))
    return [{"path": path, "cpu_ms": statistics.median(each[1:])} for path, each in figures.items()]


async def slow(n: int, seconds: float, in_flight: int) -> list[dict[str, Any]]:
    """Return the samples/s of each path, all samples at once before a judge that takes `in_flight` calls at a time."""
    rows: list[dict[str, Any]] = []
    for case in cases(Pace(seconds, in_flight), n + 1):
        await case.score(n)
        start = time.perf_counter()
        scores = dict.fromkeys(range(n), 0.0)
        todo = iter(range(n))

        async def worker(case: Case = case, scores: dict[int, float] = scores, todo: Iterator[int] = todo) -> None:
            while (i := next(todo, None)) is not None:
                scores[i] = await case.score(i)

        await asyncio.gather(*(worker() for _ in range(2 * in_flight)))
        wall = time.perf_counter() - start
        check(case, scores)
        ideal = max(n * case.calls * seconds / in_flight, case.rounds * seconds)
        rows.append({"path": case.path, "rate": n / wall, "ideal": n / ideal})
    return rows


def check(case: Case, scores: dict[int, float]) -> None:
    for i, score in scores.items():
        assert math.isclose(score, case.right(i), rel_tol=1e-6), (case.path, score, case.right(i))


if __name__ == "__main__":
    run_peer(instant, slow)
