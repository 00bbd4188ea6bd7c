"""What ragstone itself costs: CPU per sample of `ascore` and of `evaluate` with an instant judge, journal and memory;
and of splitting texts into sentences, beside pysbd alone.

    python benchmarks/overhead.py

Figures are medians over interleaved repeats of one run: on a busy machine trust the ratios.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from common import FIVE, QUESTION, SOURCE, SUMMARY
from pysbd import Segmenter

from ragstone import (
    LLM,
    AlignmentCoverage,
    ContextRelevancy,
    LLMReply,
    LLMRequest,
    Metric,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
    evaluate,
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


class Instant(FakeLLM):
    """Answers from the script at once, and holds no request."""

    def __init__(self) -> None:
        super().__init__(lambda request: SCRIPT[request.task])

    def generate(self, request: LLMRequest, /) -> LLMReply:
        self.requests.clear()
        return super().generate(request)


def alone(metric: Metric, samples: list[Sample]) -> None:
    async def score() -> None:
        for each in samples:
            await metric.ascore(each)

    asyncio.run(score())


def in_batch(metric: Metric, samples: list[Sample]) -> None:
    evaluate(samples, [metric], progress=False)


def with_journal(metric: Metric, samples: list[Sample]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        evaluate(samples, [metric], progress=False, journal=Path(folder) / "journal.db")


WAYS: tuple[Callable[[Metric, list[Sample]], None], ...] = (alone, in_batch, with_journal)


def cpu(n: int, repeats: int) -> Iterator[tuple[str, list[float]]]:
    """Yield each metric's CPU milliseconds per sample, by the way in which they were scored."""
    for metric in metrics(Instant()):
        figures: list[list[float]] = [[] for _ in WAYS]
        number = 0
        for _ in range(repeats + 1):
            for way, found in zip(WAYS, figures, strict=True):
                samples = [sample(metric, number + i) for i in range(n)]
                number += n
                start = time.process_time()
                way(metric, samples)
                found.append((time.process_time() - start) / n * 1000)
        yield metric.name, [statistics.median(found[1:]) for found in figures]


def megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def long_run(n: int, *, journal: bool) -> list[tuple[int, float, float]]:
    """Return (samples so far, CPU milliseconds per sample since the last of these, MB of memory) in five steps."""
    metric = metrics(Instant())[3]
    steps: list[tuple[int, float, float]] = []
    last = time.process_time()

    def samples() -> Iterator[Sample]:
        nonlocal last
        for i in range(n + 1):
            if i and i % (n // 5) == 0:
                now = time.process_time()
                steps.append((i, (now - last) / (n // 5) * 1000, megabytes()))
                last = now
            if i < n:
                yield sample(metric, i)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db" if journal else None
        evaluate(samples(), [metric], progress=False, journal=path)
    return steps


def splitting(n: int) -> Iterator[tuple[str, float, float]]:
    """Yield the kind of a text, and the median milliseconds that 1,000 characters take, of ours and of pysbd's."""
    pysbd = Segmenter(language="en", clean=False)
    odd = " He said: 'It is so. It is.' See [1], e.g. J. Low."
    for kind, more in {"plain prose": "", "a line with odd quotes": odd, "a list": " 1. One. 2. Two."}.items():
        texts = [f"{SOURCE} {SUMMARY} ({i}){more}" for i in range(n)]
        taken: list[float] = []
        for split in (split_sentences, pysbd.segment):
            each: list[float] = []
            for text in texts:
                start = time.process_time()
                split(text)
                each.append((time.process_time() - start) / len(text) * 1e6)
            taken.append(statistics.median(each))
        yield kind, taken[0], taken[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=500, help="samples per repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--long-n", type=int, default=100_000, help="samples of the long run")
    args = parser.parse_args()

    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    print("| instant judge, CPU ms per sample | `ascore` alone | `evaluate` | ratio | journal adds |")
    print("|---|---|---|---|---|")
    for name, (single, batch, journal) in cpu(args.n, args.repeats):
        print(f"| {name} | {single:.3f} | {batch:.3f} | {batch / single:.2f} | {journal - batch:.3f} |", flush=True)
    print("\n| CPU ms per 1,000 characters | `split_sentences` | pysbd | ratio |\n|---|--:|--:|--:|")
    for kind, ours, theirs in splitting(args.n):
        print(f"| {kind} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |", flush=True)
    for with_one in (False, True):
        head = f"{args.long_n:,} samples, journal {'on' if with_one else 'off'}"
        print(f"\n| {head} | CPU ms per sample since | memory MB |\n|---|---|---|")
        for so_far, ms, memory in long_run(args.long_n, journal=with_one):
            print(f"| {so_far:,} | {ms:.3f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
