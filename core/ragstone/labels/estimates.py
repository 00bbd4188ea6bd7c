"""What people would say on average, from a judge's scores of all samples and people's labels of some.

The judge's mean over all samples is corrected by how far it is off where there are labels (prediction-powered
inference: Angelopoulos et al. 2023, "PPI++", arXiv 2311.01453). Intervals have the small-sample corrections that the
page "Estimators" explains.
"""

import importlib
import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ragstone.report.statistics import LEAST_GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ragstone.report.statistics import Numbers

LEAST_LABELS = 20
"""With fewer labels there is no corrected mean."""
LEAST_UNTIED = 5
"""With fewer labelled pairs that differ, no system is better; beside most labels, a side with fewer counts as rare."""
# Rounding leaves no more.
_NOTHING = 1e-12
# Labels no further apart are the same.
_SAME = 1e-6
# A tie of two systems, on the scale from 0 to 1.
_TIE = 0.5
# How often the posterior of yes/no verdicts is drawn from.
_DRAWS = 4_000
_SEED = 20_260_101
_Parts = tuple[float, float]
"""A variance in two parts: one falls with the number of labels, one is what the judge's scores leave."""


@dataclass(frozen=True, slots=True)
class CorrectedEstimate:
    """An estimated mean with its confidence interval.

    Attributes:
        mean: The estimate.
        low: The interval's lower end.
        high: Its upper end.
        method: How it was computed, in words.
        labels_worth: How many labels without a judge would give an interval as narrow: n x (width of labels alone /
            width)^2; n where the judge adds nothing. Alone, yes/no labels have Wilson's interval, and others the same
            as with a judge who says nothing.
        labels_to_halve: How many more labels would halve the interval: n v / ((v + w) / 4 - w) - n, where v is the part
            of the variance that falls with the number n of labels, and w the part that the judge's scores of all
            samples leave. None where no number of labels would, and of groups: there only more groups would.
    """

    mean: float
    low: float
    high: float
    method: str
    labels_worth: float
    labels_to_halve: int | None = None


def corrected_mean(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    *,
    level: float = 0.95,
    group: "Sequence[object] | None" = None,
) -> CorrectedEstimate:
    """The mean that people would give, with an interval that holds it.

        mean = mean(people) + b (mean(all judge's scores) - mean(judge))

    `b` is the slope of people's scores on the judge's where both are known, so that the judge's scale makes no
    difference. The data decide how the interval is computed, and `CorrectedEstimate.method` says it:

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
        level: Of confidence, within (0, 1).
        group: The group of each sample (its document, its conversation), first with labels, then without; None is a
            group of its own. The interval is then of groups: as many times as wide as the error's
            groups vary more than its samples would, and at least so wide that what no labelled group shows is within it
            where the judge does not explain the labels.

    Raises:
        ValueError: An array is not of finite numbers in range, lengths differ, there are fewer than 20 labels, or
            fewer than 5 groups have some; the message names it.
        ImportError: scipy is not installed (the extra `labels`).

    Example:
        >>> people, judge = [1, 1, 0, 1, 0] * 6, [1, 1, 1, 1, 0] * 6
        >>> estimate = corrected_mean(people, judge, [1, 1, 1, 0] * 50)
        >>> round(estimate.mean, 2), estimate.method
        (0.58, "post-stratified by the judge's verdict (yes/no labels)")
    """
    data = _scaled_data(people, judge, judge_rest, group, 0.0)
    return _estimate(data, level, difference=False)


