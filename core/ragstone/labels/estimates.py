"""What people would say on average, from a judge's scores of all samples and people's labels of some.

The judge's mean over all samples is corrected by how far it is off where there are labels (prediction-powered
inference: Angelopoulos et al. 2023, "PPI++", arXiv 2311.01453). Intervals have the small-sample corrections that the
page "Estimators" explains.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ragstone.labels.fit import load_extra

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.float64]
    Places = NDArray[np.int64]

LEAST_LABELS = 20
"""With fewer labels there is no corrected mean."""
LEAST_UNTIED = 5
"""With fewer labelled pairs that differ, no system is better; beside most labels, a side with fewer counts as rare."""
_NOTHING = 1e-12  # what rounding leaves
_SAME = 1e-6  # labels no further apart are the same
_TIE = 0.5  # of two systems, on the scale from 0 to 1
_DRAWS = 4_000  # of the posterior of yes/no verdicts
_SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated mean with its confidence interval.

    Attributes:
        mean: The estimate.
        low: The interval's lower end.
        high: Its upper end.
        method: How it was computed, in words.
        labels_worth: How many labels without a judge would give an interval as narrow: n x (width of labels alone /
            width)^2; n where the judge adds nothing. Alone, yes/no labels have Wilson's interval, and others the same
            as with a judge who says nothing.
    """

    mean: float
    low: float
    high: float
    method: str
    labels_worth: float


