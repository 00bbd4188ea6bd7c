"""What a monitor costs the app: how long `submit` takes, and what requests notice of it.

    python benchmarks/monitor.py
    python benchmarks/monitor.py --soak 600     # memory, threads and open files over ten minutes, nothing else

The judge sleeps 5 ms; four workers ask it as fast as they can, a SQLite file takes the outcomes. Samples are of 6 kB:
a question, five contexts, an answer. The app's requests run with and without a monitor by turns, in one process, and
twice without one, which shows how far equal halves differ by chance. On a busy machine trust the differences within a
table.

ContextRelevancy splits 5 kB into sentences for every sample, which takes much longer than to ask; ResponseRelevancy
does next to nothing but ask. Whatever the workers compute holds up the app's threads, as Python runs one at a time.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from common import QUESTION, SOURCE, SUMMARY, SleepyLLM, share
from numpy.typing import NDArray

from ragstone import BaseEmbedder, ContextRelevancy, Metric, Monitor, ResponseRelevancy, Sample
from ragstone.live import Queue, SQLiteSink

Way = Literal["memory", "outbox", "taking only"]

REPLIES = {
    "context_relevancy.sentences": {"ids": [1, 2]},
    "response_relevancy.questions": {
        "questions": [{"question": f"{QUESTION} {i}", "noncommittal": False} for i in "abc"]
    },
}
SCRIPT = {task: json.dumps(reply) for task, reply in REPLIES.items()}
CONTEXT = f"{SOURCE} {SOURCE[:540]}"


class SameEmbedder(BaseEmbedder):
    """Keeps nothing of what it is asked."""

    model = "same"

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        return np.ones((len(texts), 384), dtype=np.float32)


def metrics(seconds: float) -> list[Metric]:
    llm = SleepyLLM(seconds, lambda request: SCRIPT[request.task])
    return [ResponseRelevancy(llm=llm, embedder=SameEmbedder()), ContextRelevancy(llm=llm)]


def sample(i: int) -> Sample:
    contexts = [f"{CONTEXT} Text {i}, part {part}." for part in range(5)]
    return Sample(
        id=f"trace {i}",
        user_input=f"{QUESTION} ({i})",
        retrieved_contexts=contexts,
        response=f"{SUMMARY} ({i})",
        metadata={"user": "u1", "tags": ["live", "en"], "seconds": 1.5},
    )


def monitored(metric: Metric, folder: str, way: Way) -> Monitor:
    place = Path(folder)
    return Monitor(
        metric,
        sinks=SQLiteSink(place / "ragstone.db"),
        outbox=None if way == "memory" else place / "outbox.db",
        queue=Queue(workers=0 if way == "taking only" else 4),
    )


def submits(metric: Metric | None, per_second: int, seconds: float, way: Way) -> tuple[list[float], str]:
    """Return how long each `submit` took, in µs, at a steady pace; without a metric: what the clock itself takes."""
    n = int(per_second * seconds)
    samples = [sample(i) for i in range(n)]
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        monitor = None if metric is None else monitored(metric, folder, way)
        if monitor is not None:
            stack.callback(monitor.close, 0.0)
            monitor.submit(Sample(id="first"))  # starts the threads
            monitor.flush()
        start = time.perf_counter()
        for i, one in enumerate(samples):
            if (early := start + i / per_second - time.perf_counter()) > 0:
                time.sleep(early)
            before = time.perf_counter_ns()
            if monitor is not None:
                monitor.submit(one)
            took.append((time.perf_counter_ns() - before) / 1000)
        stats = monitor.stats() if monitor is not None else None
    said = "" if stats is None else f"{stats.scored:,} scored meanwhile, {stats.dropped:,} dropped"
    return took, said


async def requests(monitor: Monitor | None, names: Sequence[int], at_once: int) -> list[float]:
    """Return how long each request took, in ms: two waits of 100 ms with some computing between.

    They come at random, so many a second that about `at_once` are under way.
    """
    took: list[float] = []
    chance = random.Random(0)

    async def request(i: int) -> None:
        await asyncio.sleep(chance.random() * len(names) * 0.2 / at_once)
        before = time.perf_counter()
        await asyncio.sleep(0.1)
        one = sample(i)
        json.loads(json.dumps(one.retrieved_contexts))
        if monitor is not None:
            monitor.submit(one)
        await asyncio.sleep(0.1)
        took.append((time.perf_counter() - before) * 1000)

    await asyncio.gather(*(request(i) for i in names))
    return took


def app(metric: Metric, n: int, turns: int, at_once: int, way: Way) -> dict[str, list[float]]:
    """Return what requests took without a monitor, without once more, and with one, by turns."""
    found: dict[str, list[float]] = {"without": [], "without, again": [], "with": []}
    for turn in range(turns + 1):
        for number, name in enumerate(found):
            names = range((3 * turn + number) * n, (3 * turn + number + 1) * n)
            with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                monitor = monitored(metric, folder, way) if name == "with" else None
                if monitor is not None:
                    stack.callback(monitor.close, 0.0)
                    monitor.submit(sample(-1))
                took = asyncio.run(requests(monitor, names, at_once))
            if turn:  # the first is for warming up
                found[name] += took
    return found


def soak(per_second: int, seconds: float) -> None:
    """Print what the process holds each minute, with an outbox and a judge that answers at once."""
    print("| second | memory, MB | threads | open files | scored | wait |")
    print("|--:|--:|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        monitor = monitored(metrics(0.0)[0], folder, "outbox")
        start = time.perf_counter()
        for i in range(int(per_second * seconds)):
            if (early := start + i / per_second - time.perf_counter()) > 0:
                time.sleep(early)
            monitor.submit(sample(i))
            if (i + 1) % (60 * per_second) == 0:
                stats, files = monitor.stats(), len(list(Path("/proc/self/fd").iterdir()))
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
                held = f"{memory:.1f} | {threading.active_count()} | {files}"
                second = time.perf_counter() - start
                print(f"| {second:.0f} | {held} | {stats.scored:,} | {stats.pending:,} |", flush=True)
        print(f"\nclosed: {monitor.close(60)}; {monitor.stats()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--per-second", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of submitting")
    parser.add_argument("--judge", type=float, default=0.005, help="seconds that the judge takes")
    parser.add_argument("--slow-judge", type=float, default=1.0, help="the same, for the second half of the requests")
    parser.add_argument("--requests", type=int, default=1_000, help="per turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=200, help="requests")
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="only this, at 200 samples a second")
    parser.add_argument("--only", choices=get_args(Way), help="one way for the requests")
    args = parser.parse_args()
    logging.getLogger("ragstone").setLevel(logging.ERROR)  # what is left at the end of a run is dropped, and said so
    if args.soak:
        soak(200, args.soak)
        return

    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    print(f"| `submit` at {args.per_second:,}/s for {args.seconds:g} s, µs | p50 | p99 | p99.9 | max | |")
    print("|---|---|---|---|---|---|")
    ways = get_args(Way)
    runs: list[tuple[str, Metric | None, Way]] = [("nothing but the clock", None, "memory")]
    runs += [(f"{metric.name}, {way}", metric, way) for metric in metrics(args.judge) for way in ways]
    for name, chosen, way in runs:
        took, said = submits(chosen, args.per_second, args.seconds, way)
        figures = " | ".join(f"{share(took, part):.1f}" for part in (0.5, 0.99, 0.999, 1.0))
        print(f"| {name} | {figures} | {said} |", flush=True)

    print(f"\n| requests of 200 ms, about {args.at_once} at once, ms | p50 | p99 |")
    print("|---|---|---|")
    quick, slow = metrics(args.judge), metrics(args.slow_judge)
    rows: list[tuple[str, Metric, Way]] = [(f"judge of {args.judge:g} s", metric, "memory") for metric in quick]
    rows += [(f"judge of {args.slow_judge:g} s", metric, "memory") for metric in slow]
    rows += [("another process judges", metric, "taking only") for metric in quick]
    for judge, metric, way in rows:
        if args.only in (None, way):
            for name, took in app(metric, args.requests, args.turns, args.at_once, way).items():
                what = f"{judge}, {metric.name}: {name}"
                print(f"| {what} | {share(took, 0.5):.2f} | {share(took, 0.99):.2f} |", flush=True)


if __name__ == "__main__":
    main()
