"""Rows a second through Dask with 1, 2 and 4 workers, and through `evaluate` in one process, at the same concurrency.

    python benchmarks/many_machines.py            # needs ragstone[dask]; two minutes

The judge takes 50 ms and no processor; 64 calls in flight in all. One call a row. Each run is
followed by one of `evaluate` in one process, as what else the machine does comes and goes; figures are medians of three
such pairs after one that warms up.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

from distributed import Client, LocalCluster
from ragstone.batch.evaluate import evaluate
from ragstone.distributed import Spec, score_on_dask
from ragstone.judge import BaseLLM, LLMReply, LLMRequest
from ragstone.reporting import Report

SECONDS = 0.05
IN_FLIGHT = 64


class Slow(BaseLLM):
    """Takes its time, and no processor."""

    model = "slow"

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:  # noqa: ARG002
        await asyncio.sleep(SECONDS)
        return LLMReply('{"ids": [1]}', input_tokens=100, output_tokens=5)


def judge() -> Slow:
    return Slow()


def rows(n: int) -> list[dict[str, object]]:
    return [
        {
            "id": f"q{i}",
            "user_input": f"Who is person {i}?",
            "retrieved_contexts": [f"Person {i} is Ann. It rains.", "Birds fly. Cats do not."],
        }
        for i in range(n)
    ]


def rate(n: int, run: Callable[[], Report]) -> float:
    """Run it, and return the rows a second."""
    start = time.perf_counter()
    report = run()
    taken = time.perf_counter() - start
    (summary,) = report.summary().values()
    assert (summary.scored, summary.total) == (n, n)
    return n / taken


def pairs(n: int, run: Callable[[], Report], baseline: Callable[[], Report]) -> tuple[float, float]:
    """Return the medians of both."""
    found = [(rate(n, run), rate(n, baseline)) for _ in range(4)][1:]
    ours, theirs = zip(*found, strict=True)
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int, nargs="?", default=4_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    args = parser.parse_args()
    n, samples = args.n, rows(args.n)
    bound = IN_FLIGHT / SECONDS
    print(
        f"{n:,} rows, one call of {SECONDS * 1000:g} ms each, {IN_FLIGHT} in flight in all; bound {bound:,.0f} rows/s"
    )
    spec = Spec(metrics=["context_relevancy"], judge="many_machines:judge", max_concurrency=IN_FLIGHT)

    def alone() -> Report:
        return evaluate(samples, spec.build(), max_concurrency=IN_FLIGHT, progress=False)

    for workers in args.workers:
        for journal in (False, True):
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
                Client(cluster) as client,
            ):
                client.wait_for_workers(workers)

                def run(client: Client = client, journal: bool = journal) -> Report:
                    with tempfile.TemporaryDirectory() as folder:
                        kept = replace(spec, journal=folder if journal else None)
                        return score_on_dask(samples, kept, client)

                ours, theirs = pairs(n, run, alone)
            what = f"Dask, workers: {workers}{', journal' if journal else ''}"
            print(
                f"{what:<28}{ours:>7,.0f} rows/s {ours / bound:>5.0%} of the bound; evaluate {theirs:>7,.0f} rows/s"
                f"; ratio {ours / theirs:>5.0%}; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
