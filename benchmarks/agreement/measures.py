"""How well numbers agree with labels, with bootstrap intervals. Pure functions of numbers.

Each statistic makes a `Measure`: what it is of any choice of its units (pairs, rows, documents), so that one bootstrap
serves all. What is drawn is drawn from a fixed seed.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

RESAMPLES = 2_000
_SEED = 20_261_121
_LEAST_DRAWS = 0.5  # share of the draws for which a statistic has to be defined, for an interval to be given


@dataclass(frozen=True, slots=True)
class Measure:
    """A statistic of rows that come in units, which are drawn as a whole.

    Attributes:
        units: How many there are.
        of: The statistic of the units of these numbers, one that stands twice counting twice; NaN if undefined.
        each: The statistic of each unit (NaN if undefined) where it is a mean over units; None where it is not.
        trials: Of how many independent trials it is a share, where its interval is Wilson's, not the bootstrap's.
    """

    units: int
    of: Callable[[Places], float]
    each: Numbers | None = None
    trials: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic and its 95 % interval.

    Attributes:
        value: The statistic.
        low: Lower end of its interval; None where there is none.
        high: Upper end.
        units: How many pairs, rows or documents it rests on; those where it is undefined not counted.
    """

    value: float
    low: float | None
    high: float | None
    units: int


def estimate(measure: Measure) -> Estimate | None:
    """Return the statistic with the percentile bootstrap interval over its units; None where it is undefined.

    Example:
        >>> half = estimate(mean([0.0, 1.0] * 50))
        >>> half.value, round(half.low, 1), round(half.high, 1)
        (0.5, 0.4, 0.6)
    """
    if not measure.units:
        return None
    value = measure.of(np.arange(measure.units))
    if measure.trials and not np.isnan(value):
        return Estimate(value, *wilson(value, measure.trials), measure.units)
    return _estimate(value, measure.of, measure)


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, which is one also where all trials went the same way.

    Example:
        >>> [round(end, 3) for end in wilson(1.0, 25)]
        [0.867, 1.0]
    """
    z2 = 1.959964**2 / trials
    half = float(np.sqrt(share * (1.0 - share) * z2 + z2 * z2 / 4))
    return max(0.0, (share + z2 / 2 - half) / (1 + z2)), min(1.0, (share + z2 / 2 + half) / (1 + z2))


def difference(one: Measure, other: Measure) -> Estimate | None:
    """Return one statistic minus the other, of the same units, drawn together; None where it is undefined.

    Means over units are compared on the units where both are defined.

    Raises:
        ValueError: They have not as many units.

    Example:
        >>> difference(mean([1.0, 1.0, 0.0]), mean([1.0, 0.0, float("nan")])).value
        0.5
    """
    if one.units != other.units:
        raise ValueError(f"{one.units} units cannot be compared with {other.units}")
    if not one.units:
        return None
    if one.each is not None and other.each is not None:
        return estimate(mean(one.each - other.each))

    def of(drawn: Places) -> float:
        return one.of(drawn) - other.of(drawn)

    return _estimate(of(np.arange(one.units)), of, one)


def _estimate(value: float, of: Callable[[Places], float], measure: Measure) -> Estimate | None:
    if np.isnan(value):
        return None
    units = measure.units if measure.each is None else int(np.isfinite(measure.each).sum())
    if units < 2:
        return Estimate(value, None, None, units)
    rng = np.random.default_rng(_SEED)
    places = rng.integers(0, measure.units, (RESAMPLES, measure.units))
    drawn = np.array([of(each) for each in places]) if measure.each is None else _means(measure.each[places])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < _LEAST_DRAWS * RESAMPLES:
        return Estimate(value, None, None, units)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(value, float(low), float(high), units)


def _means(values: Numbers) -> Numbers:
    """Return the mean of each row's numbers, NaN left out; NaN where it has no other."""
    defined = ~np.isnan(values)
    counts = defined.sum(axis=1)
    sums = np.where(defined, values, 0.0).sum(axis=1)
    means: Numbers = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means


