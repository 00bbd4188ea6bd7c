"""The arithmetic of comparing: resampled intervals, tests of paired differences, the judge's own noise.

Pure functions of numbers. What is drawn by chance is drawn from a fixed seed: the same numbers give the same answer.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Places = NDArray[np.int64]

RESAMPLES = 2_000
PERMUTATIONS = 10_000
TIE = 1e-9
"""Two scores that differ by less are the same."""
NOISE_REACH = 1.959964
"""How many standard errors the judge's noise reaches to either side in 95 of 100 cases."""
_CHUNK = 1 << 22  # numbers held at once: 32 MB
_SEED = 20_260_101
_EXACT = 13  # up to so many differences, all 2 ** n changes of sign are fewer than PERMUTATIONS


def bootstrap_interval(values: "Numbers", *, resamples: int = RESAMPLES) -> tuple[float, float] | None:
    """Return the 95 % percentile bootstrap interval of the mean; None for fewer than two values.

    The values are drawn with replacement, as many as there are, `resamples` times over; the interval holds the middle
    95 % of the means. With fewer than some twenty values it is narrower than it should be.

    Example:
        >>> low, high = bootstrap_interval(np.array([0.0, 1.0] * 50))
        >>> round(low, 1), round(high, 1)
        (0.4, 0.6)
    """
    n = len(values)
    if n < 2:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    rng = np.random.default_rng(_SEED)
    if 4 * len(distinct) <= n:  # how often each value is drawn is what matters: the same distribution, sooner
        means = _drawn_by_count(rng, distinct, counts, resamples)
    else:
        means = np.empty(resamples)
        for part in _chunks(resamples, n):
            drawn = rng.integers(0, n, size=(part.stop - part.start, n), dtype=np.uint32)
            means[part] = values[drawn].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    least, greatest = float(distinct[0]), float(distinct[-1])  # rounding may not take a mean beyond its values
    return min(max(float(low), least), greatest), max(min(float(high), greatest), least)


def _drawn_by_count(rng: np.random.Generator, distinct: "Numbers", counts: "Places", resamples: int) -> "Numbers":
    n = int(counts.sum())
    means = np.empty(resamples)
    for part in _chunks(resamples, len(distinct)):
        means[part] = rng.multinomial(n, counts / n, size=part.stop - part.start) @ distinct / n
    return means


def permutation_p(differences: "Numbers", *, permutations: int = PERMUTATIONS) -> float | None:
    """Return the two-sided p-value of the mean of paired differences, if the two of a pair could as well be swapped.

    It is the share of changes of sign, each difference's chosen by chance, that take the mean as far from 0 as it is,
    counting the one that was found: (1 + hits) / (1 + permutations). For 13 differences or fewer all are tried
    and the share is exact. None for no differences.

    Example:
        >>> permutation_p(np.array([0.1, 0.2, 0.3]))
        0.25
    """
    if not len(differences):
        return None
    sizes, counts = np.unique(np.abs(differences), return_counts=True)
    found = abs(math.fsum(differences))
    reached = found - 1e-12 * (1.0 + math.fsum(np.abs(differences)))  # the same sum, added in another order
    if len(differences) <= _EXACT:
        n = len(differences)
        turned: Places = np.arange(2**n, dtype=np.int64)[:, None] >> np.arange(n, dtype=np.int64) & 1
        return float((np.abs((1.0 - 2.0 * turned) @ differences) >= reached).mean())
    rng = np.random.default_rng(_SEED)
    hits = 0
    if 4 * len(sizes) <= len(differences):  # how many of equal ones keep their sign is what matters
        for part in _chunks(permutations, len(sizes)):
            kept = rng.binomial(counts, 0.5, size=(part.stop - part.start, len(sizes)))
            hits += int((np.abs((2.0 * kept - counts) @ sizes) >= reached).sum())
    else:
        total = float(differences.sum())
        for part in _chunks(permutations, len(differences)):
            tosses = part.stop - part.start, -(-len(differences) // 8)
            bits = np.unpackbits(rng.integers(0, 256, size=tosses, dtype=np.uint8), axis=1, count=len(differences))
            hits += int((np.abs(total - 2.0 * (bits @ differences)) >= reached).sum())
    return (1 + hits) / (1 + permutations)


def _chunks(rows: int, width: int) -> "Iterator[slice]":
    step = max(1, _CHUNK // width)
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def sign_test_p(wins: int, losses: int) -> float | None:
    """Return the two-sided p-value of so many wins and losses, if each were as likely; None for neither.

    Exact: min(1, 2 P(X <= min(wins, losses))), X being binomial with n = wins + losses and 1/2. Ties are left out.

    Example:
        >>> sign_test_p(8, 1), sign_test_p(5, 5)
        (0.0390625, 1.0)
    """
    n, k = wins + losses, min(wins, losses)
    if not n:
        return None
    if n <= 1_000:
        return min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / (1 << n))
    # From the greatest term down: each is the one before times i / (n - i + 1), until they add nothing.
    term = math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
    tail = 0.0
    for i in range(k, -1, -1):
        tail += term
        term *= i / (n - i + 1)
        if term < 1e-18 * tail:
            break
    return min(1.0, 2 * tail)


@dataclass(frozen=True, slots=True)
class Noise:
    """How much a judge differs from itself when the same sample is scored again.

    Attributes:
        rows: How many samples were scored twice or more.
        sd: The standard deviation between draws of one sample, pooled over these:
            sqrt(sum of squared distances from each sample's own mean / sum of (draws - 1)).
        agreement: How often two draws of one sample agree on `passed`, within [0, 1]: the mean over samples of the
            share of pairs that do. None without a threshold.
    """

    rows: int
    sd: float
    agreement: float | None


def draw_noise(places: "Places", values: "Numbers", passed: "NDArray[np.int8]") -> Noise | None:
    """Return the noise between draws; None where no sample has two.

    Args:
        places: Which sample each score is of.
        values: The scores.
        passed: 1 where the score reached its threshold, 0 where not, -1 where it has none.

    Example:
        >>> noise = draw_noise(np.array([0, 0, 1, 1]), np.array([0.4, 0.6, 1.0, 1.0]), np.array([0, 1, 1, 1], np.int8))
        >>> noise.rows, round(noise.sd, 3), noise.agreement
        (2, 0.1, 0.5)
    """
    _, at, counts = np.unique(places, return_inverse=True, return_counts=True)
    again = counts >= 2
    if not again.any():
        return None
    mean = np.bincount(at, values) / counts
    squares = np.bincount(at, (values - mean[at]) ** 2)
    sd = math.sqrt(float(squares[again].sum()) / float((counts[again] - 1).sum()))
    yes, no = np.bincount(at, passed == 1), np.bincount(at, passed == 0)
    known = yes + no
    several = known >= 2
    pairs = known * (known - 1)
    agreeing = yes * (yes - 1) + no * (no - 1)
    agreement = float((agreeing[several] / pairs[several]).mean()) if several.any() else None
    return Noise(int(again.sum()), sd, agreement)


def noise_error(sd: float, draws: "Sequence[int] | Places") -> float:
    """Return the standard error that the judge's noise alone gives a mean of samples, each a mean of its draws.

    sd / n * sqrt(sum of 1 / draws), over the n samples.

    Example:
        >>> noise_error(0.1, [1] * 100)
        0.01
    """
    counts = np.asarray(draws, dtype=np.float64)
    return sd / len(counts) * math.sqrt(float((1.0 / counts).sum()))
