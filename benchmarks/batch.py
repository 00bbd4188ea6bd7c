"""What a batch costs beside `ascore` alone: CPU per sample, with and without a journal; memory; a slow judge.

    python benchmarks/batch.py

CPU figures are medians over interleaved repeats of one run, with a judge that answers at once: on a busy machine
trust the ratios. The long run makes its samples one by one, and says what its report took as it grew.
"""

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from selectors import SelectorKey

from overhead import ROUNDS, SCRIPT, SlowLLM, metrics, sample

from ragstone import LLM, LLMReply, LLMRequest, Metric, Sample
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.testing import FakeLLM


class Instant(FakeLLM):
    """Answers from the script, and holds no request."""

    def generate(self, request: LLMRequest, /) -> LLMReply:
        self.requests.clear()
        return super().generate(request)


def instant() -> LLM:
    return Instant(lambda request: SCRIPT[request.task])


def alone(metric: Metric, samples: list[Sample]) -> None:
    async def main() -> None:
        for each in samples:
            await metric.ascore(each)

    asyncio.run(main())


def in_batch(metric: Metric, samples: list[Sample]) -> None:
    evaluate(samples, [metric], progress=False)


def unshared(metric: Metric, samples: list[Sample]) -> None:
    evaluate(samples, [metric], progress=False, share_replies=False)


def of_generator(metric: Metric, samples: list[Sample]) -> None:
    evaluate(iter(samples), [metric], progress=False)


def with_journal(metric: Metric, samples: list[Sample]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        evaluate(samples, [metric], progress=False, journal=Path(folder) / "journal.db")


WAYS: tuple[Callable[[Metric, list[Sample]], None], ...] = (alone, in_batch, unshared, of_generator, with_journal)


def cpu(n: int, repeats: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each metric's CPU milliseconds per sample, by the way in which they were scored."""
    for metric in metrics(instant()):
        figures: dict[str, list[float]] = {way.__name__: [] for way in WAYS}
        made = 0
        for _ in range(repeats + 1):
            for way in WAYS:
                samples = [sample(metric, made + i) for i in range(n)]
                made += n
                start = time.process_time()
                way(metric, samples)
                figures[way.__name__].append((time.process_time() - start) / n * 1000)
        yield metric.name, {name: statistics.median(each[1:]) for name, each in figures.items()}


def megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def long_run(n: int, *, journal: bool) -> list[tuple[int, float, float]]:
    """Return (samples so far, CPU milliseconds per sample since the last of these, MB of memory) in five steps."""
    metric = metrics(instant())[3]
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
        report = evaluate(samples(), [metric], progress=False, journal=path)
        assert sum(1 for _ in report.results()) == n
    return steps


class QuietLoop(asyncio.SelectorEventLoop):
    """Its clock shows the CPU time of this process and skips what is waited for: as on a machine with nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        really = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
            events = really(None if timeout is None else 0)
            if not events and timeout:
                self.skipped += timeout
            return events

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        return time.process_time() + self.skipped


def throughput(n: int, seconds: float, in_flight: int, *, quiet: bool) -> Iterator[tuple[str, float, float]]:
    """Yield each metric's samples per second with a slow judge, and the most that there can be.

    Of some thousands: of 2,000 calls, which take 32 whole turns on 64 slots and not 31.25, no more than 97.7 % is had.
    """
    for metric in metrics(SlowLLM(seconds, in_flight)):
        samples = [sample(metric, i) for i in range(n)]
        loop = QuietLoop() if quiet else asyncio.new_event_loop()
        loop.run_until_complete(metric.ascore(samples[0]))  # loads what is loaded on first use
        # Unshared, so that no sample is done with fewer calls than the bound is of.
        scoring = aevaluate(samples, [metric], max_concurrency=in_flight, progress=False, share_replies=False)
        start = loop.time()
        report = loop.run_until_complete(scoring)
        took = loop.time() - start
        loop.close()
        assert report.summary()[metric.name].scored == n
        yield metric.name, n / took, in_flight / (sum(ROUNDS[metric.name]) * seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=500, help="samples per repeat, instant judge")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--long-n", type=int, default=100_000, help="samples of the long run")
    parser.add_argument("--slow-n", type=int, default=8000, help="samples with the slow judge")
    parser.add_argument("--seconds", type=float, default=0.05, help="how long the slow judge takes")
    parser.add_argument("--in-flight", type=int, default=64)
    args = parser.parse_args()

    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    print(
        "| instant judge, CPU ms per sample | ascore alone | evaluate | ratio | unshared | generator | journal adds |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, of in cpu(args.n, args.repeats):
        ratio = of["in_batch"] / of["alone"]
        more = of["with_journal"] - of["in_batch"]
        cells = [of["alone"], of["in_batch"], ratio, of["unshared"], of["of_generator"], more]
        print(f"| {name} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    print("\nAims: ratio at most 1.5, the journal at most 0.3 ms.\n")

    for journal in (False, True):
        head = f"{args.long_n:,} samples, journal {'on' if journal else 'off'}"
        print(f"| {head} | CPU ms per sample since | memory MB |\n|---|---|---|")
        for so_far, ms, memory in long_run(args.long_n, journal=journal):
            print(f"| {so_far:,} | {ms:.3f} | {memory:.0f} |")
        print()
        sys.stdout.flush()

    print(f"| judge of {args.seconds * 1000:.0f} ms, {args.in_flight} in flight | samples/s | bound | share | alone |")
    print("|---|---|---|---|---|")
    figures = [throughput(args.slow_n, args.seconds, args.in_flight, quiet=quiet) for quiet in (False, True)]
    for (name, rate, bound), (_, alone_on_machine, _) in zip(*figures, strict=True):
        print(f"| {name} | {rate:.0f} | {bound:.0f} | {rate / bound:.1%} | {alone_on_machine / bound:.1%} |")
    print("\nAlone: by a clock that leaves out what other processes took of the machine. Aim: 95 %.")


if __name__ == "__main__":
    main()