def mean(each: Sequence[float] | Numbers, *, share: bool = False) -> Measure:
    """Return the mean over units, those that are NaN left out; `share`: it is one, of units that each are a trial."""
    values = np.asarray(each, dtype=np.float64)
    trials = len(values) if share else None

    return Measure(len(values), lambda drawn: float(_means(values[None, drawn])[0]), values, trials)


def pairwise(values: Sequence[float], targets: Sequence[float], groups: Sequence[str | None]) -> Measure:
    """Return the share of pairs in which the row of target 1 has the higher value; equal ones count 1/2.

    A pair of which one row has no value is left out. Units: pairs.

    Example:
        >>> estimate(pairwise([0.9, 0.1, 0.5, 0.5], [1, 0, 1, 0], ["a", "a", "b", "b"])).value
        0.75
    """
    won: list[float] = []
    for rows in _grouped(groups):
        good = [values[i] for i in rows if targets[i] == 1]
        bad = [values[i] for i in rows if targets[i] == 0]
        if good and bad:
            won.append(0.5 * (1.0 + float(np.sign(good[0] - bad[0]))))
    return mean(won, share=True)


def accuracy(values: Sequence[float], targets: Sequence[float], groups: Sequence[str | None]) -> Measure:
    """Return the share of rows whose value reaches .5 just where the target is 1. Units: documents, else rows."""
    right = ((np.asarray(values) >= 0.5) == (np.asarray(targets) == 1)).astype(np.float64)
    if not any(groups):
        return mean(right, share=True)
    rows = _rows_of(groups)
    return Measure(len(rows), lambda drawn: float(right[_joined(rows, drawn)].mean()))


def auroc(values: Sequence[float], targets: Sequence[float], groups: Sequence[str | None]) -> Measure:
    """Return the chance that a row of target 1 has a higher value than one of target 0; ties 1/2.

    Units: documents, else rows. Where all are in order, a bootstrap would see no doubt: the interval is that of a share
    of as many trials as the rarer label has units.

    Example:
        >>> estimate(auroc([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1], [None] * 4)).value
        0.875
    """
    scores, labels = np.asarray(values, dtype=np.float64), np.asarray(targets, dtype=np.float64) == 1
    rows = _rows_of(groups)
    rarer = min(sum(bool((labels[each] == one).any()) for each in rows) for one in (True, False))
    return Measure(
        len(rows),
        lambda drawn: _auc(scores[_joined(rows, drawn)], labels[_joined(rows, drawn)]),
        trials=rarer if _auc(scores, labels) in (0.0, 1.0) else None,
    )


def sentence_auroc(values: Sequence[Sequence[float]], targets: Sequence[Sequence[bool]]) -> Measure:
    """Return the same over all sentences of all rows. Units: rows, as sentences of one row go together."""
    scores: list[Numbers] = [np.asarray(each, dtype=np.float64) for each in values]
    labels: list[NDArray[np.bool_]] = [np.asarray(each, dtype=np.bool_) for each in targets]

    def of(drawn: Places) -> float:
        chosen: list[int] = drawn.tolist()
        return _auc(np.concatenate([scores[i] for i in chosen]), np.concatenate([labels[i] for i in chosen]))

    return Measure(len(scores), of)


def within(values: Sequence[float], targets: Sequence[float], groups: Sequence[str | None]) -> Measure:
    """Return Spearman's rho within each document, averaged over documents in which labels vary. Units: documents.

    Values that are all equal there order nothing that people told apart: 0, or saying little would be rewarded.

    Example:
        >>> round(estimate(within([1, 2, 3, 1, 2], [0.1, 0.3, 0.2, 1, 0], ["a", "a", "a", "b", "b"])).value, 2)
        -0.25
        >>> estimate(within([1, 2, 5, 5], [0, 1, 0, 1], ["a", "a", "b", "b"])).value
        0.5
    """

    def rho(rows: Sequence[int]) -> float:
        own, labels = [values[i] for i in rows], [targets[i] for i in rows]
        return 0.0 if len(set(own)) == 1 and len(set(labels)) > 1 else spearman(own, labels)

    return mean([rho(rows) for rows in _grouped(groups)])


