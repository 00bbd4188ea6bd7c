"""Bets against a mean: the arithmetic of alarms that stay rare however often one looks.

Whoever doubts that scores x from 0 to 1 have a mean of at least m bets on it: with each score a stake S becomes
S (1 + b (m - x)), for a bet b from 0 to 1 / (1 - m). As long as the mean is at least m, no stake can be expected to
grow, whatever the scores' distribution and whatever came before. So all stakes together, which begin with 1, ever
reach 1 / alpha with a probability of at most alpha (Ville's inequality). That holds for all looks together.

A bet that has lost for long would notice a late drop late. So every 50 samples fresh stakes are placed, beside those
that are there: of the initial 1 the k-th time the share 1 / log2(k + 1) - 1 / log2(k + 2). These shares add up to 1.

Sources: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (JRSS B, 2024); Shin, Ramdas
and Rinaldo, E-detectors (2024). `benchmarks/alarms.py` measures false alarms and how soon drops are noticed.
"""

from math import log2
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 0.04
"""The probability that an alert ever raises a false alarm: under .05, so that a count of such alarms is, too."""

_BETWEEN = 50
# For a drop of .02 at a standard deviation of .3.
_SMALLEST = 0.25


def share(k: int) -> float:
    """Compute the share of 1 that the k-th of endlessly many has, k from 1.

    Example:
        >>> [round(share(k), 3) for k in (1, 2, 3, 60)]
        [0.369, 0.131, 0.069, 0.001]
    """
    return 1 / log2(k + 1) - 1 / log2(k + 2)


def bets_against(mean: float) -> "NDArray[np.float64]":
    """Return the bets: 1/4, 1/2, 1 and so on below 1 / (1 - mean). The best is drop / (variance + drop squared).

    Example:
        >>> bets_against(0.75)
        array([0.25, 0.5 , 1.  , 2.  ])
    """
    largest = 1 / (1 - mean)
    powers = _SMALLEST * 2.0 ** np.arange(64, dtype=np.float64)
    return powers[powers < largest]


def bet(
    stakes: "NDArray[np.float64]", bets: "NDArray[np.float64]", mean: float, samples: int, score: "NDArray[np.float64]"
) -> "NDArray[np.float64]":
    """Return the stakes after one more score.

    Args:
        stakes: What each bet holds; zeros before the first score. The last axis is that of the bets.
        bets: Those of `bets_against(mean)`.
        mean: The mean that is doubted, between 0 and 1.
        samples: How many scores came before.
        score: The score, from 0 to 1; of several streams at once, one each with a last axis of length 1.

    Example:
        >>> import numpy as np
        >>> bet(np.zeros(4), bets_against(0.75), 0.75, 0, np.asarray(0.25)).round(3)
        array([0.104, 0.115, 0.138, 0.185])
    """
    fresh = share(samples // _BETWEEN + 1) / len(bets) if samples % _BETWEEN == 0 else 0.0
    return (stakes + fresh) * (1 + bets * (mean - score))


def evidence(stakes: "NDArray[np.float64]", samples: int) -> "NDArray[np.float64]":
    """Return all stakes together, with what is not placed yet, after so many samples: 1 / alpha is an alarm."""
    together: NDArray[np.float64] = np.sum(stakes, axis=-1)
    return together + 1 / log2((samples - 1) // _BETWEEN + 3)
