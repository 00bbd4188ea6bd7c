"""How often alerts are wrong, and how soon they see a drop: on streams of scores with a known mean.

    python benchmarks/alarms.py

An alert looks after each score. Healthy streams have the mean that the alert is set to, .75: the worst case that is no
drop. Beside it stands an ordinary 95 % interval of all scores so far, looked at as often from the 30th score on.
Waits are in scores that the alert counts: median / 90th percentile.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ragstone.live.betting import ALPHA, bet, bets_against, evidence

STREAMS, LENGTH, BELOW, SD = 1_000, 5_000, 0.75, 0.3
LATE, AFTER = 3_000, 2_000
Scores = NDArray[np.float64]
Make = Callable[[float, tuple[int, int], float], Scores]
RANDOM = np.random.default_rng(20261125)


def beta(mean: float, shape: tuple[int, int], sd: float) -> Scores:
    size = mean * (1 - mean) / sd**2 - 1
    return RANDOM.beta(mean * size, (1 - mean) * size, shape)


def yes_or_no(mean: float, shape: tuple[int, int], sd: float) -> Scores:
    """Scores of 0 and 1, whose standard deviation is what it is: .43 at a mean of .75."""
    del sd
    return (RANDOM.random(shape) < mean).astype(np.float64)


def skewed(mean: float, shape: tuple[int, int], sd: float) -> Scores:
    """Mostly 1, and now and then one value far below."""
    missing = 1 - mean
    often = missing**2 / (sd**2 + missing**2)
    return np.where(RANDOM.random(shape) < often, 1 - missing / often, 1.0)


def graded(mean: float, shape: tuple[int, int], sd: float) -> Scores:
    """Shares of five items, as Faithfulness gives for five claims."""
    return RANDOM.binomial(5, beta(mean, shape, sd)) / 5


def alarms(scores: Scores, below: float = BELOW) -> NDArray[np.int64]:
    """Return after how many scores each stream raises an alarm; 0 where it never does."""
    bets = bets_against(below)
    stakes = np.zeros((len(scores), len(bets)))
    raised = np.zeros(len(scores), dtype=np.int64)
    for n in range(scores.shape[1]):
        stakes = bet(stakes, bets, below, n, scores[:, n : n + 1])
        stakes[raised > 0] = 0
        raised[(evidence(stakes, n + 1) >= 1 / ALPHA) & (raised == 0)] = n + 1
    return raised


def fall(make: Make, healthy: int, below: float) -> NDArray[np.int64]:
    """Return how many scores after a fall from .90 to .75 an alert raises its alarm."""
    raised = alarms(np.hstack([make(0.9, (STREAMS, healthy), 0.25), make(0.75, (STREAMS, AFTER), 0.25)]), below)
    return np.maximum(raised[(raised == 0) | (raised > healthy)] - healthy, 0)


def ordinary(scores: Scores) -> float:
    """Return the share of streams whose ordinary interval ever lies under the mean that they have."""
    n = np.arange(1, scores.shape[1] + 1)
    mean: Scores = np.cumsum(scores, axis=1) / n
    square: Scores = np.cumsum(scores**2, axis=1) / n
    high = mean + 1.96 * np.sqrt(np.maximum(square - mean**2, 0) / n)
    return float((high[:, 30:].min(axis=1) < BELOW).mean())


def conversations(icc: float, turns: int = 8) -> Scores:
    """Scores of conversations, one after the other: in a share `icc` of them all turns have one score."""
    shape = STREAMS, LENGTH // turns
    alike = np.repeat(RANDOM.random(shape) < icc, turns, axis=1)
    return np.where(alike, np.repeat(beta(BELOW, shape, SD), turns, axis=1), beta(BELOW, alike.shape, SD))


def soon(raised: NDArray[np.int64]) -> str:
    waits = np.where(raised > 0, raised, 10**9)
    median, most = np.quantile(waits, [0.5, 0.9])
    return " / ".join("never" if wait == 10**9 else f"{wait:.0f}" for wait in (median, most))


def main() -> None:
    kinds: dict[str, Make] = {"beta": beta, "yes or no": yes_or_no, "skewed": skewed, "shares of five": graded}
    print("| scores | false alarms | ordinary interval | .1 lower from the start | .1 lower after 3,000 |")
    print("|---|--:|--:|--:|--:|")
    for name, make in kinds.items():
        healthy = make(BELOW, (STREAMS, LENGTH), SD)
        late = alarms(np.hstack([healthy[:, :LATE], make(BELOW - 0.1, (STREAMS, AFTER), SD)]))
        late = late[(late == 0) | (late > LATE)]
        print(
            f"| {name} | {(alarms(healthy) > 0).mean():.1%} | {ordinary(healthy):.1%} "
            f"| {soon(alarms(make(BELOW - 0.1, (STREAMS, AFTER), SD)))} | {soon(np.maximum(late - LATE, 0))} |"
        )
    print("\n| scores, alert at | .90 to .75 from the start | after 100 | after 500 | after 3,000 |")
    print("|---|--:|--:|--:|--:|")
    for name, make in kinds.items():
        for below in (0.85, 0.9):
            waits = [soon(fall(make, healthy, below)) for healthy in (0, 100, 500, LATE)]
            print(f"| {name}, {below:.2f} | {' | '.join(waits)} |")
    print("\n| false alarms, conversations of 8 turns | every turn counts | one turn of each does |")
    print("|---|--:|--:|")
    for icc in (0.0, 0.3, 0.6):
        scores = conversations(icc)
        shares = [(alarms(of) > 0).mean() for of in (scores, scores[:, ::8])]
        print(f"| ICC {icc:g} | {' | '.join(f'{each:.1%}' for each in shares)} |")


if __name__ == "__main__":
    main()