def corrected_mean(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    *,
    weights: "ArrayLike | None" = None,
    weights_rest: "ArrayLike | None" = None,
    strata: Sequence[object] | None = None,
    strata_rest: Sequence[object] | None = None,
    groups: Sequence[object] | None = None,
    groups_rest: Sequence[object] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean that people would give, with an interval that holds it.

        mean = mean(people) + b (mean(all judge's scores) - mean(judge))

    `b` is the slope of people's scores on the judge's where both are known, so that the judge's scale makes no
    difference. The data decide how the interval is computed, and `Estimate.method` says it:

    - Labels and judge both yes/no: post-stratified by the judge's verdict, with Jeffreys' posteriors.
    - Otherwise: PPI++, cross-fitted, with half a label more at each end of the scale as far as the labels are like
      yes/no, Student's t, and a correction for skew. Where most labels are one value and fewer than 5 are on one side
      of it, the interval goes as far to that side as Clopper and Pearson's of the labels alone.
    - The labels alone, where the judge agrees with them no more than chance would (correlation below 2 / sqrt(n)) or
      gives one score to all, or where they are in one stratum of several. Yes/no then has Wilson's interval.

    Args:
        people: The labels of n samples, each within [0, 1].
        judge: The judge's scores of the same samples, in the same order. Higher is better.
        judge_rest: Its scores of the other samples.
        weights: 1 / the chance that the sample came to be labelled; None: all chances are equal.
        weights_rest: 1 / the chance that the other sample came to be here; None: labelled and other samples together
            are all there is.
        strata: The stratum that each labelled sample was drawn from, where the draw was stratified.
        strata_rest: That of each other sample.
        groups: The group of each labelled sample, where whole groups were drawn.
        groups_rest: That of each other sample; None: each is a group of its own.
        level: Of confidence, within (0, 1).

    Raises:
        ValueError: An array is not of finite numbers in range, lengths differ, or there are fewer than 20 labels; the
            message names it.
        ImportError: scipy is not installed.

    Example:
        >>> people, judge = [1, 1, 0, 1, 0] * 6, [1, 1, 1, 1, 0] * 6
        >>> estimate = corrected_mean(people, judge, [1, 1, 1, 0] * 50)
        >>> round(estimate.mean, 2), estimate.method
        (0.58, "post-stratified by the judge's verdict (yes/no labels)")
    """
    data = _checked(people, judge, judge_rest, weights, weights_rest, (strata, strata_rest), (groups, groups_rest), 0.0)
    return _estimate(data, level, difference=False)


def corrected_difference(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    *,
    weights: "ArrayLike | None" = None,
    weights_rest: "ArrayLike | None" = None,
    strata: Sequence[object] | None = None,
    strata_rest: Sequence[object] | None = None,
    groups: Sequence[object] | None = None,
    groups_rest: Sequence[object] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean of the differences b - a that people would give, from samples that two systems answered.

    As `corrected_mean`. With fewer than 5 labelled pairs that differ, the interval holds 0.

    Args:
        people: Of each pair with labels, what people gave b minus what they gave a, within [-1, 1].
        judge: The judge's difference of the same pairs.
        judge_rest: Its difference of the other pairs.
        weights: As for `corrected_mean`, here and below.
        weights_rest: Likewise.
        strata: Likewise.
        strata_rest: Likewise.
        groups: Likewise.
        groups_rest: Likewise.
        level: Likewise.

    Raises:
        ValueError: As for `corrected_mean`.
        ImportError: scipy is not installed.

    Example:
        >>> estimate = corrected_difference([0, 0, 1, 0, -1, 1] * 5, [0, 1, 1, 0, 0, 1] * 5, [0, 1, 0] * 40)
        >>> round(estimate.mean, 2)
        0.03
    """
    data = _checked(
        people, judge, judge_rest, weights, weights_rest, (strata, strata_rest), (groups, groups_rest), -1.0
    )
    estimate = _estimate(data, level, difference=True)
    low, mean, high = (2.0 * value - 1.0 for value in (estimate.low, estimate.mean, estimate.high))
    return Estimate(mean, low, high, estimate.method, estimate.labels_worth)


@dataclass(frozen=True)
class _Data:
    """Labelled units (samples or groups) and all units. Labels are from 0 to 1, and so is the judge's range."""

    y: "Numbers"
    f: "Numbers"
    w: "Numbers"  # of labelled units, with mean 1
    f_all: "Numbers"
    w_all: "Numbers"  # with mean 1
    stratum: "Places"  # of each labelled unit
    labels: int
    covered: float  # the share of all that is in strata with labels
    notes: tuple[str, ...]

    @property
    def n(self) -> float:
        """How many units of equal weight would say as much."""
        return float(self.w.sum() ** 2 / (self.w**2).sum())


def _estimate(data: _Data, level: float, *, difference: bool) -> Estimate:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: {level:g} is not between 0 and 1")
    load_extra("scipy.special", "a corrected mean")
    tail = 0.5 + level / 2.0
    yes_no = bool(np.isin(data.y, (0.0, 1.0)).all())
    values = len(np.unique(data.f_all))
    notes = list(data.notes)
    alone = _why_alone(data, values)
    if data.covered == 1.0 and yes_no and values == 2 and not data.notes:
        mean, low, high = _by_verdict(data, tail)
        method = "post-stratified by the judge's verdict (yes/no labels)"
    else:
        # A line says nothing beyond the scores that it was fitted to.
        data = replace(data, f_all=np.minimum(np.maximum(data.f_all, data.f.min()), data.f.max()))
        method = f"labels alone: {alone}" if alone else f"PPI++ ({'yes/no' if yes_no else 'graded'} labels)"
        mean, low, high = _by_residuals(data, tail, yes_no=yes_no, difference=difference, alone=bool(alone))
        if data.covered < 1.0:  # whatever the others are, within the scale
            low, high = data.covered * low, data.covered * high + 1.0 - data.covered
    worth = 1.0
    if not alone and high > low:
        _, *ends = _by_residuals(data, tail, yes_no=yes_no, difference=difference, alone=True)
        worth = max(1.0, ((ends[1] - ends[0]) / (high - low)) ** 2)
    if difference and (data.y != _TIE).sum() < LEAST_UNTIED:
        low, high, worth = min(low, _TIE), max(high, _TIE), 1.0
        notes.append(f"fewer than {LEAST_UNTIED} labelled pairs differ")
    return Estimate(mean, low, high, ", ".join((method, *notes)), worth * data.labels)


def _why_alone(data: _Data, values: int) -> str:
    """Return why the judge's scores are of no use, if they are."""
    if data.covered < 1.0:
        return "they are in one stratum, and say nothing of the others"
    if values == 1:
        return "the judge gives one score to all"
    yy, ff, yf = _sums(data)
    if yf <= _NOTHING or yf * yf * data.n < 4.0 * yy * ff:
        return "the judge agrees with them no more than chance would"
    return ""


def _by_verdict(data: _Data, tail: float) -> tuple[float, float, float]:
    """Yes/no labels and verdicts: q P(people yes | judge yes) + (1 - q) P(people yes | judge no), each Beta."""
    judged = data.f == 1.0
    counts = [(float((data.f_all == 1.0).sum()), len(data.f_all))]
    counts += [(float(data.y[of].sum()), int(of.sum())) for of in (judged, ~judged)]
    rng = np.random.default_rng(_SEED)
    q, a, b = (rng.beta(k + 0.5, n - k + 0.5, _DRAWS) for k, n in counts)
    q_mean, a_mean, b_mean = ((k + 0.5) / (n + 1.0) for k, n in counts)
    low, high = np.quantile(q * a + (1.0 - q) * b, (1.0 - tail, tail))
    return q_mean * a_mean + (1.0 - q_mean) * b_mean, float(low), float(high)


def _sums(data: _Data) -> tuple[float, float, float]:
    """Return the weighted sums of squares and products of labels and judge, within strata."""
    means = _stratum_means(data)
    dy, df = data.y - means(data.y), data.f - means(data.f)
    yy, ff, yf = (float((data.w * each).sum()) for each in (dy * dy, df * df, dy * df))
    return yy, ff, yf


def _ppi_mean(data: _Data, slope: float) -> float:
    """Return the labels' mean, moved by how the judge's mean over all differs from its mean over the labels."""
    labels, judge = (float((data.w * values).mean()) for values in (data.y, data.f))
    return labels + slope * (float((data.w_all * data.f_all).mean()) - judge)


def _by_residuals(
    data: _Data, tail: float, *, yes_no: bool, difference: bool, alone: bool
) -> tuple[float, float, float]:
    """PPI++ on units, with what a few labels may hide. The page "Estimators" has the formulas and the tables."""
    special = load_extra("scipy.special", "a corrected mean")
    z, t = float(special.ndtri(tail)), float(special.stdtrit(max(1.0, data.n - 1.0), tail))
    if alone and yes_no and not difference:
        mean = min(1.0, float((data.w * data.y).mean()))
        return mean, *_wilson(mean, data.n, z)
    y, w, n = data.y, data.w, data.n
    means = _stratum_means(data)
    y_mean = float((w * y).mean())
    yy, ff, yf = _sums(data)
    slope = 0.0 if alone else yf / ff
    off = data.f - means(data.f)
    residual = y - means(y) - slope * off
    left = min(1.0, float((w * residual**2).sum()) / yy + 1.0 / n) if yy > _NOTHING else 1.0  # unexplained share
    if not alone:  # each from the line that the others give
        residual = residual / (1.0 - w * off**2 / ff)
    extra = _extra_labels(data, yy / len(y), y_mean, difference=difference)
    rare = 0.5 * _crowded(_most_common(y)[-1] if alone else _on_a_line(data), n, 10.0)
    if yes_no:  # half a residual more at each end: 0 where the line is highest, 1 where it is lowest
        extra, rare, shift_share, skew_share, quantile = 0.5, 0.0, 1.0, 0.3, z
        f_mean = float((w * data.f).mean())
        line = y_mean + slope * (np.array([1.0, 0.0]) - f_mean)
        ends = np.array([0.0, 1.0]) - np.minimum(np.maximum(line, 0.0), 1.0)
    else:
        shift_share, skew_share, quantile = left, 0.5, t
        ends = np.array([-y_mean, 1.0 - y_mean]) * math.sqrt(left)
    size = n + 2.0 * extra
    shift = extra * float(ends.sum()) / size * shift_share
    scale = n / len(y) * w
    squares = float(((scale * (residual - shift)) ** 2).sum()) + extra * float(((ends - shift) ** 2).sum())
    cubes = float(((scale * (residual - shift)) ** 3).sum()) + extra * float(((ends - shift) ** 3).sum())
    squares += 6.0 * rare * yy / max(1.0, len(y) - 1.0)
    size += 2.0 * rare
    freedom = max(1.0, (size if yes_no else n - 1.0) - int(data.stratum.max()))
    of_residuals = squares / size / freedom
    w_all, f_all = data.w_all, data.f_all
    off_mean = f_all - float((w_all * f_all).mean())
    of_all = float((w_all**2 * off_mean**2).sum()) / len(f_all) / max(1, len(f_all) - 1)
    variance = of_residuals + slope**2 * of_all
    mean = _ppi_mean(data, slope) + shift
    half = quantile * math.sqrt(variance)
    lean = 0.0
    if squares > _NOTHING:
        skew = cubes / size / (squares / size) ** 1.5
        lean = skew_share * skew * math.sqrt(of_residuals) * (2 * z * z + 1) / 6 / math.sqrt(n)
        lean *= of_residuals / variance
    low, high = mean - half + lean, mean + half + lean
    if not yes_no or difference:
        below, above = _reach(data, tail)
        low, high = min(low, min(mean, y_mean) - below), max(high, max(mean, y_mean) + above)
    low, high = (min(1.0, max(0.0, end)) for end in (low, high))
    return min(high, max(low, mean)), low, high


def _reach(data: _Data, tail: float) -> tuple[float, float]:
    """Return how far the interval goes down and up at least, where most labels are one value and few are beside it.

    As far as Clopper and Pearson's interval goes for the share of labels on that side, each as far off as any is.
    """
    inverse = load_extra("scipy.special", "a corrected mean").betaincinv
    least, value, most, share = _most_common(data.y)
    farthest = max(value - least, most - value) if most > least else 1.0

    def reach(beside: "Numbers", end: float) -> float:
        k = data.n * float((data.w * (beside > _SAME)).mean())
        if share <= 0.5 or k >= LEAST_UNTIED:
            return 0.0
        return min(end, farthest) * (float(inverse(k + 1.0, data.n - k, tail)) - k / data.n)

    return reach(value - data.y, value), reach(data.y - value, 1.0 - value)


def _extra_labels(data: _Data, variance: float, mean: float, *, difference: bool) -> float:
    """Return how many labels more at each end graded labels need, from 0 to a half.

    As far as the labels vary as yes/no would, or most of them are the same.
    """
    n = data.n
    alike = variance * n / max(1.0, n - 1.0) / max(mean * (1.0 - mean), 1e-12)
    least, value, most, share = _most_common(data.y)
    open_ends = difference or least < value < most  # others may be on both sides
    crowded = _crowded(share, n, 1.5 if open_ends else 10.0)
    return 0.5 * max(float(min(1.0, alike) ** 1.5), crowded)


def _on_a_line(data: _Data) -> float:
    """Return the share of labels that are on one line with the judge's scores."""
    order = np.lexsort((data.y, data.f))
    y, f = data.y[order], data.f[order]
    half = len(y) // 2
    dy, df = y[half:] - y[:-half], f[half:] - f[:-half]
    slopes = dy[df > _SAME] / df[df > _SAME]
    if len(slopes) == 0:
        return _most_common(y)[-1]
    same = np.abs(slopes - _most_common(slopes)[1]) <= _SAME
    return _most_common(y - float(np.median(slopes[same])) * f)[-1]


def _crowded(share: float, n: float, enough: float) -> float:
    """Return how far a share of equal values hides others: from 0 (half) to 1 (7 in 10), less where enough show."""
    return min(1.0, max(0.0, (share - 0.5) / 0.2)) * min(1.0, enough / max(n * (1.0 - share), 1e-9))


def _most_common(values: "Numbers") -> tuple[float, float, float, float]:
    """Return the least, the most common and the greatest value, and the share of the most common."""
    distinct, counts = np.unique(np.round(values, 6), return_counts=True)
    return float(distinct[0]), float(distinct[counts.argmax()]), float(distinct[-1]), float(counts.max()) / len(values)


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z * math.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)) / (1.0 + z * z / n)
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))  # rounding


