"""What computing for the judge does to the app: how late a loop of 1 ms wakes up, beside a monitor and beside none.

    python benchmarks/app_loop.py

The app does nothing but wake up every millisecond. Half a second after the start all samples come at once; the judge
answers in 5 ms. Turns with and without a monitor alternate in one process. Behind the table stands how much of a core
is used in the second that begins one second after `close`, and after every evaluation ran into `timeout`.
"""

import argparse
import asyncio
import json
import logging
import platform
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from common import QUESTION, SOURCE, SleepyLLM, share

from ragstone import ContextRelevancy, LLMRequest, Monitor, Sample
from ragstone.live import Queue, SQLiteSink


def first_sentence(request: LLMRequest) -> str:
    return json.dumps({"ids": [int(request.user.partition("\n[")[2].partition("]")[0])]})


def samples(number: int, contexts: int, characters: int, turn: int) -> list[Sample]:
    """Return samples of prose that is not the same twice."""
    made: list[Sample] = []
    for i in range(number):
        texts: list[str] = []
        for place in range(contexts):
            sentence = f"{SOURCE} Text {turn}, {i}, {place}. Dr. Smith agrees. "
            texts.append((sentence * (characters // len(sentence) + 1))[:characters])
        made.append(Sample(id=f"{turn} {i}", user_input=QUESTION, retrieved_contexts=texts))
    return made


async def lateness(monitor: Monitor | None, batch: Sequence[Sample], seconds: float) -> list[float]:
    """Return by how many ms each wake-up of a loop of 1 ms came too late."""
    late: list[float] = []
    start = time.perf_counter()
    while (now := time.perf_counter()) - start < seconds:
        if monitor is not None and batch and now - start > 0.5:
            for sample in batch:
                monitor.submit(sample)
            batch = ()
            now = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append((time.perf_counter() - now - 0.001) * 1000)
    return late


def monitored(folder: str, timeout: float = 300.0) -> Monitor:
    sink = SQLiteSink(Path(folder) / "ragstone.db")
    return Monitor(ContextRelevancy(llm=SleepyLLM(0.005, first_sentence)), sinks=sink, queue=Queue(timeout=timeout))


def busy(timeout: float | None) -> float:
    """Return the share of a core that is used a second after the end: of all by `close`, or of each by its timeout."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        monitor = monitored(folder, timeout or 300.0)
        stack.callback(monitor.close, 0.0)
        for sample in samples(8, 1, 1_000_000, -1):
            monitor.submit(sample)
        if timeout is None:
            time.sleep(0.5)
            monitor.close(0.0)
        else:
            while monitor.stats().pending:
                time.sleep(0.05)
        time.sleep(1.0)
        before = time.process_time()
        time.sleep(1.0)
        return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a turn")
    args = parser.parse_args()
    logging.getLogger("ragstone").setLevel(logging.ERROR)

    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    print("| a loop of 1 ms, late by ms | p50 | p99 | p99.9 | max | scored |")
    print("|---|---|---|---|---|---|")
    for number, contexts, characters in ((60, 5, 20_000), (8, 1, 1_000_000)):
        late: dict[str, list[float]] = {"without": [], "with": []}
        scored = 0
        for turn in range(args.turns):
            batch = samples(number, contexts, characters, turn)
            for name in late:
                with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                    monitor = monitored(folder) if name == "with" else None
                    late[name] += asyncio.run(lateness(monitor, batch, args.seconds))
                    if monitor is not None:
                        scored += monitor.stats().scored
                        stack.callback(monitor.close, 0.0)
        what = f"{number} samples of {contexts} x {characters // 1000} kB"
        for name, values in late.items():
            figures = " | ".join(f"{share(values, part):.1f}" for part in (0.5, 0.99, 0.999, 1.0))
            done = f"{scored} of {args.turns * number}" if name == "with" else ""
            print(f"| {what}, {name} a monitor | {figures} | {done} |", flush=True)
    print(f"\nCores used, a second after close: {busy(None):.2f}; after the timeout of all: {busy(0.2):.2f}")


if __name__ == "__main__":
    main()
