"""Measures `ragstone.text.split_sentences` against plain pysbd: agreement and time.

    python benchmarks/splitting.py

Agreement needs the development data (`--data`, by default `../shared/data/dev` beside the repository); without
it only times are printed. Times are the best of several runs, on one paragraph of generated sentences.
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pysbd

from ragstone.text import split_sentences

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY.parent / "shared/data/dev"
FIELDS = ("source", "response", "user_input")

SUBJECTS = ("The council", "A young engineer", "Dr. Meyer", "Every visitor", "Acme Inc. of Ohio", "No one", "She")
VERBS = ("measured", "described", "had forgotten", "would not accept", "bought", "painted", "is proud of")
OBJECTS = (
    "the old bridge",
    "3.5 tons of apples",
    "a map (printed in 1921)",
    'what he called "the plan"',
    "several of its U.S. branches",
    "the harbour, the wall and the mill",
    "Mr. Brown's garden",
)
ENDS = (".", ".", ".", ".", " in the spring.", " at 5 p.m. on Friday.", "?", "!", ' ("as usual").', " e.g. by hand.")

EASY = (
    "The river flows through the old town and into the sea. Many people visit the harbour every summer, because "
    "the view is beautiful. The museum opened its doors in the spring and shows paintings by local artists. It "
    "was built by a family that made its fortune in trade. Visitors can walk along the wall and see the ships. "
    "The market sells fruit, bread and fish. In the evening, musicians play on the square. The town is known "
    "for its kindness and its calm. Most come back."
)


def paragraph(size: int, seed: int = 0) -> str:
    """Return one paragraph of exactly this many characters."""
    draw = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(OBJECTS)}{draw.choice(ENDS)} ")
        length += len(parts[-1])
    return "".join(parts)[:size]


def best(call: Callable[[], object], runs: int) -> float:
    times: list[float] = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def texts(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*/*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row: dict[str, Any] = json.loads(line)
            yield from row.get("retrieved_contexts") or ()
            yield from (row[field] for field in FIELDS if isinstance(row.get(field), str))


def agreement(folder: Path, limit: int | None) -> None:
    plain = pysbd.Segmenter(language="en", clean=False)
    chosen = list(dict.fromkeys(texts(folder)))[:limit]
    if not chosen:
        print(f"No development data in {folder}: agreement not measured.\n")
        return
    same_texts = same_sentences = sentences = 0
    for text in chosen:
        expected = plain.segment(text)
        got = [sentence.text for sentence in split_sentences(text)]
        same_texts += expected == got
        same_sentences += sum((Counter(expected) & Counter(got)).values())
        sentences += max(len(expected), len(got))
    print("| agreement with plain pysbd | equal | of | share |\n|---|---:|---:|---:|")
    print(f"| texts | {same_texts} | {len(chosen)} | {same_texts / len(chosen):.4%} |")
    print(f"| sentences | {same_sentences} | {sentences} | {same_sentences / sentences:.4%} |\n")


def times(runs: int) -> None:
    plain = pysbd.Segmenter(language="en", clean=False)
    print("| time | characters | ms | µs per character |\n|---|---:|---:|---:|")
    for size in (10_000, 100_000, 1_000_000):
        text = paragraph(size)
        row("ragstone, one paragraph", text, lambda text=text: split_sentences(text), 1 if size > 500_000 else runs)
    for size in (3_312, 26_496):
        text = paragraph(size)
        row("plain pysbd, one paragraph", text, lambda text=text: plain.segment(text), 1 if size > 5_000 else runs)
    hard = paragraph(470)
    for name, text in (("easy prose", EASY), ("abbreviations and quotes", hard)):
        row(f"ragstone, {name}", text, lambda text=text: split_sentences(text), 20 * runs)
        row(f"plain pysbd, {name}", text, lambda text=text: plain.segment(text), 20 * runs)


def row(name: str, text: str, call: Callable[[], object], runs: int) -> None:
    seconds = best(call, runs)
    print(f"| {name} | {len(text):,} | {seconds * 1e3:.2f} | {seconds * 1e6 / len(text):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=REPOSITORY.parent / "shared/data/dev", help="folder of JSONL folders"
    )
    parser.add_argument("--limit", type=int, help="compare only the first so many texts")
    parser.add_argument("--runs", type=int, default=5, help="take the best of so many runs")
    arguments = parser.parse_args()
    agreement(arguments.data, arguments.limit)
    times(arguments.runs)


if __name__ == "__main__":
    main()
