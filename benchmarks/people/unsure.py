"""Whether drawing more often where the judge is unsure makes intervals narrower: `python benchmarks/people/unsure.py`.

A sample's chance is in proportion to 1/4 + the judge's distance from certainty (0 at scores 0 and 1, 1 at 0.5), and
weights are 1 / chance. Beside it the equal chances of `ragstone choose`.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from people.__main__ import ROWS, populations

from ragstone.labels import corrected_mean

CELLS = {("faithbench", "hhem"), ("mtrag", "ragas_faithfulness"), ("mtrag", "radbench_llm"), ("mtrag", "algorithmic")}


def main(draws: int = 1000, n: int = 60) -> None:
    print("| | equal chances: covers (width) | unsure more often: covers (width) | width |\n|---|--:|--:|--:|")
    for of in populations():
        if (of.name, of.judge) not in CELLS:
            continue
        rng, truth = np.random.default_rng(4), float(of.y.mean())
        ways = np.zeros((2, 2))
        for _ in range(draws):
            rows = rng.integers(0, len(of.y), ROWS)
            y, f = of.y[rows], of.f[rows]
            unsure = 0.25 + 1.0 - np.abs(2.0 * f - 1.0)
            for way, share in enumerate((np.ones(ROWS), unsure)):
                chance = np.minimum(1.0, n * share / share.sum())
                mine = rng.random(ROWS) < chance
                if mine.sum() < 20:
                    continue
                how = {"weights": 1.0 / chance[mine]} if way else {}
                estimate = corrected_mean(y[mine], f[mine], f[~mine], **how)
                ways[way] += estimate.low <= truth <= estimate.high, estimate.high - estimate.low
        (held, width), (held_unsure, width_unsure) = (way / draws for way in ways)
        row = f"{of.name} {of.people} by {of.judge} | {held:.3f} ({width:.3f}) | {held_unsure:.3f} ({width_unsure:.3f})"
        print(f"| {row} | {width_unsure / width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
