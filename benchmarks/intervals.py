"""How often a report's 95 % interval holds the true mean, how wide it is, and how often the gate lets a drop pass.

    python benchmarks/intervals.py

Draws start from a fixed seed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragstone.report.checks import drop_status
from ragstone.report.statistics import Mean

DRAWS = 2_000
SIZES = (5, 10, 20, 30, 50, 60, 100, 200)
RANDOM = np.random.default_rng(20261126)
Numbers = NDArray[np.float64]
Ends = tuple[float, float]
Draw = Callable[[tuple[int, int]], Numbers]
Population = tuple[str, float, Draw]


def values(name: str, shares: dict[float, float]) -> Population:
    """A population with few values, each with its share."""
    numbers, chances = list(shares), list(shares.values())
    return name, float(np.dot(numbers, chances)), lambda shape: RANDOM.choice(numbers, shape, p=chances)


def claims(supported: float, shape: tuple[int, int]) -> Numbers:
    """Shares of 2 to 8 claims that are supported, as faithfulness is."""
    n = RANDOM.integers(2, 9, shape)
    return np.asarray(RANDOM.binomial(n, supported) / n)


def breaking(share: float, around: float, spread: float, shape: tuple[int, int]) -> Numbers:
    """Scores or differences that are alike but for a share that is lower by 1, or 0."""
    low = 0.0 if around > 0.5 else -1.0
    alike = RANDOM.normal(around, spread, shape).clip(-1, 1)
    return np.where(RANDOM.random(shape) < share, low, alike)


MEANS: tuple[Population, ...] = (
    *(values(f"1, but 0 in {100 * p:g} %", {1.0: 1 - p, 0.0: p}) for p in (0.01, 0.05, 0.2, 0.5)),
    values("1, but .5 in 10 %", {1.0: 0.9, 0.5: 0.1}),
    values("1; .8 in 14 %, 0 in 1 %", {1.0: 0.85, 0.8: 0.14, 0.0: 0.01}),
    values(".9, but 0 in 1 %", {0.9: 0.99, 0.0: 0.01}),
    (".9 ± .01, but 0 in 5 %", 0.855, lambda shape: breaking(0.05, 0.9, 0.01, shape)),
    ("claims, 97 % supported", 0.97, lambda shape: claims(0.97, shape)),
    ("claims, 60 % supported", 0.6, lambda shape: claims(0.6, shape)),
    values("thirds", {0.0: 0.25, 1 / 3: 0.25, 2 / 3: 0.25, 1.0: 0.25}),
    ("uniform", 0.5, RANDOM.random),
    ("beta(8, 2)", 0.8, lambda shape: RANDOM.beta(8, 2, shape)),
    ("beta(.8, .2)", 0.8, lambda shape: RANDOM.beta(0.8, 0.2, shape)),
)
DIFFERENCES: tuple[Population, ...] = (
    *(values(f"{100 * p:g} % break", {0.0: 1 - p, -1.0: p}) for p in (0.01, 0.04, 0.05)),
    values("5 % mend", {0.0: 0.95, 1.0: 0.05}),
    values("5 % break, 5 % mend", {0.0: 0.9, -1.0: 0.05, 1.0: 0.05}),
    values("10 % break, 10 % mend", {0.0: 0.8, -1.0: 0.1, 1.0: 0.1}),
    values("10 % lose .5", {0.0: 0.9, -0.5: 0.1}),
    values("30 % lose .5, 30 % gain it", {0.0: 0.4, -0.5: 0.3, 0.5: 0.3}),
    ("± .01, but 5 % break", -0.05, lambda shape: breaking(0.05, 0.0, 0.01, shape)),
    ("normal(0, .05)", 0.0, lambda shape: RANDOM.normal(0, 0.05, shape)),
    ("normal(0, .2)", 0.0, lambda shape: RANDOM.normal(0, 0.2, shape)),
)
GATE: tuple[tuple[Population, float], ...] = (
    (values("4 % break", {0.0: 0.96, -1.0: 0.04}), 0.02),
    (values("10 % lose .5", {0.0: 0.9, -0.5: 0.1}), 0.025),
    (values("10 % break, 5 % mend", {0.0: 0.85, -1.0: 0.1, 1.0: 0.05}), 0.025),
    (("± .01, but 4 % break", -0.04, lambda shape: breaking(0.04, 0.0, 0.01, shape)), 0.02),
    (("normal(-.04, .3)", -0.04, lambda shape: RANDOM.normal(-0.04, 0.3, shape).clip(-1, 1)), 0.02),
)
POWER: tuple[Population, ...] = (
    values("no change at all", {0.0: 1.0}),
    values("1 % break, 1 % mend", {0.0: 0.98, -1.0: 0.01, 1.0: 0.01}),
    values("5 % break, 5 % mend", {0.0: 0.9, -1.0: 0.05, 1.0: 0.05}),
    ("normal(0, .2)", 0.0, lambda shape: RANDOM.normal(0, 0.2, shape).clip(-1, 1)),
)


def interval(sample: Numbers, bounds: Ends) -> Ends:
    """The interval of a report."""
    mean = Mean()
    for value in sample.tolist():
        mean.add(value)
    e = mean.estimate(bounds)
    return (-np.inf, np.inf) if e is None or e.low is None or e.high is None else (e.low, e.high)


def intervals(samples: Numbers, bounds: Ends) -> Numbers:
    """Return each sample's interval; samples with the same values have one."""
    cache: dict[bytes, Ends] = {}
    ends: list[Ends] = []
    for sample in np.sort(samples, axis=1).round(12) + 0.0:
        if (key := sample.tobytes()) not in cache:
            cache[key] = interval(sample, bounds)
        ends.append(cache[key])
    return np.array(ends)


