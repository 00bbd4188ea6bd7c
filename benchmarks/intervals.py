"""How often a report's 95 % interval holds the true mean, how wide it is, and what the gate lets pass.

    python benchmarks/intervals.py [NAME OF A TABLE ...]

The interval is computed for all draws of a cell at once, by the formulas of `Mean`; of each cell one draw is computed
by `Mean` too, and the two must be the same. Draws start from a fixed seed. It needs scipy (the extra `labels`).
"""

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragstone.report.checks import drop_status
from ragstone.report.statistics import NORMAL_95, RAREST, Mean, draws_to_show, permutation_p
from ragstone.report.tables import DASH

DRAWS = 10_000
SIZES = (8, 10, 20, 30, 60, 72, 100, 200)
SPREADS = (0.0, 0.01, 0.05, 0.1)
SHARES = (0.0, 0.02, 0.05, 0.1)
Numbers = NDArray[np.float64]
Random = np.random.Generator
Draw = Callable[[Random, tuple[int, int]], Numbers]


class Population(NamedTuple):
    """Where numbers come from: what breaks in a share of them, if anything does."""

    name: str
    mean: float
    draw: Draw
    breaks: float = 0.0


class Ends(NamedTuple):
    """The intervals of many draws: each field has one number a draw."""

    low: Numbers
    high: Numbers
    narrow_low: Numbers
    narrow_high: Numbers
    size: Numbers

    def to_decide(self, rarest: float) -> tuple[Numbers, Numbers]:
        """The ends that `Interval.ends` gives."""
        wider = self.high - self.low > 1.5 * (self.narrow_high - self.narrow_low)
        narrow = wider & (self.size >= draws_to_show(rarest))
        return np.where(narrow, self.narrow_low, self.low), np.where(narrow, self.narrow_high, self.high)


def ends(x: Numbers, bounds: tuple[float, float], w: Numbers | None = None) -> Ends:
    """The intervals of draws: each row of x is one, with weights."""
    w = np.ones_like(x) if w is None else w
    n = x.shape[1]
    size = w.sum(1) ** 2 / (w**2).sum(1)
    mean = (w * x).sum(1) / w.sum(1)
    off = x - mean[:, None]
    squares, cubes = ((w**2 * off**k).sum(1) / (w**2).sum(1) for k in (2, 3))
    variance = squares * n / (n - 1)
    half = special.stdtrit(np.maximum(1, np.floor(size - 1 + 1e-9)), 0.975) * np.sqrt(variance / size)
    skew = np.divide(cubes, squares**1.5, out=np.zeros(len(x)), where=squares > 1e-18)
    lean = (skew * np.sqrt(variance) * (2 * NORMAL_95**2 + 1) / (6 * size)).clip(-half, half)
    narrow = np.maximum(bounds[0], mean - half + lean), np.minimum(bounds[1], mean + half + lean)
    low, high = (
        _end(bound, far, mean, variance, size) for bound, far in ((bounds[0], x.max(1)), (bounds[1], x.min(1)))
    )
    return Ends(low, high, *narrow, size)


def _end(bound: float, far: Numbers, mean: Numbers, variance: Numbers, size: Numbers) -> Numbers:
    span = far - bound
    middle = (size * mean + bound) / (size + 1)
    squares = (size - 1) * variance + size * (mean - middle) ** 2 + (bound - middle) ** 2
    with np.errstate(all="ignore"):
        share = (middle - bound) / span
        numbers = share * (1 - share) * span**2 * (size + 1) * (size + 2) / squares - 1
        numbers = np.maximum(size + 1, numbers)
        end = span * special.betaincinv(share * numbers, (1 - share) * numbers, 0.025)
    seen = (mean - bound) * 0.025 ** (1 / size)
    nearer = np.where(np.abs(end) < np.abs(seen), end, seen)
    return np.where(span == 0, bound, bound + nearer)


def same_as_the_reports(x: Numbers, bounds: tuple[float, float], found: Ends, w: Numbers | None = None) -> None:
    """Refuse ends that are not those of `Mean`."""
    mean = Mean()
    for i, value in enumerate(x[0].tolist()):
        mean.add(value, 1.0 if w is None else float(w[0, i]))
    e = mean.estimate(bounds)
    ours = [float(each[0]) for each in found.to_decide(RAREST)]
    if e is None or not np.allclose(ours, e.ends(RAREST) or ours, atol=2e-3 * (bounds[1] - bounds[0])):
        raise AssertionError(f"not the report's interval: {ours}, {e}")


