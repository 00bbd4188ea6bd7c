"""What holds where rows depend on each other: intervals, comparisons, corrected means and alarms, by rows and by group.

    python benchmarks/groups.py

Scores of one document, or of one conversation, are alike: their latent normals have an intraclass correlation (ICC).
Draws start from a fixed seed.
"""

import math
import warnings
from collections.abc import Iterator

import numpy as np
from alarms import BELOW, alarms
from numpy.typing import NDArray

from ragstone import Sample, Score
from ragstone.labels import corrected_mean
from ragstone.report import MetricInfo, Report, compare
from ragstone.report.checks import check_drops
from ragstone.report.statistics import GroupedMean
from ragstone.results.record import Record

RANDOM = np.random.default_rng(20261128)
DEMO = MetricInfo("demo", "1", "judge", (0.0, 1.0))
Numbers = NDArray[np.float64]
CELLS = ((20, 5), (20, 8), (50, 2), (10, 10), (100, 3))
CORRECTED = ((12, 10, 60), (40, 5, 40), (20, 8, 60), (100, 2, 60))
ICCS = (0.0, 0.2, 0.3, 0.5)


def share(z: Numbers) -> Numbers:
    """A score from 0 to 1 of a latent normal: most are high, and some are near 0."""
    return np.asarray(0.5 * (1 + np.vectorize(math.erf)((z + 0.8) / 1.7)))


def normals(groups: int, each: int, icc: float) -> Numbers:
    of_group, own = RANDOM.standard_normal((groups, 1)), RANDOM.standard_normal((groups, each))
    return np.asarray(math.sqrt(icc) * of_group + math.sqrt(1 - icc) * own)


def failing(groups: int, each: int) -> Numbers:
    """Scores that are alike, but for a tenth of the groups that fail as a whole."""
    return np.where(RANDOM.random((groups, 1)) < 0.1, 0.0, 0.9 + 0.02 * RANDOM.standard_normal((groups, each)))


def ends(values: Numbers, *, grouped: bool) -> list[tuple[float, float]]:
    """Return a mean's interval, and the narrower one that stands beside it."""
    mean = GroupedMean()
    for row, of_group in enumerate(values):
        for value in of_group:
            mean.add(float(value), group=f"group={row}" if grouped else None)
    found = mean.estimate((0.0, 1.0))
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return [(found.low, found.high), found.narrower or (found.low, found.high)]


def held(draws: int, groups: int, each: int, icc: float | None) -> Iterator[float]:
    """Yield how often the interval of a mean holds it, and its width: by rows, by group, and the narrower one."""

    def draw(n: int, m: int) -> Numbers:
        return failing(n, m) if icc is None else share(normals(n, m, icc))

    truth = 0.81 if icc is None else float(draw(100_000, 1).mean())
    found: list[list[tuple[float, float]]] = []
    for _ in range(draws):
        values = draw(groups, each)
        found.append([ends(values, grouped=False)[0], *ends(values, grouped=True)])
    for low, high in np.array(found).transpose(1, 2, 0):
        yield float(((low <= truth) & (truth <= high)).mean())
        yield float((high - low).mean())


def reports(values: Numbers, group: str | None) -> Report:
    samples = [Sample(user_input="?", metadata={"doc": row}) for row, of in enumerate(values) for _ in of]
    scores = [Score(metric="demo", value=float(value), reason="", version="1") for value in values.ravel()]
    records = [Record(f"q{row}", score, "judge", row) for row, score in enumerate(scores)]
    return Report.of(records, [DEMO], samples=samples, group=group)


def called_different(draws: int, groups: int, each: int, icc: float) -> tuple[float, float, float]:
    """Return how often two equal systems are called different by rows and by group, and the gate says "worse"."""
    counts = [0, 0, 0]
    for _ in range(draws):
        drawn = [share(normals(groups, each, icc)) for _ in range(2)]
        for place, group in enumerate((None, "metadata.doc")):
            found = compare(*[reports(values, group) for values in drawn])
            counts[place] += found.metrics["demo"].better is not None
            counts[2] += bool(group) and check_drops(found, 0.0)[0].status == 1
    by_rows, by_group, worse = (each / draws for each in counts)
    return by_rows, by_group, worse


def corrected(draws: int, groups: int, each: int, labels: int, icc: float) -> tuple[float, float, float]:
    """Return how often the corrected mean's interval holds the truth, by rows and by group; and the ratio of widths."""

    def draw(n: int, m: int) -> tuple[Numbers, Numbers]:
        z, e = normals(n, m, icc), normals(n, m, icc)
        return share(z).ravel(), share(0.8 * z + 0.6 * e).ravel()

    truth, hits, widths = float(draw(100_000, 1)[0].mean()), [0, 0], [0.0, 0.0]
    for _ in range(draws):
        people, judge = draw(groups, each)
        order = RANDOM.permutation(len(people))
        some, rest = order[:labels], order[labels:]
        for place, group in enumerate((None, (order // each).tolist())):
            found = corrected_mean(people[some], judge[some], judge[rest], group=group)
            hits[place] += found.low <= truth <= found.high
            widths[place] += found.high - found.low
    return hits[0] / draws, hits[1] / draws, widths[1] / widths[0]


def conversations(streams: int, turns: int, length: int, icc: float) -> Numbers:
    """Return streams of scores, conversation after conversation, whose mean is the alert's limit: the worst case."""
    z = normals(streams * (length // turns), turns, icc)
    scores = share(1.2 * z + 0.35)
    low, high = -1.0, 1.0
    for _ in range(40):  # moved until the mean is right
        middle = (low + high) / 2
        low, high = (middle, high) if (scores + middle).clip(0, 1).mean() < BELOW else (low, middle)
    return np.asarray((scores + high).clip(0, 1).reshape(streams, length))


def main() -> None:
    warnings.simplefilter("ignore")
    print("Coverage of a mean's 95 % interval; mean width")
    print("| groups x rows | ICC | by rows | width | by group | width | the narrower one | width |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for groups, each in CELLS:
        for icc in (*ICCS, None):
            cells = " | ".join(f"{value:.2f}" for value in held(1_000, groups, each, icc))
            print(f"| {groups} x {each} | {'10 % of groups fail' if icc is None else icc} | {cells} |", flush=True)
    print("\nTwo equal systems: one is called better, by rows and by group; the gate says worse, by group")
    print("| groups x rows | ICC | by rows | by group | gate |\n|---|--:|--:|--:|--:|")
    for groups, each in CELLS[:2]:
        for icc in ICCS:
            found = " | ".join(f"{value:.3f}" for value in called_different(300, groups, each, icc))
            print(f"| {groups} x {each} | {icc} | {found} |", flush=True)
    print("\nCoverage of a corrected mean; how many times as wide it is by group")
    print("| groups x rows | labels | ICC | by rows | by group | times |\n|---|--:|--:|--:|--:|--:|")
    for groups, each, labels in CORRECTED:
        for icc in ICCS:
            found = " | ".join(f"{value:.2f}" for value in corrected(500, groups, each, labels, icc))
            print(f"| {groups} x {each} | {labels} | {icc} | {found} |", flush=True)
    print("\nFalse alarms of an alert in 5,000 scores: every score counts, or one of a conversation")
    print("| turns | ICC | every score | one of a conversation |\n|--:|--:|--:|--:|")
    for turns in (5, 8):
        for icc in (0.0, 0.3, 0.5):
            scores = conversations(1_000, turns, 5_000, icc)
            cells = [float((alarms(each) > 0).mean()) for each in (scores, scores[:, ::turns])]
            print(f"| {turns} | {icc} | {cells[0]:.3f} | {cells[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