def coverage(population: Population, n: int, bounds: Ends) -> tuple[float, float]:
    """Return how often the interval holds the mean, and its mean width."""
    _, truth, draw = population
    ends = intervals(draw((DRAWS, n)), bounds)
    held = (ends[:, 0] <= truth + 1e-9) & (ends[:, 1] >= truth - 1e-9)
    return float(held.mean()), float((ends[:, 1] - ends[:, 0]).mean())


def passing(population: Population, allowed: float, n: int) -> float:
    """Return how often the gate passes."""
    ends = intervals(population[2]((DRAWS // 2, n)), (-1.0, 1.0))
    return float(np.mean([drop_status(low, high, allowed) == 0 for low, high in ends.tolist()]))


def share(value: float) -> str:
    """A share as the tables write it."""
    return "1.00" if value > 0.995 else f"{value:.2f}"[1:]


def table(title: str, rows: Sequence[tuple[str, Sequence[str]]], sizes: Sequence[int]) -> None:
    """Print a table as Markdown."""
    print(f"\n| {title} |", " | ".join(f"n = {n}" for n in sizes), "|")
    print("|---|" + "--:|" * len(sizes))
    for name, cells in rows:
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def covered(title: str, populations: Sequence[Population], bounds: Ends) -> None:
    """Print how often intervals hold the mean, and their widths."""
    found = [(each[0], [coverage(each, n, bounds) for n in SIZES]) for each in populations]
    table(title, [(name, [f"{share(held)} {width:.2f}" for held, width in cells]) for name, cells in found], SIZES)
    print(f"\nLeast coverage: {min(held for _, cells in found for held, _ in cells):.3f}")


if __name__ == "__main__":
    covered("scores", MEANS, (0.0, 1.0))
    covered("differences", DIFFERENCES, (-1.0, 1.0))
    sizes = (5, 10, 20, 30, 50, 100, 200)
    gate = [(f"{each[0]}; {most:g} allowed", [share(passing(each, most, n)) for n in sizes]) for each, most in GATE]
    power = [(f"{each[0]}; .05 allowed", [share(passing(each, 0.05, n)) for n in sizes]) for each in POWER]
    table("a drop of twice the allowed one passes", gate, sizes)
    table("no drop passes", power, sizes)