def corrected_difference(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    *,
    level: float = 0.95,
    group: "Sequence[object] | None" = None,
) -> CorrectedEstimate:
    """The mean of the differences b - a that people would give, from samples that two systems answered.

    As `corrected_mean`. With fewer than 5 labelled pairs that differ, the interval holds 0.

    Args:
        people: People's score of b minus that of a, for each labelled pair, within [-1, 1].
        judge: The judge's difference of the same pairs.
        judge_rest: Its difference of the other pairs.
        level: As for `corrected_mean`.
        group: The group of each pair, likewise.

    Raises:
        ValueError: As for `corrected_mean`.
        ImportError: scipy is not installed (the extra `labels`).

    Example:
        >>> estimate = corrected_difference([0, 0, 1, 0, -1, 1] * 5, [0, 1, 1, 0, 0, 1] * 5, [0, 1, 0] * 40)
        >>> round(estimate.mean, 2)
        0.03
    """
    data = _scaled_data(people, judge, judge_rest, group, -1.0)
    estimate = _estimate(data, level, difference=True)
    low, mean, high = (2.0 * value - 1.0 for value in (estimate.low, estimate.mean, estimate.high))
    return replace(estimate, mean=mean, low=low, high=high)


@dataclass(frozen=True)
class _Data:
    """Labelled samples and all samples. Labels are from 0 to 1, and so is the judge's range."""

    y: "Numbers"
    f: "Numbers"
    f_all: "Numbers"
    member: "NDArray[np.int64]"

    @property
    def n(self) -> int:
        """How many samples have labels."""
        return len(self.y)


def load_scipy(name: str) -> ModuleType:
    """Import a module of scipy, without which there is no corrected mean."""
    try:
        return importlib.import_module(f"scipy.{name}")
    except ImportError as error:
        message = f'a corrected mean needs scipy: pip install "ragstone[labels]" ({error})'
        raise ImportError(message, name="scipy") from error


def _estimate(data: _Data, level: float, *, difference: bool) -> CorrectedEstimate:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: {level:g} is not between 0 and 1")
    load_scipy("special")
    tail = 0.5 + level / 2.0
    yes_no = bool(np.isin(data.y, (0.0, 1.0)).all())
    values = len(np.unique(data.f_all))
    alone = _why_alone(data, values)
    if yes_no and values == 2:
        mean, low, high, parts = _by_verdict(data, tail)
        method = "post-stratified by the judge's verdict (yes/no labels)"
    else:
        # A line says nothing beyond the scores that it was fitted to.
        data = replace(data, f_all=np.minimum(np.maximum(data.f_all, data.f.min()), data.f.max()))
        method = f"labels alone: {alone}" if alone else f"PPI++ ({'yes/no' if yes_no else 'graded'} labels)"
        mean, low, high, parts = _by_residuals(data, tail, yes_no=yes_no, difference=difference, alone=bool(alone))
    worth = 1.0
    if not alone and high > low:
        _, bottom, top, _ = _by_residuals(data, tail, yes_no=yes_no, difference=difference, alone=True)
        worth = max(1.0, ((top - bottom) / (high - low)) ** 2)
    to_halve = _to_halve(data.n, *parts)
    if len(np.unique(data.member)) < len(data.member):
        low, high = _of_groups(data, tail, mean, low, high, alone=bool(alone))
        method, to_halve = f"{method}, by {len(np.unique(data.member[: data.n]))} groups", None
    if difference and (data.y != _TIE).sum() < LEAST_UNTIED:
        low, high, worth = min(low, _TIE), max(high, _TIE), 1.0
        method = f"{method}, fewer than {LEAST_UNTIED} labelled pairs differ"
    return CorrectedEstimate(mean, low, high, method, worth * data.n, to_halve)


def _of_groups(data: _Data, tail: float, mean: float, low: float, high: float, *, alone: bool) -> tuple[float, float]:
    """An interval's ends, which are of samples, for groups. The page "Estimators" has the formulas."""
    special = load_scipy("special")
    n, (yy, ff, yf) = data.n, _sums(data)
    slope = 0.0 if alone else yf / ff
    # What each sample adds to the error.
    parts = slope * (data.f_all - data.f_all.mean()) / len(data.f_all)
    parts[:n] += (data.y - data.y.mean() - slope * (data.f - data.f.mean())) / n
    labels = np.bincount(data.member[:n])
    # So many groups with as many labels each say as much.
    size = n * n / float((labels**2).sum())
    varies = float((parts**2).sum())
    more = float((np.bincount(data.member, weights=parts) ** 2).sum()) * size / (size - 1) / varies if varies else 1.0
    times = math.sqrt(max(1.0, more)) * float(special.stdtrit(size - 1, tail) / special.stdtrit(n - 1, tail))
    left = 1.0 if alone or yy <= _NOTHING else min(1.0, 1.0 - yf * yf / ff / yy + 1.0 / n)
    unseen = (1.0 - (1.0 - tail) ** (1.0 / size)) * math.sqrt(left)
    low = mean - max(times * (mean - low), unseen * mean)
    high = mean + max(times * (high - mean), unseen * (1.0 - mean))
    return max(0.0, low), min(1.0, high)


