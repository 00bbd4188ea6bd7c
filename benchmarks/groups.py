"""How often the interval of a corrected mean holds the truth where samples depend on each other: by samples, by group.

    python benchmarks/groups.py

Scores of one group (a document, a conversation) are alike: their latent normals have an intraclass correlation (ICC).
The samples to label are drawn at random. Draws start from a fixed seed. Means, comparisons and the gate are in
intervals.py, alarms in alarms.py.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from ragstone.labels import corrected_difference, corrected_mean

DRAWS = 500
RANDOM = np.random.default_rng(20261128)
DESIGNS = ((12, 10, 60), (40, 5, 40), (20, 8, 60), (100, 2, 60))  # groups, samples of each, labels
ICCS = (0.0, 0.2, 0.5)
Numbers = NDArray[np.float64]


def share(z: Numbers) -> Numbers:
    """A score from 0 to 1 of a latent normal: most are high, and some are near 0."""
    return np.asarray(0.5 * (1 + np.vectorize(math.erf)((z + 0.8) / 1.7)))


def draw(kind: str, groups: int, each: int, icc: float) -> tuple[Numbers, Numbers]:
    """Return what people and the judge say of each sample."""

    def normals() -> Numbers:
        of_group, own = RANDOM.standard_normal((groups, 1)), RANDOM.standard_normal((groups, each))
        return np.asarray(math.sqrt(icc) * of_group + math.sqrt(1 - icc) * own).ravel()

    z, e = normals(), normals()
    said = 0.8 * z + 0.6 * e
    if kind == "yes/no":
        return (z > -0.8).astype(np.float64), (said > -0.8).astype(np.float64)
    if kind == "yes/no, few no":
        return (z > -1.9).astype(np.float64), share(said)
    if kind == "differences":
        return share(z) - share(normals()), share(said) - share(normals())
    return share(z), share(said)


def cells(kind: str, groups: int, each: int, labels: int, icc: float) -> str:
    """Return the coverage by samples and by group, and how many times as wide the interval is by group."""
    truth = float(draw(kind, 200_000, 1, icc)[0].mean())
    estimator = corrected_difference if kind == "differences" else corrected_mean
    hits, widths = [0, 0], [0.0, 0.0]
    for _ in range(DRAWS):
        people, judge = draw(kind, groups, each, icc)
        order = RANDOM.permutation(len(people))
        some, rest = order[:labels], order[labels:]
        for place, group in enumerate((None, (order // each).tolist())):
            found = estimator(people[some], judge[some], judge[rest], group=group)
            hits[place] += found.low <= truth <= found.high
            widths[place] += found.high - found.low
    return f"{hits[0] / DRAWS:.2f} / {hits[1] / DRAWS:.2f} ({widths[1] / widths[0]:.1f})"


def main() -> None:
    warnings.simplefilter("ignore")
    print("| labels | groups x samples, labelled |", " | ".join(f"ICC {icc:g}" for icc in ICCS), "|")
    print("|---|---|--:|--:|--:|")
    for kind in ("graded", "yes/no", "yes/no, few no", "differences"):
        for groups, each, labels in DESIGNS:
            row = " | ".join(cells(kind, groups, each, labels, icc) for icc in ICCS)
            print(f"| {kind} | {groups} x {each}, {labels} | {row} |", flush=True)


if __name__ == "__main__":
    main()
