"""DeepEval's half: `evaluate`. The judge is that of peer_deepeval.py: asked with a schema, it returns an object."""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import AnswerRelevancyMetric, ContextualRelevancyMetric, SummarizationMetric
from meter import Latency, Way, main
from peer_deepeval import RIGHT, Judge, answer, summary

METRICS: dict[str, tuple[Any, Any, int]] = {  # the metric, what makes a sample, rounds with a reason
    "SummarizationMetric": (SummarizationMetric, summary, 4),
    "AnswerRelevancyMetric": (AnswerRelevancyMetric, answer, 3),
    "ContextualRelevancyMetric": (ContextualRelevancyMetric, answer, 2),
}
MOST_WITH_DEFAULTS = 300  # the time grows with the square of the number


class TimedJudge(Judge):
    """Answers after the latency."""

    def __init__(self, latency: Latency) -> None:
        super().__init__()
        self._pace: Any = latency


def prepare(
    name: str, include_reason: bool, options: dict[str, Any], latency: Latency, numbers: range
) -> Callable[[], None]:
    kind, make, _ = METRICS[name]
    cases = [make(i) for i in numbers]
    metric = kind(model=TimedJudge(latency), include_reason=include_reason)

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
