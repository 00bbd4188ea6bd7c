"""What the page of many rows takes: CPU seconds to write it, MB, and seconds until a browser shows its table.

    python benchmarks/pages.py                     # this checkout
    python benchmarks/pages.py --root . ../old     # beside others, on the same results

A row has a question, three contexts of five sentences and an answer of three, by four metrics and a decision model.
Words are drawn as often as the documentation has them. The contexts are drawn from a corpus, as an app retrieves
them (`--corpus`), or each is its own (`--corpus 0`). The browser is the system's Chromium, if Playwright is installed.
"""

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ragstone import ContextRelevancy, Criterion, Faithfulness, Report, ResponseCompleteness, Sample, evaluate
from ragstone.testing import FakeDecisions, FakeLLM

HERE = Path(__file__).resolve().parents[1]


def sentences() -> Callable[[int], str]:
    """Give texts of n sentences of the documentation's words."""
    text = " ".join(path.read_text("utf-8") for path in sorted((HERE / "docs").rglob("*.md")))
    words, chance = re.findall(r"[A-Za-z]+", text), random.Random(7)

    def sentence() -> str:
        return " ".join(chance.choices(words, k=chance.randint(8, 18))).capitalize() + "."

    return lambda n: " ".join(sentence() for _ in range(n))


def samples(n: int, corpus: int) -> Iterator[Sample]:
    """Yield samples whose contexts come from a corpus, the first ones most often."""
    text, chance = sentences(), random.Random(8)
    chunks = [text(5) for _ in range(corpus)]
    for i in range(n):
        found = [chunks[int(corpus * chance.random() ** 2)] if chunks else text(5) for _ in range(3)]
        yield Sample(id=f"q{i}", user_input=text(1), retrieved_contexts=found, response=text(3))


def score(n: int, corpus: int, file: Path) -> None:
    """Write the results: one answer of four costs points."""
    chance = random.Random(9)
    judge = FakeDecisions(lambda _question, _texts: chance.random() ** 0.4)
    metrics = [
        Faithfulness(llm=judge),
        ContextRelevancy(llm=judge),
        ResponseCompleteness(llm=judge, writer=FakeLLM({"parts": ["Who may return them?", "Until when?"]})),
        Criterion("grounded", "Does the answer rest on the contexts alone?", llm=judge),
    ]
    evaluate(samples(n, corpus), metrics, progress=False).to_json(file)


def write(file: Path) -> None:
    """Write the page, and print its CPU seconds and the process' peak of memory in MB."""
    start = time.process_time()
    Report.load(file).save(file.with_suffix(".html"))
    print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def opened(page: Path) -> float:
    """Open a page from the disk, without a net: the seconds until its table has rows."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page()
        start = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.locator("#samples tbody button").first.wait_for(timeout=120_000)
        seconds = time.perf_counter() - start
        browser.close()
    return seconds


def main() -> None:
    """Print a line for each checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("--corpus", type=int, default=4_000)
    parser.add_argument("--root", type=Path, nargs="+", default=[HERE])
    parser.add_argument("--file", type=Path, help="results that are there")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or Path(folder) / "results.jsonl"
        if not file.exists():
            score(arguments.n, arguments.corpus, file)
        print(f"results file: {file.stat().st_size / 1e6:.1f} MB")
        for root in arguments.root:
            environment = {**os.environ, "PYTHONPATH": str(root.resolve() / "core")}
            command = [sys.executable, __file__, "--write", str(file)]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            seconds, memory = map(float, done.stdout.split())
            page = file.with_suffix(".html")
            size = page.stat().st_size / 1e6
            try:
                shown = f"{opened(page):.1f} s to open"
            except ImportError:
                shown = "no browser"
            print(f"{root}: {seconds:.1f} s of CPU, {size:.1f} MB, {memory:.0f} MB of memory, {shown}")


if __name__ == "__main__":
    main()
