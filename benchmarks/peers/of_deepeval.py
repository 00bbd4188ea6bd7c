"""DeepEval's half: `evaluate`. The judge is the fastest that the API allows: it returns ready objects."""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"

from common import FIVE, QUESTION, SOURCE, SUMMARY
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import AnswerRelevancyMetric, ContextualRelevancyMetric, SummarizationMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase
from meter import Latency, Way, main
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
    """Answers after the latency, with ready objects: nothing is parsed."""

    def __init__(self, latency: Latency) -> None:
        super().__init__("fake")
        self._latency = latency
        self._ready: dict[type[BaseModel], BaseModel] = {}

    def load_model(self) -> "Judge":
        return self

    def get_model_name(self) -> str:
        return "fake"

    def generate(self, prompt: str, schema: type[Model]) -> Model:  # noqa: ARG002
        return self._reply(schema)

    async def a_generate(self, prompt: str, schema: type[Model]) -> Model:  # noqa: ARG002
        if self._latency.seconds:
            await self._latency.wait()
        return self._reply(schema)

    def _reply(self, schema: type[Model]) -> Model:
        reply = self._ready.get(schema)
        if reply is None:
            reply = self._ready[schema] = schema.model_validate(FIELDS[schema.__name__])
        return reply


def summary(i: int) -> LLMTestCase:
    return LLMTestCase(input=f"{SOURCE} Text number {i}.", actual_output=f"{SUMMARY} ({i})")


def answer(i: int) -> LLMTestCase:
    return LLMTestCase(
        input=f"{QUESTION} ({i})",
        actual_output=f"{SUMMARY} ({i})",
        retrieval_context=[f"{SOURCE} Text number {i}."],
    )


METRICS: dict[str, tuple[Any, Any, int]] = {  # the metric, what makes a sample, rounds with a reason
    "SummarizationMetric": (SummarizationMetric, summary, 4),
    "AnswerRelevancyMetric": (AnswerRelevancyMetric, answer, 3),
    "ContextualRelevancyMetric": (ContextualRelevancyMetric, answer, 2),
}
MOST_WITH_DEFAULTS = 300  # the time grows with the square of the number


def prepare(
    name: str, include_reason: bool, options: dict[str, Any], latency: Latency, numbers: range
) -> Callable[[], None]:
    kind, make, _ = METRICS[name]
    cases = [make(i) for i in numbers]
    metric = kind(model=Judge(latency), include_reason=include_reason)

    def run() -> None:
        results = evaluate(cases, [metric], **options).test_results
        assert len(results) == len(cases)
        for result in results:
            assert math.isclose(result.metrics_data[0].score, RIGHT), result

    return run


def quick() -> dict[str, Any]:
    """Return the settings that cost least."""
    return {
        "async_config": AsyncConfig(max_concurrent=64),
        "display_config": DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        "cache_config": CacheConfig(write_cache=False),
    }


QUICK = "`max_concurrent=64`, `write_cache=False`, no display"
WAYS = [
    way
    for name, (_, _, rounds) in METRICS.items()
    for way in (
        Way(
            name,
            "defaults (20 test cases)",
            partial(prepare, name, True, {}),
            20,
            "samples",
            rounds,
            most_samples=MOST_WITH_DEFAULTS,
        ),
        Way(name, QUICK, partial(prepare, name, True, quick()), 64, "samples", rounds),
        Way(
            name,
            "the same, `include_reason=False`",
            partial(prepare, name, False, quick()),
            64,
            "samples",
            rounds - 1,
        ),
    )
]

if __name__ == "__main__":
    main(WAYS)
