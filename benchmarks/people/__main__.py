"""Whether corrected intervals hold what people said: 2,000 draws of each population, judge and number of labels.

    python benchmarks/people FOLDER [--draws 2000] [--only means,squeezed,pairs] [--out FOLDER]

The populations are numbers in CSV files of FOLDER, a file a data set: what people and judges said of the same answers.
From each, rows are drawn with replacement, some of them keep their labels, and the interval is compared with the mean
of all rows. `squeezed` are the draws of `means` by a judge who gives the same ranks on a tenth of the scale. Writes one
CSV with every cell, and prints the summary that README has.
"""

import argparse
import csv
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from scipy import stats

from ragstone.labels import corrected_difference, corrected_mean

ROWS = 600
PEOPLE = {
    "faithbench": (("people", "people_strict"), ("gpt_4o", "gpt_4_turbo", "gpt_35", "hhem", "length")),
    "xstest": (("people",), ("gpt_4", "phrases", "length")),
    "mtrag": (
        ("people", "people_faithfulness", "people_completeness"),
        ("radbench_llm", "ragas_faithfulness", "algorithmic", "length"),
    ),
    "summeval": (("people", "people_consistency"), ("pairs_in_reference", "words_in_source", "length")),
    "realsumm": (("people",), ("words_of_source", "length")),
    "haluquestqa": (("people", "people_completeness"), ("words_of_question", "length")),
}
KINDS = {
    "means": (30, 60, 120),
    "squeezed": (30, 60, 120),
    "pairs": (20, 40, 60),
}
COLUMNS = (
    "kind", "population", "people", "judge", "labels", "draws", "rho", "covers", "width",
    "alone_covers", "alone_width", "judge_covers", "sure", "wrong", "judge_sure", "judge_wrong", "limit",
)  # fmt: skip


@dataclass
class Population:
    name: str
    people: str
    judge: str
    y: np.ndarray
    f: np.ndarray
    group: np.ndarray
    system: np.ndarray


@dataclass
class Tally:
    """What one interval after another said."""

    draws: int = 0
    holds: int = 0
    width: float = 0.0
    alone_holds: int = 0
    alone_width: float = 0.0
    judge_holds: int = 0
    sure: int = 0
    wrong: int = 0
    judge_sure: int = 0
    judge_wrong: int = 0


