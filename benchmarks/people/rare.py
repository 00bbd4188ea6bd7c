"""Where few labels differ: whether intervals hold the truth, and how often a wrong system is found better.

    python benchmarks/people/rare.py [--draws 1000]

The populations are made, so that the truth is known. Most labels are one value, few are not, and the judge sees all of
those, some, or only the ones on one side.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ragstone.labels import corrected_difference, corrected_mean

LABELS = (20, 40, 60, 100)
Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


@dataclass
class Cells:
    """One row of the table: populations of one kind, with their truths."""

    name: str
    difference: bool
    populations: list[tuple[float, Draw]]


def changes(
    worse: float, better: float, sees_worse: float, sees_better: float, noise: float, size: float = 1.0
) -> tuple[float, Draw]:
    """Pairs of which b breaks some and mends some."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        u, seen = rng.random(400), rng.random(400)
        y = np.where(u < worse, -size, np.where(u < worse + better, size, 0.0))
        f = np.where(seen < np.where(y < 0.0, sees_worse, sees_better), y, 0.0)
        return y, f + noise * rng.normal(size=400)

    return size * (better - worse), draw


def dips(share: float, low: float, sees: float, noise: float) -> tuple[float, Draw]:
    """Labels that are 1 but for some."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        dip = rng.random(600) < share
        f = np.where(dip & (rng.random(600) < sees), 0.3, 0.97)
        return np.where(dip, low, 1.0), f + noise * rng.normal(size=600)

    return 1.0 - (1.0 - low) * share, draw


def cells() -> Iterator[Cells]:
    for noise, also in ((0.0, ""), (0.05, ", by a judge with noise")):
        yield Cells(
            f"b breaks as many as it mends; the judge sees only what breaks{also}",
            True,
            [changes(p, p, 1.0, 0.0, noise) for p in (0.02, 0.03, 0.05, 0.1)],
        )
        yield Cells(
            f"b breaks some, and the judge sees half or more of it{also}",
            True,
            [
                changes(p, 0.0, sees, 0.0, noise)
                for p, sees in ((0.03, 0.9), (0.06, 0.5), (0.06, 0.9), (0.1, 0.5), (0.1, 0.8))
            ],
        )
        yield Cells(
            f"the same, where answers become worse by .4{also}",
            True,
            [changes(p, 0.0, sees, 0.0, noise, 0.4) for p, sees in ((0.03, 0.9), (0.06, 0.5), (0.1, 0.5), (0.1, 0.8))],
        )
        for low in (0.0, 0.2, 0.7):
            yield Cells(
                f"one system, {low:g} in place of 1 in 2 to 10 of 100; the judge sees half or more{also}",
                False,
                [
                    dips(p, low, sees, noise)
                    for p, sees in ((0.02, 0.5), (0.05, 0.5), (0.08, 0.5), (0.1, 0.5), (0.1, 0.9))
                ],
            )


def measured(truth: float, draw: Draw, n: int, draws: int, *, difference: bool) -> tuple[float, float]:
    """Return how often the interval holds the truth, and how often it is sure of what is not so."""
    rng = np.random.default_rng([round(1e6 * abs(truth)), n])
    held = wrong = 0
    for _ in range(draws):
        y, f = draw(rng)
        e = (corrected_difference if difference else corrected_mean)(y[:n], f[:n], f[n:])
        held += e.low - 1e-9 <= truth <= e.high + 1e-9
        wrong += (e.low > 0.0 and truth <= 0.0) or (e.high < 0.0 and truth >= 0.0)
    return held / draws, wrong / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    head = ("", "cells", "covers .93 or more", "least", "sure and wrong, at most: 20 labels", "40", "60", "100")
    print(f"| {' | '.join(head)} |\n|---|{'--:|' * (len(head) - 1)}")
    for each in cells():
        found = {
            n: [measured(truth, draw, n, draws, difference=each.difference) for truth, draw in each.populations]
            for n in LABELS
        }
        covers = np.array([cell[0] for of_n in found.values() for cell in of_n])
        row = [each.name, str(len(covers)), f"{int((covers >= 0.93).sum())}", f"{covers.min():.3f}"]
        row += [f"{max(cell[1] for cell in found[n]):.3f}" if each.difference else "" for n in LABELS]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
