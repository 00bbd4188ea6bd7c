"""What ragstone itself costs: CPU per sample with an instant judge, throughput with a slow one.

    python benchmarks/overhead.py

Figures are medians over interleaved repeats of one run: on a busy machine trust the ratios. `benchmarks/peers` has
ragas and DeepEval beside ragstone.
"""

import argparse
import asyncio
import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

from common import FIVE, QUESTION, SOURCE, SUMMARY, Pace

from ragstone import (
    LLM,
    AlignmentCoverage,
    ContextRelevancy,
    LLMReply,
    LLMRequest,
    Metric,
    Outcome,
    ResponseRelevancy,
    Sample,
    Score,
    SummarizationScore,
)
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone.text import split_sentences

REPLIES = {
    "response_relevancy.questions": {
        "questions": [{"question": f"{QUESTION} {i}", "noncommittal": False} for i in "abc"]
    },
    "summarization_score.questions": {"items": [{"keyphrase": f"k{i}", "question": f"Is it {i}?"} for i in FIVE]},
    "summarization_score.answers": {"answers": dict.fromkeys(FIVE, "yes")},
    "alignment_coverage.claims": {"claims": [f"Claim {i}." for i in FIVE]},
    "alignment_coverage.questions": {"questions": [f"Is it {i}?" for i in FIVE]},
    "alignment_coverage.verdicts": {"verdicts": {i: {"evidence": [1, 2], "verdict": "supported"} for i in FIVE}},
    "alignment_coverage.source_answers": {"answers": dict.fromkeys(FIVE, "yes")},
    "alignment_coverage.summary_answers": {"answers": dict.fromkeys(FIVE, "yes")},
    "context_relevancy.sentences": {"ids": [1, 2]},
}
SCRIPT = {task: json.dumps(reply) for task, reply in REPLIES.items()}
TARGETS = {  # CPU ms per sample that the project set itself; the last without splitting
    "response_relevancy": 0.35,
    "summarization_score": 0.5,
    "alignment_coverage": 0.9,
    "context_relevancy": 0.35,
}
ROUNDS = {  # calls of each round, with the script above
    "response_relevancy": (1,),
    "summarization_score": (1, 1),
    "alignment_coverage": (2, 3),
    "context_relevancy": (1,),
}


class SlowLLM:
    """Answers from the script after a fixed time, with a bounded number of calls in flight."""

    model = "slow"
    asking = "together"

    def __init__(self, seconds: float, in_flight: int) -> None:
        self._pace = Pace(seconds, in_flight)

    def generate(self, request: LLMRequest, /) -> LLMReply:
        raise NotImplementedError("the benchmark scores with ascore")

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        await self._pace.wait()
        return LLMReply(SCRIPT[request.task])


def metrics(llm: LLM) -> list[Metric]:
    return [
        ResponseRelevancy(llm=llm, embedder=FakeEmbedder(384)),
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm),
        ContextRelevancy(llm=llm),
    ]


def sample(metric: Metric, i: int) -> Sample:
    """Return a sample of its own: nothing can be reused from the last one."""
    question = f"{SOURCE} Text number {i}." if metric.name == "alignment_coverage" else f"{QUESTION} ({i})"
    return Sample(user_input=question, retrieved_contexts=[f"{SOURCE} Text number {i}."], response=f"{SUMMARY} ({i})")


def cpu_ms(run: Callable[[int], Any], n: int, repeats: int = 5) -> float:
    """Return the median CPU milliseconds of one of `n` calls."""
    figures: list[float] = []
    for repeat in range(repeats + 1):
        start = time.process_time()
        for i in range(n):
            run(repeat * n + i)
        figures.append((time.process_time() - start) / n * 1000)
    return statistics.median(figures[1:])


def instant(n: int) -> list[tuple[str, float, float]]:
    """Return (metric, CPU ms per sample through ascore, CPU ms of splitting in it)."""
    loop = asyncio.new_event_loop()
    llm = FakeLLM(lambda request: SCRIPT[request.task])
    rows: list[tuple[str, float, float]] = []
    for metric in metrics(llm):
        samples = [sample(metric, i) for i in range(6 * n)]

        def run(i: int, metric: Metric = metric, samples: list[Sample] = samples) -> Outcome:
            llm.requests.clear()
            return loop.run_until_complete(metric.ascore(samples[i]))

        assert isinstance(run(0), Score)
        own = cpu_ms(run, n) - cpu_ms(lambda _: loop.run_until_complete(asyncio.sleep(0)), n)
        splits = metric.name in ("alignment_coverage", "context_relevancy")
        splitting = cpu_ms(lambda i: split_sentences(f"{SOURCE} Text number {i}."), n) if splits else 0.0
        rows.append((metric.name, own, splitting))
    loop.close()
    return rows


def throughput(n: int, seconds: float, in_flight: int) -> list[tuple[str, float, float, float]]:
    """Return (metric, samples/s, ideal samples/s, wall seconds) with a slow judge.

    Ideal: every slot busy all the time, `n * calls * seconds / in_flight`. Calls being whole, 2,000 of them on 64 slots
    take 32 turns, not 31.25: 97.7 % is the most that one call a sample can reach.
    """

    async def score_all(metric: Metric) -> float:
        samples = iter([sample(metric, i) for i in range(n)])
        outcomes: list[Outcome] = []

        async def worker() -> None:
            while (one := next(samples, None)) is not None:
                outcomes.append(await metric.ascore(one))

        start = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(2 * in_flight)))
        wall = time.perf_counter() - start
        assert len(outcomes) == n
        assert all(isinstance(outcome, Score) for outcome in outcomes)
        return wall

    async def one(index: int) -> tuple[str, float]:
        metric = metrics(SlowLLM(seconds, in_flight))[index]
        await metric.ascore(sample(metric, 0))
        return metric.name, await score_all(metric)

    rows: list[tuple[str, float, float, float]] = []
    for index in range(len(ROUNDS)):
        name, wall = asyncio.run(one(index))
        ideal = n * sum(ROUNDS[name]) * seconds / in_flight
        rows.append((name, n / wall, n / ideal, wall))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=500, help="samples per repeat, instant judge")
    parser.add_argument("--slow-n", type=int, default=2000, help="samples with the slow judge")
    parser.add_argument("--seconds", type=float, default=0.05, help="how long the slow judge takes")
    parser.add_argument("--in-flight", type=int, default=64)
    args = parser.parse_args()

    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    print("| instant judge, CPU ms per sample | measured | of it splitting | without splitting | aim |")
    print("|---|---|---|---|---|")
    for name, own, splitting in instant(args.n):
        aim = f"{TARGETS[name]}" + (" plus splitting" if name == "context_relevancy" else "")
        print(f"| ragstone {name} `ascore` | {own:.3f} | {splitting:.3f} | {own - splitting:.3f} | {aim} |")

    head = f"judge of {args.seconds * 1000:.0f} ms, {args.in_flight} in flight, {args.slow_n} samples"
    print(f"\n| {head} | samples/s | ideal | share |")
    print("|---|---|---|---|")
    for name, rate, ideal, _ in throughput(args.slow_n, args.seconds, args.in_flight):
        print(f"| ragstone {name} | {rate:.0f} | {ideal:.0f} | {rate / ideal:.1%} |")


if __name__ == "__main__":
    main()