def few_values(name: str, shares: dict[float, float], breaks: float = 0.0) -> Population:
    """A population with few values, each with its share."""
    numbers, chances = list(shares), list(shares.values())
    return Population(
        name, float(np.dot(numbers, chances)), lambda r, shape: r.choice(numbers, shape, p=chances), breaks
    )


def spreading(around: float, spread: float, share: float, broken: float) -> Population:
    """Numbers around one, of which a share breaks: it is `broken` instead."""
    name = f"{around:g} ± {spread:g}" + (f", {100 * share:g} % are {broken:g}" if share else "")

    def draw(r: Random, shape: tuple[int, int]) -> Numbers:
        return np.where(r.random(shape) < share, broken, r.normal(around, spread, shape))

    return Population(name, (1 - share) * around + share * broken, draw, share)


def claims(supported: float, breaks: float = 0.0) -> Population:
    """Shares of 2 to 8 claims that are supported, as faithfulness is; a share `breaks` of them is below 1."""

    def draw(r: Random, shape: tuple[int, int]) -> Numbers:
        n = r.integers(2, 9, shape)
        return np.asarray(r.binomial(n, supported) / n)

    return Population(f"claims, {100 * supported:g} % supported", supported, draw, breaks)


THIRDS = few_values("thirds", {0.0: 0.25, 1 / 3: 0.25, 2 / 3: 0.25, 1.0: 0.25})
MEANS = (
    *(few_values(f"1, but 0 in {100 * p:g} %", {1.0: 1 - p, 0.0: p}, p) for p in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
    *(spreading(0.5 if s == 0.1 else 0.8, s, p, 0.0) for s in SPREADS for p in SHARES if s),
    few_values("1, but 2/3 in 10 %, 0 in 2 %", {1.0: 0.88, 2 / 3: 0.1, 0.0: 0.02}, 0.02),
    few_values("thirds: 1 in 80 %", {1.0: 0.8, 2 / 3: 0.1, 1 / 3: 0.05, 0.0: 0.05}, 0.05),
    THIRDS,
    claims(0.97, 0.14),
    claims(0.6),
    Population("uniform", 0.5, lambda r, shape: r.random(shape)),
    Population("beta(8, 2)", 0.8, lambda r, shape: r.beta(8, 2, shape)),
    Population("beta(.8, .2)", 0.8, lambda r, shape: r.beta(0.8, 0.2, shape), 0.19),  # below a half
)
DIFFERENCES = (
    *(spreading(0.0, s, p, -1.0) for s in SPREADS for p in SHARES if s or p),
    *(spreading(0.0, s, p, -0.5) for s in (0.0, 0.05) for p in SHARES if p),
    few_values("5 % break, 5 % mend", {0.0: 0.9, -1.0: 0.05, 1.0: 0.05}, 0.05),
    few_values("10 % break, 10 % mend", {0.0: 0.8, -1.0: 0.1, 1.0: 0.1}, 0.1),
    few_values("thirds up and down", {-1 / 3: 0.25, 0.0: 0.5, 1 / 3: 0.25}),
    spreading(0.0, 0.2, 0.0, 0.0),
)


def drawn(each: Population, n: int, bounds: tuple[float, float]) -> tuple[Numbers, Ends]:
    """One cell: draws of n numbers, and their intervals."""
    r = np.random.default_rng([zlib.crc32(each.name.encode()), n])
    x = each.draw(r, (DRAWS, n)).clip(*bounds)
    found = ends(x, bounds)
    same_as_the_reports(x, bounds, found)
    return x, found


def share(value: float) -> str:
    """A share as the tables write it."""
    return "1.00" if value > 0.995 else f"{value:.2f}"[1:]


def table(title: str, heads: Iterable[object], rows: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print a table as Markdown."""
    heads = list(heads)
    print(f"\n| {title} |", " | ".join(map(str, heads)), "|")
    print("|---|" + "--:|" * len(heads))
    for name, cells in rows:
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def covers(low: Numbers, high: Numbers, mean: float) -> tuple[float, float]:
    """How often an interval misses a mean below and above."""
    return float((low > mean + 1e-9).mean()), float((high < mean - 1e-9).mean())


def shown_by(n: int, each: Population) -> bool:
    """Whether what breaks is no rarer than n numbers would show."""
    return not each.breaks or n >= draws_to_show(each.breaks)


def coverage(title: str, populations: Sequence[Population], bounds: tuple[float, float]) -> None:
    """Print how often intervals hold the mean, with their widths; then the narrower ones, where they promise to."""
    cells: dict[str, list[str]] = {}
    narrower: dict[str, list[str]] = {}
    least, side, of_narrower = 1.0, 0.0, 1.0
    for each in populations:
        for n in SIZES:
            _, e = drawn(each, n, bounds)
            misses = covers(e.low, e.high, each.mean)
            least, side = min(least, 1 - sum(misses)), max(side, *misses)
            cells.setdefault(each.name, []).append(f"{share(1 - sum(misses))} {(e.high - e.low).mean():.2f}")
            cell = DASH
            if shown_by(n, each):
                low, high = e.to_decide(1 - 1e-9)  # the narrower one wherever it is printed
                held = 1 - sum(covers(low, high, each.mean))
                of_narrower = min(of_narrower, held)
                cell = f"{share(held)} {(high - low).mean():.2f}"
            narrower.setdefault(each.name, []).append(cell)
    heads = [f"n = {n}" for n in SIZES]
    table(title, heads, cells.items())
    print(f"\nLeast coverage: {least:.3f}; most misses on a side: {side:.3f}")
    table(f"{title}: the narrower interval where it is printed", heads, narrower.items())
    print(f"\nLeast coverage: {of_narrower:.3f}")


def passes(each: Population, n: int, allowed: float, rarest: float) -> float:
    """How often the gate passes."""
    low, high = drawn(each, n, (-1.0, 1.0))[1].to_decide(rarest)
    return float(np.mean([drop_status(*pair, allowed) == 0 for pair in zip(low.tolist(), high.tolist(), strict=True)]))


def gate() -> None:
    """Print how often the gate passes a drop of twice the allowed one, and two equal runs."""
    breaking = [
        *(spreading(0.0, s, p, -1.0) for s in SPREADS for p in (0.02, 0.05, 0.1)),
        *(spreading(0.0, s, p, -0.5) for s in (0.0, 0.05) for p in (0.05, 0.1)),
        *(spreading(-0.04, s, 0.0, 0.0) for s in SPREADS[1:]),
        few_values("10 % break, 5 % mend", {0.0: 0.85, -1.0: 0.1, 1.0: 0.05}, 0.1),
        few_values("15 % lose a third", {0.0: 0.85, -1 / 3: 0.15}, 0.15),
        Population("normal(-.04, .3)", -0.04, lambda r, shape: r.normal(-0.04, 0.3, shape)),
    ]
    heads = [f"n = {n}" for n in SIZES]
    for rarest, title in ((0.0, "`--rarest 0`"), (RAREST, "default")):
        rows = [(each.name, [passes(each, n, -each.mean / 2, rarest) for n in SIZES]) for each in breaking]
        table(f"{title}: passes twice the allowed drop", heads, [(name, [share(p) for p in of]) for name, of in rows])
        promised = [of for each, (_, of) in zip(breaking, rows, strict=True) if not 0 < each.breaks < rarest]
        print(f"\nMost, where what breaks is as common as it assumes: {max(map(max, promised)):.3f}")
    equal = [
        (few_values("every row equal", {0.0: 1.0}), (0.02, 0.05)),
        (few_values("1 % break, 1 % mend", {0.0: 0.98, -1.0: 0.01, 1.0: 0.01}), (0.05,)),
        (few_values("5 % break, 5 % mend", {0.0: 0.9, -1.0: 0.05, 1.0: 0.05}), (0.05, 0.1)),
        (few_values("a third up or down in 20 %", {0.0: 0.8, -1 / 3: 0.1, 1 / 3: 0.1}), (0.05,)),
        (spreading(0.0, 0.05, 0.0, 0.0), (0.02, 0.05)),
        (spreading(0.0, 0.1, 0.0, 0.0), (0.02, 0.05)),
        (spreading(0.0, 0.2, 0.0, 0.0), (0.05, 0.1)),
    ]
    table(
        "passes two equal runs: default, `--rarest 0`",
        heads,
        [
            (
                f"{each.name}; {allowed:g} allowed",
                [" ".join(share(passes(each, n, allowed, r)) for r in (RAREST, 0.0)) for n in SIZES],
            )
            for each, limits in equal
            for allowed in limits
        ],
    )


class Design(NamedTuple):
    """Groups: each one's size, in rows."""

    name: str
    sizes: Sequence[int]


DESIGNS = (
    Design("50 groups of 2", [2] * 50),
    Design("20 of 5", [5] * 20),
    Design("20 of 8", [8] * 20),
    Design("10 of 10", [10] * 10),
    Design("5 of 20", [20] * 5),
    Design("20: 1 to 20 rows", list(range(1, 21))),
    Design("30: one of 40, 29 of 2", [40] + [2] * 29),
)


def by_groups(r: Random, of: Design, icc: float, fail: float, draws: int) -> Numbers:
    """Scores of grouped rows; each group's share of the variance is about `icc`, and a share of groups fails whole."""
    place = np.repeat(np.arange(len(of.sizes)), of.sizes)
    whole = r.standard_normal((draws, len(of.sizes)))[:, place]
    z = np.sqrt(icc) * whole + np.sqrt(1 - icc) * r.standard_normal((draws, len(place)))
    failed = (r.random((draws, len(of.sizes))) < fail)[:, place]
    return np.where(failed, 0.0, special.ndtr((z + 0.8) / 1.2))


def group_means(x: Numbers, of: Design) -> tuple[Numbers, Numbers]:
    """Each group's mean, and its size as weight."""
    starts = np.concatenate([[0], np.cumsum(of.sizes)[:-1]])
    return np.add.reduceat(x, starts, axis=1) / of.sizes, np.broadcast_to(
        np.array(of.sizes, float), (len(x), len(of.sizes))
    )


def groups() -> None:
    """Print how often the interval by groups and the one by rows hold the mean, and how often equal systems differ."""
    rows: list[tuple[str, list[str]]] = []
    least = 1.0
    for of in DESIGNS:
        for fail in (0.0, 0.04):
            cells: list[str] = []
            for icc in (0.0, 0.2, 0.3, 0.5):
                r = np.random.default_rng([zlib.crc32(of.name.encode()), int(100 * icc), int(100 * fail)])
                truth = (1 - fail) * float(by_groups(r, Design("", [1]), 0.0, 0.0, 2_000_000).mean())
                x = by_groups(r, of, icc, fail, DRAWS)
                means, weights = group_means(x, of)
                grouped, alone = ends(means, (0.0, 1.0), weights), ends(x, (0.0, 1.0))
                same_as_the_reports(means, (0.0, 1.0), grouped, weights)
                held = 1 - sum(covers(grouped.low, grouped.high, truth))
                narrow = 1 - sum(covers(*grouped.to_decide(1 - 1e-9), truth))
                least = min(least, held)
                cells.append(
                    f"{share(1 - sum(covers(alone.low, alone.high, truth)))} / {share(held)} / {share(narrow)}"
                )
            rows.append((of.name + (", 4 % of groups fail" if fail else ""), cells))
    heads = [f"ICC {icc:g}" for icc in (0.0, 0.2, 0.3, 0.5)]
    table("a mean: by rows / by groups / the narrower one by groups", heads, rows)
    print(f"\nLeast coverage by groups: {least:.3f}")
    rows = []
    for of in DESIGNS[:4]:
        cells = []
        for icc in (0.0, 0.3, 0.5):
            r = np.random.default_rng([zlib.crc32(of.name.encode()), 7, int(100 * icc)])
            x = by_groups(r, of, icc, 0.0, 500) - by_groups(r, of, icc, 0.0, 500)
            means, weights = group_means(x, of)
            found = [
                different(each, ends(v, (-1.0, 1.0), w))
                for each, v, w in ((x, x, None), (means * weights, means, weights))
            ]
            cells.append(" / ".join(share(p) for p in found))
        rows.append((of.name, cells))
    table("two equal systems called different: by rows / by groups", ["ICC 0", "ICC 0.3", "ICC 0.5"], rows)


def different(swapped: Numbers, e: Ends) -> float:
    """How often one of two systems is called better, as `MetricComparison.better` does."""
    low, high = e.to_decide(RAREST)
    p = np.array([permutation_p(each) or 1.0 for each in swapped])
    return float(((p < 0.05) & ((low > 1e-9) | (high < -1e-9))).mean())


def tables() -> Iterator[tuple[str, Callable[[], None]]]:
    """Each table by its name."""
    yield "scores", lambda: coverage("scores", MEANS, (0.0, 1.0))
    yield "differences", lambda: coverage("differences", DIFFERENCES, (-1.0, 1.0))
    yield "gate", gate
    yield "groups", groups


if __name__ == "__main__":
    for name, print_table in tables():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            print_table()