def _to_halve(n: int, labels: float, judge: float) -> int | None:
    """How many more labels would halve the interval, by the two parts of its variance."""
    left = (labels + judge) / 4.0 - judge
    return None if left <= 0.0 else math.ceil(n * labels / left - n)


def _why_alone(data: _Data, values: int) -> str:
    """Why the judge's scores are of no use, if they are."""
    if values == 1:
        return "the judge gives one score to all"
    yy, ff, yf = _sums(data)
    if yf <= _NOTHING or yf * yf * data.n < 4.0 * yy * ff:
        return "the judge agrees with them no more than chance would"
    return ""


def _by_verdict(data: _Data, tail: float) -> tuple[float, float, float, _Parts]:
    """Yes/no labels and verdicts: q P(people yes | judge yes) + (1 - q) P(people yes | judge no), each Beta."""
    judged = data.f == 1.0
    counts = [(float((data.f_all == 1.0).sum()), len(data.f_all))]
    counts += [(float(data.y[of].sum()), int(of.sum())) for of in (judged, ~judged)]
    rng = np.random.default_rng(_SEED)
    q, a, b = (rng.beta(k + 0.5, n - k + 0.5, _DRAWS) for k, n in counts)
    q_mean, a_mean, b_mean = ((k + 0.5) / (n + 1.0) for k, n in counts)
    low, high = np.quantile(q * a + (1.0 - q) * b, (1.0 - tail, tail))
    of_q, of_a, of_b = (m * (1.0 - m) / (n + 2.0) for m, (_, n) in zip((q_mean, a_mean, b_mean), counts, strict=True))
    labels = q_mean**2 * of_a + (1.0 - q_mean) ** 2 * of_b
    parts = labels, (a_mean - b_mean) ** 2 * of_q
    return q_mean * a_mean + (1.0 - q_mean) * b_mean, float(low), float(high), parts


def _sums(data: _Data) -> tuple[float, float, float]:
    """The sums of squares and products of labels and judge, from their means."""
    dy, df = data.y - data.y.mean(), data.f - data.f.mean()
    yy, ff, yf = (float(each.sum()) for each in (dy * dy, df * df, dy * df))
    return yy, ff, yf