def _stratum_means(data: _Data) -> "Callable[[Numbers], Numbers]":
    """Return what gives each labelled unit the mean of its stratum."""
    weights = np.bincount(data.stratum, weights=data.w)
    return lambda values: np.asarray((np.bincount(data.stratum, weights=data.w * values) / weights)[data.stratum])


def _checked(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    weights: "ArrayLike | None",
    weights_rest: "ArrayLike | None",
    strata: tuple[Sequence[object] | None, Sequence[object] | None],
    groups: tuple[Sequence[object] | None, Sequence[object] | None],
    least: float,
) -> _Data:
    """Return the arguments as units, on the scale from 0 to 1; refuse what they cannot be."""
    y, f, rest = (
        _numbers(name, each) for name, each in (("people", people), ("judge", judge), ("judge_rest", judge_rest))
    )
    n = len(y)
    if n and not (y.min() >= least and y.max() <= 1.0):
        worst = y[np.argmax(np.abs(y - (least + 1.0) / 2.0))]
        raise ValueError(f"people: {worst:g} is not from {least:g} to 1")
    if n < LEAST_LABELS:
        raise ValueError(f"people: {n} labels; a corrected mean needs {LEAST_LABELS} or more")
    w = _weights("weights", weights, n)
    w_rest = _weights("weights_rest", weights_rest, len(rest))
    if weights_rest is not None and weights is None:
        raise ValueError("weights: is None, and weights_rest is not; pass both")
    for name, values, size in (
        ("judge", f, n),
        ("strata", strata[0], n),
        ("groups", groups[0], n),
        ("strata_rest", strata[1], len(rest)),
        ("groups_rest", groups[1], len(rest)),
    ):
        if values is not None and len(values) != size:
            raise ValueError(f"{name}: has {len(values)} values for {size} samples")
    for name, (labelled, of_rest) in (("strata", strata), ("groups", groups)):
        if labelled is None and of_rest is not None:
            raise ValueError(f"{name}: is None, and {name}_rest is not; pass both")
    # Where chances of the others are given, both parts stand for all; otherwise they are all there is.
    w_union = np.concatenate(
        [w / w.mean() * (w_rest.mean() if len(rest) else 1.0) if weights_rest is not None else np.ones(n), w_rest]
    )
    scale = 1.0 - least
    y, f_all = (y - least) / scale, np.concatenate([f, rest])
    f_all = (f_all - f_all.min()) / (float(np.ptp(f_all)) or 1.0)  # whatever the judge's scale is
    stratum, w, covered = _stratified(strata, w, w_union, n)
    notes = [
        note
        for note, argument in (("weighted", weights), ("stratified", strata[0]), ("by group", groups[0]))
        if argument is not None
    ]
    units = np.arange(len(f_all))
    if groups[0] is not None:
        others = groups[1] if groups[1] is not None else [(i,) for i in range(len(rest))]
        places = {group: place for place, group in enumerate(dict.fromkeys((*groups[0], *others)))}
        units = np.array([places[group] for group in (*groups[0], *others)], np.int64)
    of_all, w_all = _by_unit(units, f_all, w_union)
    mine = np.unique(units[:n], return_inverse=True)[1]
    (y, unit_w), (f, _) = _by_unit(mine, y, w), _by_unit(mine, f_all[:n], w)
    first = np.full(len(y), n)
    np.minimum.at(first, mine, stratum)  # of a group in several strata, one of them
    stratum = np.unique(first, return_inverse=True)[1]
    return _Data(y, f, unit_w / unit_w.mean(), of_all, w_all / w_all.mean(), stratum, n, covered, tuple(notes))