def population(folder: Path, name: str, people: str, judge: str) -> Population:
    with (folder / f"{name}.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row[people] and row[judge]]
    y, f = (np.array([float(row[key]) for row in rows]) for key in (people, judge))
    group, system = (np.array([row[key] for row in rows]) for key in ("group", "system"))
    return Population(name, people, judge, y, f / f.max() if judge == "length" else f, group, system)


def alone(y: np.ndarray, yes_no: bool) -> tuple[float, float]:
    """Wilson's interval for yes/no, Student's otherwise."""
    n, mean = len(y), float(y.mean())
    if yes_no:
        interval = stats.binomtest(round(float(y.sum())), n).proportion_ci(method="wilson")
        return float(interval.low), float(interval.high)
    half = float(stats.t.ppf(0.975, n - 1)) * float(y.std(ddof=1)) / math.sqrt(n)
    return mean - half, mean + half


def judge_interval(f: np.ndarray) -> tuple[float, float]:
    half = 1.96 * float(f.std(ddof=1)) / math.sqrt(len(f))
    return float(f.mean()) - half, float(f.mean()) + half


Ends = tuple[float, float]


def count(tally: Tally, truth: float, corrected: Ends, labels: Ends, judged: Ends) -> None:
    tally.draws += 1
    low, high = corrected
    tally.holds += low <= truth <= high
    tally.width += high - low
    if low > 0.0 or high < 0.0:
        tally.sure += 1
        tally.wrong += (low > 0.0) != (truth > 0.0)
    low, high = labels
    tally.alone_holds += low <= truth <= high
    tally.alone_width += high - low
    low, high = judged
    tally.judge_holds += low <= truth <= high
    if low > 0.0 or high < 0.0:
        tally.judge_sure += 1
        tally.judge_wrong += (low > 0.0) != (truth > 0.0)


def means(of: Population, n: int, rng: np.random.Generator, tally: Tally) -> None:
    rows = rng.integers(0, len(of.y), ROWS)
    y, f = of.y[rows], of.f[rows]
    estimate = corrected_mean(y[:n], f[:n], f[n:])
    yes_no = set(np.unique(of.y)) <= {0.0, 1.0}
    count(tally, float(of.y.mean()), (estimate.low, estimate.high), alone(y[:n], yes_no), judge_interval(f))


def pairs(of: Population, n: int, rng: np.random.Generator, tally: Tally) -> None:
    """Two systems at random; of the groups that both answered, the first n drawn have labels of both."""
    y, f = of.pairs[rng.integers(0, len(of.pairs))]
    drawn = rng.integers(0, len(y), min(ROWS, len(y)))
    dy, df = y[drawn], f[drawn]
    estimate = corrected_difference(dy[:n], df[:n], df[n:])
    count(tally, float(y.mean()), (estimate.low, estimate.high), alone(dy[:n], False), judge_interval(df))


DRAW = {"means": means, "squeezed": means, "pairs": pairs}


def prepared(of: Population, kind: str) -> Population:
    if kind == "squeezed":
        of.f = 0.9 + of.f / 10.0
    names, of_row = np.unique(of.group, return_inverse=True)
    systems = np.unique(of.system)
    if kind == "pairs":
        place = {(g, s): i for i, (g, s) in enumerate(zip(of_row.tolist(), of.system.tolist(), strict=True))}
        of.pairs = []
        for a, b in ((a, b) for i, a in enumerate(systems.tolist()) for b in systems.tolist()[i + 1 :]):
            both = [(place[g, a], place[g, b]) for g in range(len(names)) if (g, a) in place and (g, b) in place]
            if len(both) >= 30:
                first, second = np.array(both).T
                of.pairs.append((of.y[second] - of.y[first], of.f[second] - of.f[first]))
    return of


def rho_of(of: Population, kind: str) -> float:
    """How far judge and people agree where the interval looks: by rows or differences."""
    if kind == "pairs":
        y, f = (np.concatenate([pair[i] for pair in of.pairs]) for i in (0, 1))
    else:
        y, f = of.y, of.f
    return float(np.corrcoef(y, f)[0, 1])


def cell(folder: Path, draws: int, job: tuple[str, str, str, str, int]) -> dict[str, object]:
    kind, name, people, judge, n = job
    of = prepared(population(folder, name, people, judge), kind)
    if kind == "pairs" and not of.pairs:
        return {}
    seeded = ("means" if kind == "squeezed" else kind, *job[1:])
    seed = int.from_bytes(hashlib.blake2b("|".join(map(str, seeded)).encode(), digest_size=8).digest(), "big")
    rng, tally = np.random.default_rng(seed), Tally()
    while tally.draws < draws:
        DRAW[kind](of, n, rng, tally)
    d, rho = tally.draws, rho_of(of, kind)
    limit = ""
    if n >= 60 and rho >= 0.7:
        units = {"means": ROWS, "squeezed": ROWS, "pairs": 0}[kind]
        if kind == "pairs":
            units = int(np.mean([min(ROWS, len(pair[0])) for pair in of.pairs]))
        limit = round(1.1 * math.sqrt(1 - rho**2 * max(0, units - n) / units), 3)
    return {
        "kind": kind, "population": name, "people": people, "judge": judge, "labels": n, "draws": d,
        "rho": round(rho, 2), "covers": round(tally.holds / d, 3), "width": round(tally.width / d, 4),
        "alone_covers": round(tally.alone_holds / d, 3), "alone_width": round(tally.alone_width / d, 4),
        "judge_covers": round(tally.judge_holds / d, 3), "sure": tally.sure, "wrong": tally.wrong,
        "judge_sure": tally.judge_sure, "judge_wrong": tally.judge_wrong, "limit": limit,
    }  # fmt: skip


def summary(rows: list[dict[str, object]]) -> Iterator[str]:
    head = ("", "cells", "covers .93 or more", "least", "width over labels alone, where those cover .93", "over 1.05")
    head += ("over the limit of a good judge", "sure and wrong", "the judge alone")
    yield f"| {' | '.join(head)} |\n|---|{'--:|' * (len(head) - 1)}"
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        if not mine:
            continue
        covers = np.array([float(row["covers"]) for row in mine])
        ratios = np.array([float(row["width"]) / float(row["alone_width"]) for row in mine])
        fair = np.array([float(row["alone_covers"]) >= 0.93 for row in mine])
        limited = [(ratio, float(row["limit"])) for row, ratio in zip(mine, ratios, strict=True) if row["limit"] != ""]
        cells = [kind, str(len(mine)), f"{(covers >= 0.93).mean():.1%}", f"{covers.min():.3f}"]
        cells += [f"{ratios[fair].mean():.2f} (most {ratios[fair].max():.2f})"]
        cells += [f"{int((ratios[fair] > 1.05).sum())} of {int(fair.sum())}"]
        cells += [f"{sum(ratio > limit for ratio, limit in limited)} of {len(limited)}"]
        if kind == "pairs":
            for wrong, sure in (("wrong", "sure"), ("judge_wrong", "judge_sure")):
                some, all_of = (sum(int(row[key]) for row in mine) for key in (wrong, sure))
                cells += [f"{some:,} of {all_of:,} ({some / all_of:.1%})"]
        yield f"| {' | '.join((*cells, *[''] * (len(head) - len(cells))))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    jobs = [
        (kind, name, column, judge, n)
        for kind in options.only.split(",")
        for name, (people, judges) in PEOPLE.items()
        for column in people
        for judge in judges
        for n in KINDS[kind]
    ]
    with Pool(options.jobs) as pool:
        rows = [row for row in pool.imap(partial(cell, options.folder, options.draws), jobs) if row]
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "cells.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print("\n".join(summary(rows)))
    cells = {tuple(row[key] for key in COLUMNS[:5]): row for row in rows}
    twins = [(row, cells.get(("means", *key[1:]))) for key, row in cells.items() if key[0] == "squeezed"]
    ratios = [float(row["width"]) / float(twin["width"]) for row, twin in twins if twin]
    if ratios:
        print(f"A squeezed judge's interval is at most {max(ratios):.3f} times as wide as its twin's.")


if __name__ == "__main__":
    main()
