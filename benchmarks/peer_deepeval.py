"""DeepEval's half of overhead.py, run under a Python that has deepeval 4.3.1.

    python benchmarks/peer_deepeval.py [N]                                   # CPU per sample, instant judge
    python benchmarks/peer_deepeval.py [N] --slow [--seconds S] [--in-flight K]   # throughput, slow judge

The last line printed is JSON: a list of {"path", "cpu_ms"}, or with --slow of {"path", "rate", "ideal"}.

The judge is the fastest one the API allows: asked with a `schema`, it returns a ready instance of it, so nothing
is parsed. Every sample has a metric of its own, as DeepEval keeps the result (and the questions it generated) on
the metric. The progress spinner is off, as it is inside DeepEval's own `evaluate`.
"""

import asyncio
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"

from common import FIVE, QUESTION, SOURCE, SUMMARY, Pace, run_peer
from deepeval.metrics import AnswerRelevancyMetric, BaseMetric, ContextualRelevancyMetric, SummarizationMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase
from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)

VERDICTS = [{"verdict": "yes"}] * 4 + [{"verdict": "no", "reason": "Not so."}]
RIGHT = 0.8  # four of five, in each metric
FIELDS = {
    "Truths": {"truths": [f"Truth {i}." for i in FIVE]},
    "Claims": {"claims": [f"Claim {i}." for i in FIVE]},
    "Questions": {"questions": [f"Is it {i}?" for i in FIVE]},
    "Answers": {"answers": ["yes"] * 5},
    "Statements": {"statements": [f"Statement {i}." for i in FIVE]},
    "Verdicts": {"verdicts": VERDICTS},
    "ContextualRelevancyVerdicts": {
        "verdicts": [{"statement": f"Statement {i}.", **verdict} for i, verdict in zip(FIVE, VERDICTS, strict=True)]
    },
    "SummarizationScoreReason": {"reason": "So it is."},
    "AnswerRelevancyScoreReason": {"reason": "So it is."},
    "ContextualRelevancyScoreReason": {"reason": "So it is."},
}


class Judge(DeepEvalBaseLLM):
    """Answers after `seconds`, at most `in_flight` calls at a time; 0 seconds: at once."""

    def __init__(self, seconds: float = 0.0, in_flight: int = 1) -> None:
        super().__init__("fake")
        self._pace = Pace(seconds, in_flight)
        self._ready: dict[type[BaseModel], BaseModel] = {}

    def load_model(self) -> "Judge":
        return self

    def get_model_name(self) -> str:
        return "fake"

    def generate(self, prompt: str, schema: type[Model]) -> Model:  # noqa: ARG002
        return self._reply(schema)

    async def a_generate(self, prompt: str, schema: type[Model]) -> Model:  # noqa: ARG002
        if self._pace.seconds:
            await self._pace.wait()
        return self._reply(schema)

    def _reply(self, schema: type[Model]) -> Model:
        reply = self._ready.get(schema)
        if reply is None:
            reply = self._ready[schema] = schema.model_validate(FIELDS[schema.__name__])
        return reply


class Case(NamedTuple):
    path: str
    metric: Callable[[Judge], BaseMetric]
    sample: Callable[[int], LLMTestCase]
    calls: int
    rounds: int


def summary(i: int) -> LLMTestCase:
    return LLMTestCase(input=f"{SOURCE} Text number {i}.", actual_output=f"{SUMMARY} ({i})")


def answer(i: int) -> LLMTestCase:
    return LLMTestCase(
        input=f"{QUESTION} ({i})",
        actual_output=f"{SUMMARY} ({i})",
        retrieval_context=[f"{SOURCE} Text number {i}."],
    )


CASES = [
    Case("SummarizationMetric `a_measure`", lambda judge: SummarizationMetric(model=judge), summary, 7, 4),
    Case("AnswerRelevancyMetric `a_measure`", lambda judge: AnswerRelevancyMetric(model=judge), answer, 3, 3),
    Case("ContextualRelevancyMetric `a_measure`", lambda judge: ContextualRelevancyMetric(model=judge), answer, 2, 2),
]


async def score(case: Case, judge: Judge, sample: LLMTestCase) -> float:
    return await case.metric(judge).a_measure(sample, _show_indicator=False)


async def instant(n: int, repeats: int = 5) -> list[dict[str, Any]]:
    """Return the median CPU ms per sample of each path; the first repeat, left out, warms up."""
    judge = Judge()
    figures: dict[str, list[float]] = {case.path: [] for case in CASES}
    for repeat in range(repeats + 1):
        for case in CASES:
            samples = [case.sample(i) for i in range(repeat * n, (repeat + 1) * n)]
            start = time.process_time()
            scores = [await score(case, judge, sample) for sample in samples]
            figures[case.path].append((time.process_time() - start) / n * 1000)
            check(case, scores)
    return [{"path": path, "cpu_ms": statistics.median(each[1:])} for path, each in figures.items()]


async def slow(n: int, seconds: float, in_flight: int) -> list[dict[str, Any]]:
    """Return the samples/s of each path, all samples at once before a judge that takes `in_flight` calls at a time."""
    judge = Judge(seconds, in_flight)
    rows: list[dict[str, Any]] = []
    for case in CASES:
        samples = [case.sample(i) for i in range(n)]
        await score(case, judge, case.sample(n))
        start = time.perf_counter()
        scores: list[float] = []
        todo = iter(samples)

        async def worker(case: Case = case, scores: list[float] = scores, todo: Iterator[Any] = todo) -> None:
            while (sample := next(todo, None)) is not None:
                scores.append(await score(case, judge, sample))

        await asyncio.gather(*(worker() for _ in range(2 * in_flight)))
        wall = time.perf_counter() - start
        check(case, scores)
        ideal = max(n * case.calls * seconds / in_flight, case.rounds * seconds)
        rows.append({"path": case.path, "rate": n / wall, "ideal": n / ideal})
    return rows


def check(case: Case, scores: list[float]) -> None:
    for each in scores:
        assert math.isclose(each, RIGHT), (case.path, each)


if __name__ == "__main__":
    run_peer(instant, slow)
