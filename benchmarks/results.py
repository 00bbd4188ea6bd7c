"""What results files and journals take: bytes, CPU milliseconds a row, peak memory. Of pages: pages.py.

    python benchmarks/results.py                   # this checkout
    python benchmarks/results.py --root ../old     # another one, on the same data

A row is one sample with three contexts of 12 sentences, by two metrics. Each step is a process of its own.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ragstone import ContextRelevancy, Faithfulness, LLMRequest, Report, Sample, evaluate
from ragstone.testing import FakeLLM

STEPS = ("score", "journal", "resume", "file")
WORDS = ("river", "stone", "bridge", "valley", "winter", "market", "letter", "garden", "window", "harbour", "summer")
IDS = ("1", "2", "3", "4")
REPLIES = {
    "context_relevancy.sentences": {"ids": [3, 14, 30]},
    "faithfulness.claims": {"claims": [f"The claim number {i} of this answer is about a river." for i in IDS]},
    "faithfulness.verdicts": {"verdicts": {i: {"evidence": [int(i), 20], "verdict": "supported"} for i in IDS}},
}


def sentence(chance: random.Random) -> str:
    words = " ".join(chance.choices(WORDS, k=8))
    return f"{words.capitalize()} {chance.randrange(10_000)}."


def samples(n: int) -> Iterator[Sample]:
    chance = random.Random(7)
    for i in range(n):
        contexts = [" ".join(sentence(chance) for _ in range(12)) for _ in range(3)]
        answer = " ".join(sentence(chance) for _ in IDS)
        yield Sample(id=f"q{i}", user_input=sentence(chance), retrieved_contexts=contexts, response=answer)


def answer(request: LLMRequest) -> str:
    llm.requests.clear()
    return json.dumps(REPLIES[request.task])


llm = FakeLLM(answer)


def run(step: str, n: int, folder: Path) -> None:
    """Run one step, and print its CPU seconds and its peak memory in MB."""
    given = list(samples(n))
    metrics = [ContextRelevancy(llm=llm), Faithfulness(llm=llm)]
    start = time.process_time()
    if step == "file":
        assert len(Report.load(folder / "results.jsonl")) == 2 * n
    else:
        journal = None if step == "score" else folder / "journal.db"
        report = evaluate(given, metrics, journal=journal, progress=False)
        assert len(report) == 2 * n
    seconds = time.process_time() - start
    if step == "score":
        report.to_json(folder / "results.jsonl")
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    n = arguments.n
    if arguments.step:
        run(arguments.step, n, arguments.folder)
        return
    seconds, memory = dict[str, float](), dict[str, float]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for step in STEPS:
            command = [sys.executable, __file__, "-n", str(n), "--step", step, "--folder", name]
            environment = {**os.environ, "PYTHONPATH": str(arguments.root.resolve() / "core")}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            seconds[step], memory[step] = map(float, done.stdout.split())
        size = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    print(f"results file, kB a row: {size['results.jsonl'] / n / 1000:.2f}")
    print(f"journal, kB a row: {size['journal.db'] / n / 1000:.2f}")
    print(f"scoring, ms a row: {seconds['score'] / n * 1000:.2f}")
    print(f"scoring with a journal, ms a row more: {(seconds['journal'] - seconds['score']) / n * 1000:.2f}")
    print(f"going on from the journal, ms a row: {seconds['resume'] / n * 1000:.2f}")
    print(f"reading the file, ms a row: {seconds['file'] / n * 1000:.2f}")
    print("peak MB:", ", ".join(f"{step} {memory[step]:.0f}" for step in STEPS))


if __name__ == "__main__":
    main()