def pooled(values: Sequence[float], targets: Sequence[float], groups: Sequence[str | None]) -> Measure:
    """Return Spearman's rho over all rows. Units: documents, as rows of one go together; rows where there are none."""
    scores, labels = np.asarray(values, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    rows = _rows_of(groups)

    def of(drawn: Places) -> float:
        chosen = _joined(rows, drawn)
        return spearman(scores[chosen], labels[chosen])

    return Measure(len(rows), of)


def sentence_f1(chosen: Set[object], relevant: Set[object]) -> float:
    """Return F1 of a row's chosen sentences; where none is relevant, 1 if none is chosen, else 0.

    Example:
        >>> sentence_f1(frozenset({(0, 0), (0, 1)}), frozenset({(0, 1)}))
        0.6666666666666666
        >>> sentence_f1(frozenset(), frozenset()), sentence_f1(frozenset({(0, 0)}), frozenset())
        (1.0, 0.0)
    """
    if not relevant:
        return float(not chosen)
    return 2 * len(chosen & relevant) / (len(chosen) + len(relevant))


def sentence_precision(chosen: Set[object], relevant: Set[object]) -> float:
    """Return the share of the chosen sentences that are relevant; NaN where none is chosen."""
    return len(chosen & relevant) / len(chosen) if chosen else float("nan")


def sentence_recall(chosen: Set[object], relevant: Set[object]) -> float:
    """Return the share of the relevant sentences that are chosen; NaN where none is relevant."""
    return len(chosen & relevant) / len(relevant) if relevant else float("nan")


def absolute_error(values: Sequence[float], targets: Sequence[float]) -> Measure:
    """Return the mean absolute difference (lower is better). Units: rows."""
    return mean(np.abs(np.asarray(values, dtype=np.float64) - np.asarray(targets, dtype=np.float64)))


def spearman(values: Sequence[float] | Numbers, targets: Sequence[float] | Numbers) -> float:
    """Return Spearman's rank correlation, ties by their mean rank; NaN where one of the two does not vary.

    Example:
        >>> spearman([1, 2, 3], [1, 3, 2]), spearman([1, 1], [1, 2])
        (0.5, nan)
    """
    one, other = (ranks(np.asarray(each, dtype=np.float64)) for each in (values, targets))
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size else float("nan")


def ranks(values: Numbers) -> Numbers:
    """Return ranks from 1, equal values having the mean of theirs.

    Example:
        >>> ranks(np.array([5.0, 1.0, 5.0]))
        array([2.5, 1. , 2.5])
    """
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_ranks: Numbers = (last - (counts - 1) / 2)[at]
    return mean_ranks


def _auc(values: Numbers, labels: NDArray[np.bool_]) -> float:
    ones = int(labels.sum())
    zeros = len(labels) - ones
    if not ones or not zeros:
        return float("nan")
    return float((ranks(values)[labels].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _rows_of(groups: Sequence[str | None]) -> list[Places]:
    return [np.array(each, dtype=np.int64) for each in _grouped(groups)]


def _joined(rows: Sequence[Places], drawn: Places) -> Places:
    units: list[int] = drawn.tolist()
    chosen: Places = np.concatenate([rows[i] for i in units])
    return chosen


def _grouped(groups: Sequence[str | None]) -> Iterator[list[int]]:
    """Yield the rows of each group; rows without a group are one each."""
    rows: dict[object, list[int]] = {}
    for i, group in enumerate(groups):
        rows.setdefault(i if group is None else group, []).append(i)
    yield from rows.values()
