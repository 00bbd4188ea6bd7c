"""What the three halves of the benchmark share. Standard library only: peers have no ragstone."""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

WARM_UP = 40  # samples


class Latency:
    """How long a judge takes. It has no limit of its own: how many calls are in flight is the library's doing."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.calls = 0
        self.most = 0
        self._now = 0

    async def wait(self) -> None:
        self.calls += 1
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self._now -= 1


class Limited(Latency):
    """The same behind a client that lets so many calls through at a time."""

    def __init__(self, seconds: float, slots: int) -> None:
        super().__init__(seconds)
        self._slots = asyncio.Semaphore(slots)

    async def wait(self) -> None:
        async with self._slots:
            await super().wait()


class Way(NamedTuple):
    """One way through a library's own batch API.

    `prepare(latency, numbers)` makes a sample for each number and returns what scores them and checks the scores.
    `slots` is how many judge calls (`unit` "calls") or samples ("samples") it lets run at once, None without a limit;
    each takes `turns` latencies.
    """

    metric: str
    settings: str
    prepare: Callable[[Latency, range], Callable[[], None]]
    slots: int | None
    unit: str
    turns: int
    most_samples: int | None = None  # where more would take too long
    client: int | None = None  # calls that the judge's client lets through, where the library has no limit


def measure(way: Way, n: int, seconds: float) -> dict[str, float]:
    """Score `n` samples once, after a warm-up, in an empty folder."""
    way.prepare(Latency(), range(WARM_UP))()
    os.chdir(tempfile.mkdtemp(dir=Path.cwd()))
    latency = Latency(seconds) if way.client is None else Limited(seconds, way.client)
    run = way.prepare(latency, range(WARM_UP, WARM_UP + n))
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"n": n, "cpu_ms": cpu / n * 1000, "rate": n / wall, "most": latency.most, "calls": latency.calls}


def main(ways: Sequence[Way]) -> None:
    """List the ways, or measure one, as the command line says; the answer is JSON in the file `--out`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--way", type=int, help="none: list them")
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.0)
    args = parser.parse_args()
    if args.way is None:
        facts = [{name: value for name, value in way._asdict().items() if name != "prepare"} for way in ways]
        args.out.write_text(json.dumps(facts))
    else:
        args.out.write_text(json.dumps(measure(ways[args.way], args.n, args.seconds)))
