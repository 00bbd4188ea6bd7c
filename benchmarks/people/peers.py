"""The same draws by other libraries: how often their 95 % intervals hold people's mean, and how wide they are.

    pip install glide-py truescore ppi-python       # Python 3.12 or newer
    python benchmarks/people/peers.py [--draws 1000]

Also checks what is meant to be the same formula: the prediction-powered mean for a given slope against ppi-python, and
Wilson's interval against truescore, both to 1e-9.
"""

import argparse
import hashlib
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import ppi_py
import truescore
from glide.estimators import PPIMeanEstimator

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2] / "core")]

from people.__main__ import FOLDER, ROWS, Population, alone, populations  # noqa: E402 - where it stands is no package

from ragstone.labels import corrected_mean, estimates  # noqa: E402 - of this folder, not an installed one

CELLS = (
    ("faithbench", "people", "gpt_4o"),
    ("faithbench", "people", "hhem"),
    ("xstest", "people", "gpt_4"),
    ("xstest", "people", "phrases"),
    ("mtrag", "people_faithfulness", "ragas_faithfulness"),
    ("mtrag", "people", "radbench_llm"),
    ("summeval", "people", "pairs_in_reference"),
    ("summeval", "people_consistency", "words_in_source"),
    ("realsumm", "people", "words_of_source"),
    ("haluquestqa", "people", "words_of_question"),
)
Ends = tuple[float, float]


def ours(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> Ends:
    estimate = corrected_mean(y, f, rest)
    return estimate.low, estimate.high


def by_ppi_python(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> Ends:
    low, high = ppi_py.ppi_mean_ci(y, f, rest, alpha=0.05)
    return float(low[0]), float(high[0])


def by_truescore(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> Ends:
    estimate = truescore.ppi_estimate(np.concatenate([f, rest]), y, np.arange(len(y)))
    return float(estimate.low), float(estimate.high)


def by_glide(y: np.ndarray, f: np.ndarray, rest: np.ndarray) -> Ends:
    labels = np.concatenate([y, np.full(len(rest), np.nan)])
    interval = PPIMeanEstimator().estimate(labels, np.concatenate([f, rest])).confidence_interval
    return float(interval.lower_bound), float(interval.upper_bound)


WAYS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Ends]] = {
    "ragstone": ours,
    "glide-py": by_glide,
    "truescore": by_truescore,
    "ppi-python": by_ppi_python,
}


def cell(of: Population, n: int, draws: int) -> str:
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(f"{of.name}{of.judge}{n}".encode()).digest()[:8], "big"))
    yes_no, truth = set(np.unique(of.y)) <= {0.0, 1.0}, float(of.y.mean())
    held, width, failed = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0.0), dict.fromkeys(WAYS, 0)
    alone_held, alone_width = 0, 0.0
    for _ in range(draws):
        rows = rng.integers(0, len(of.y), ROWS)
        y, f, rest = of.y[rows[:n]], of.f[rows[:n]], of.f[rows[n:]]
        low, high = alone(y, yes_no)
        alone_held, alone_width = alone_held + (low <= truth <= high), alone_width + high - low
        for name, way in WAYS.items():
            try:
                low, high = way(y, f, rest)
            except ValueError:  # a constant judge, for one: counted as an interval that holds nothing
                failed[name] += 1
                continue
            if not math.isfinite(low + high):
                failed[name] += 1
                continue
            held[name] += low - 1e-12 <= truth <= high + 1e-12
            width[name] += high - low
    cells = [f"{held[name] / draws:.3f} ({width[name] / max(1, draws - failed[name]):.3f})" for name in WAYS]
    cells = [f"{text}, {failed[name]} failed" if failed[name] else text for name, text in zip(WAYS, cells, strict=True)]
    row = (
        f"{of.name} {of.people} by {of.judge}",
        str(n),
        f"{alone_held / draws:.3f} ({alone_width / draws:.3f})",
        *cells,
    )
    return f"| {' | '.join(row)} |"


def check_formulas() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        y, f, rest = rng.random(40), rng.random(40), rng.random(300)
        data = estimates._checked(y, f, rest, None, None, (None, None), (None, None), 0.0)  # noqa: SLF001
        slope = float(rng.random())
        theirs = ppi_py.ppi_mean_pointestimate(y, f, rest, lam=slope * 300 / 340)
        of_range = slope * float(np.ptp([*f, *rest]))  # ours goes by the judge's range
        assert abs(estimates._ppi_mean(data, of_range) - float(np.squeeze(theirs))) < 1e-9  # noqa: SLF001
        k = int(rng.integers(0, 41))
        low, high = estimates._wilson(k / 40, 40.0, 1.959963984540054)  # noqa: SLF001
        wilson = truescore.wilson_interval(k, 40)
        assert abs(low - wilson.low) + abs(high - wilson.high) < 1e-9
    print("The prediction-powered mean is ppi-python's, and Wilson's interval truescore's, to 1e-9.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    check_formulas()
    if not FOLDER.is_dir():
        sys.exit(f"{FOLDER} is not there: nothing to measure")
    print(f"\nCovers (width), {draws:,} draws of {ROWS} rows.\n")
    print(f"| | labels | labels alone | {' | '.join(WAYS)} |\n|---|--:|{'--:|' * (len(WAYS) + 1)}")
    for of in populations():
        if (of.name, of.people, of.judge) in CELLS:
            for n in (30, 60, 120):
                print(cell(of, n, draws), flush=True)


if __name__ == "__main__":
    main()
