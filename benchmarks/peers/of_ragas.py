"""ragas' half: `evaluate` over the metrics that take any LLM, and `batch_score` of the `collections`.

The judges are those of peer_ragas.py, the fastest that the API allows: `evaluate`'s return text that the metrics parse
(three questions from one call, as a model with `n` gives them), those of `collections` ready objects, with no client.
"""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from common import QUESTION, SOURCE, SUMMARY
from meter import Latency, Way, main
from peer_ragas import ANSWERED, COSINE, LegacyEmbedder, LegacyJudge, ModernEmbedder, ModernJudge
from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
from ragas.metrics import ResponseRelevancy, SummarizationScore
from ragas.metrics.collections import AnswerRelevancy, SummaryScore


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