def _numbers(name: str, values: "ArrayLike") -> "Numbers":
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: is not an array of numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"{name}: pass one finite number for each sample")
    return numbers


def _weights(name: str, values: "ArrayLike | None", n: int) -> "Numbers":
    if values is None:
        return np.ones(n)
    weights = _numbers(name, values)
    if len(weights) != n or (weights <= 0.0).any():
        raise ValueError(f"{name}: pass 1 / chance for each of the {n} samples, greater than 0")
    return weights


def _stratified(
    strata: tuple[Sequence[object] | None, Sequence[object] | None], w: "Numbers", w_union: "Numbers", n: int
) -> tuple["Places", "Numbers", float]:
    """Return each labelled sample's stratum and weight, so that strata count by their size, and the share covered.

    Strata with fewer than two labels are joined with the smallest of the others.
    """
    mine, others = strata
    if mine is None:
        return np.zeros(n, np.int64), w, 1.0
    names = [*mine, *(others or ())]
    places = {name: place for place, name in enumerate(sorted(set(names), key=str))}
    of = np.array([places[name] for name in names], np.int64)
    size = np.bincount(of, weights=w_union[: len(of)])
    counts = np.bincount(of[:n], minlength=len(places))
    if (counts > 0).sum() == 1 < len(places):
        return np.zeros(n, np.int64), w, float(size[counts > 0].sum() / size.sum())
    few = counts < 2
    if few.any() and not few.all():
        few[np.where(few, n + 1, counts).argmin()] = True
        of[few[of]] = int(np.flatnonzero(few)[0])
        size = np.bincount(of, weights=w_union[: len(of)])
    inside = np.bincount(of[:n], weights=w, minlength=len(size))
    return of[:n], w * (size / np.where(inside > 0.0, inside, 1.0))[of[:n]], 1.0


def _by_unit(units: "Places", values: "Numbers", weights: "Numbers") -> tuple["Numbers", "Numbers"]:
    """Return each unit's mean and weight."""
    total = np.asarray(np.bincount(units, weights=weights), np.float64)
    return np.bincount(units, weights=weights * values) / total, total