def _by_residuals(
    data: _Data, tail: float, *, yes_no: bool, difference: bool, alone: bool
) -> tuple[float, float, float, _Parts]:
    """PPI++, with what a few labels may hide. The page "Estimators" has the formulas and the tables."""
    if alone and yes_no and not difference:
        return _wilson(data, tail)
    special = load_scipy("special")
    z, t = float(special.ndtri(tail)), float(special.stdtrit(max(1.0, data.n - 1.0), tail))
    y, f_all, n = data.y, data.f_all, data.n
    y_mean, f_mean = float(y.mean()), float(data.f.mean())
    yy, ff, yf = _sums(data)
    slope = 0.0 if alone else yf / ff
    residual, left = _residuals(data, None if alone else slope)
    extra = _extra_labels(data, yy / n, y_mean, difference=difference)
    rare = 0.5 * _crowded(_most_common(y)[-1] if alone else _on_a_line(data), n, 10.0)
    shift_share, skew_share, quantile = left, 0.5, t
    if yes_no:
        extra, rare, shift_share, skew_share, quantile = 0.5, 0.0, 1.0, 0.3, z
    ends = _residuals_at_ends(data, slope, left, yes_no=yes_no)
    size = n + 2.0 * extra
    shift = extra * float(ends.sum()) / size * shift_share
    squares = float(((residual - shift) ** 2).sum()) + extra * float(((ends - shift) ** 2).sum())
    cubes = float(((residual - shift) ** 3).sum()) + extra * float(((ends - shift) ** 3).sum())
    squares += 6.0 * rare * yy / max(1.0, n - 1.0)
    size += 2.0 * rare
    of_residuals = squares / size / max(1.0, size if yes_no else n - 1.0)
    of_all = float(((f_all - f_all.mean()) ** 2).sum()) / len(f_all) / max(1, len(f_all) - 1)
    variance = of_residuals + slope**2 * of_all
    mean = y_mean + slope * (float(f_all.mean()) - f_mean) + shift
    margin = quantile * math.sqrt(variance)
    lean = 0.0
    if squares > _NOTHING:
        skew = cubes / size / (squares / size) ** 1.5
        lean = (
            skew_share * skew * math.sqrt(of_residuals) * (2 * z * z + 1) / 6 / math.sqrt(n) * (of_residuals / variance)
        )
    low, high = mean - margin + lean, mean + margin + lean
    if not yes_no or difference:
        below, above = _reach(data, tail)
        low, high = min(low, min(mean, y_mean) - below), max(high, max(mean, y_mean) + above)
    low, high = (min(1.0, max(0.0, end)) for end in (low, high))
    return min(high, max(low, mean)), low, high, (of_residuals, slope**2 * of_all)


def _residuals(data: _Data, slope: float | None) -> "tuple[Numbers, float]":
    """How far labels are from the line, each from the one that the others give, and the share that it leaves."""
    yy, ff, _ = _sums(data)
    off = data.f - data.f.mean()
    residual = data.y - data.y.mean() - (slope or 0.0) * off
    left = min(1.0, float((residual**2).sum()) / yy + 1.0 / data.n) if yy > _NOTHING else 1.0
    return (residual if slope is None else residual / (1.0 - off**2 / ff)), left


def _residuals_at_ends(data: _Data, slope: float, left: float, *, yes_no: bool) -> "Numbers":
    """How far labels of 0 and of 1 would be from the line: of yes/no where it is highest, and where it is lowest."""
    mean = float(data.y.mean())
    if not yes_no:
        return np.array([-mean, 1.0 - mean]) * math.sqrt(left)
    line = mean + slope * (np.array([1.0, 0.0]) - float(data.f.mean()))
    return np.array([0.0, 1.0]) - np.minimum(np.maximum(line, 0.0), 1.0)


def _wilson(data: _Data, tail: float) -> tuple[float, float, float, _Parts]:
    """The mean of yes/no labels alone, with Wilson's interval."""
    mean = float(data.y.mean())
    test = load_scipy("stats").binomtest(round(float(data.y.sum())), data.n)
    ends = test.proportion_ci(2.0 * tail - 1.0, "wilson")
    return mean, min(mean, float(ends.low)), max(mean, float(ends.high)), (1.0, 0.0)


def _reach(data: _Data, tail: float) -> tuple[float, float]:
    """How far the interval goes down and up at least, where most labels are one value and few are beside it.

    As far as Clopper and Pearson's interval goes for the share of labels on that side, each as far off as any is.
    """
    inverse = load_scipy("special").betaincinv
    least, value, most, share = _most_common(data.y)
    farthest = max(value - least, most - value) if most > least else 1.0

    def reach(beside: "Numbers", end: float) -> float:
        k = data.n * float((beside > _SAME).mean())
        if share <= 0.5 or k >= LEAST_UNTIED:
            return 0.0
        return min(end, farthest) * (float(inverse(k + 1.0, data.n - k, tail)) - k / data.n)

    return reach(value - data.y, value), reach(data.y - value, 1.0 - value)


def _extra_labels(data: _Data, variance: float, mean: float, *, difference: bool) -> float:
    """How many labels more at each end graded labels need, from 0 to .5.

    As far as the labels vary as yes/no would, or most of them are the same.
    """
    n = data.n
    alike = variance * n / max(1.0, n - 1.0) / max(mean * (1.0 - mean), 1e-12)
    least, value, most, share = _most_common(data.y)
    # Others may be on both sides.
    open_ends = difference or least < value < most
    crowded = _crowded(share, n, 1.5 if open_ends else 10.0)
    return 0.5 * max(float(min(1.0, alike) ** 1.5), crowded)


def _on_a_line(data: _Data) -> float:
    """The share of labels that are on one line with the judge's scores."""
    order = np.lexsort((data.y, data.f))
    y, f = data.y[order], data.f[order]
    apart = len(y) // 2
    dy, df = y[apart:] - y[:-apart], f[apart:] - f[:-apart]
    slopes = dy[df > _SAME] / df[df > _SAME]
    if len(slopes) == 0:
        return _most_common(y)[-1]
    same = np.abs(slopes - _most_common(slopes)[1]) <= _SAME
    return _most_common(y - float(np.median(slopes[same])) * f)[-1]


def _crowded(share: float, n: float, enough: float) -> float:
    """How far a share of equal values hides others: from 0 (5 in 10) to 1 (7 in 10), less where enough show."""
    return min(1.0, max(0.0, (share - 0.5) / 0.2)) * min(1.0, enough / max(n * (1.0 - share), 1e-9))


def _most_common(values: "Numbers") -> tuple[float, float, float, float]:
    """The least, the most common and the greatest value, and the share of the most common."""
    distinct, counts = np.unique(np.round(values, 6), return_counts=True)
    return float(distinct[0]), float(distinct[counts.argmax()]), float(distinct[-1]), float(counts.max()) / len(values)


def _scaled_data(
    people: "ArrayLike",
    judge: "ArrayLike",
    judge_rest: "ArrayLike",
    group: "Sequence[object] | None",
    least: float,
) -> _Data:
    """The arguments on the scale from 0 to 1; refuse what they cannot be."""
    y, f, rest = (
        _finite_array(name, each) for name, each in (("people", people), ("judge", judge), ("judge_rest", judge_rest))
    )
    n = len(y)
    if n and not (y.min() >= least and y.max() <= 1.0):
        worst = y[np.argmax(np.abs(y - (least + 1.0) / 2.0))]
        raise ValueError(f"people: {worst:g} is not from {least:g} to 1")
    if n < LEAST_LABELS:
        raise ValueError(f"people: {n} labels; a corrected mean needs {LEAST_LABELS} or more")
    if len(f) != n:
        raise ValueError(f"judge: has {len(f)} values for {n} samples")
    scale = 1.0 - least
    y, f_all = (y - least) / scale, np.concatenate([f, rest])
    # Whatever the judge's scale is.
    f_all = (f_all - f_all.min()) / (float(np.ptp(f_all)) or 1.0)
    return _Data(y, f_all[:n], f_all, _members(group, n, len(f_all)))


def _members(group: "Sequence[object] | None", n: int, of: int) -> "NDArray[np.int64]":
    """The number of each sample's group."""
    if group is None:
        return np.arange(of)
    if len(group) != of:
        raise ValueError(f"group: has {len(group)} values for {of} samples, first those with labels, then the others")
    member = np.array(group_numbers(group), np.int64)
    if (labelled := len(np.unique(member[:n]))) < LEAST_GROUPS:
        raise ValueError(f"group: {labelled} have labels; an interval needs {LEAST_GROUPS} or more")
    return member


def group_numbers(group: "Sequence[object]") -> list[int]:
    """The number of each sample's group, from 0 in the order of the samples; None is a group of its own."""
    numbers: dict[object, int] = {}
    keys = [(i,) if each is None else each for i, each in enumerate(group)]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _finite_array(name: str, values: "ArrayLike") -> "Numbers":
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: is not an array of numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"{name}: pass one finite number for each sample")
    return numbers
