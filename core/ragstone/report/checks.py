"""A check that ends with 0, 1 or 3 (cannot tell): a drop between two runs, for CI."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple

from ragstone.plain import count, printable
from ragstone.report.aggregates import scale
from ragstone.report.comparison import Comparison, MetricComparison, difference_bounds, p_value
from ragstone.report.statistics import NORMAL_95, RAREST, TIE, draws_to_show
from ragstone.report.tables import DASH, FEW_GROUPS, INTERVAL, interval, number, of_groups
from ragstone.text.plain import markdown_code, markdown_table

CheckStatus = Literal[0, 1, 3]
WORDS: Mapping[CheckStatus, str] = {0: "not worse", 1: "worse", 3: "cannot tell"}
_MANY = 1_000_000


class DropCheck(NamedTuple):
    """Whether a metric dropped by more than is allowed: 0 it did not, 1 it did, 3 nobody can tell."""

    name: str
    allowed: float
    status: CheckStatus
    word: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}"


def drop_status(low: float, high: float, allowed: float) -> CheckStatus:
    """0 where a difference is at least -allowed, 1 where it is less, 3 where its interval holds both.

    Args:
        low: The lower end of the difference's interval, new - base; of a metric whose lower values are better,
            base - new.
        high: Its upper end.
        allowed: The drop that is allowed, 0 or more.

    Example:
        >>> [drop_status(low, high, 0.02) for low, high in ((-0.02, 0.1), (-0.1, -0.03), (-0.1, 0.1))]
        [0, 1, 3]
    """
    return 0 if low >= -allowed - TIE else 1 if high < -allowed - TIE else 3


def samples_needed(difference: float, low: float, high: float, allowed: float, n: int) -> float:
    """About how many samples would tell, if the difference stays as it is: n * (width / needed)^2.

    The width is the distance from the difference to the end of its interval that lies beyond the limit -allowed. The
    needed one is the distance to the limit itself. Infinite where the difference lies on the limit.

    Example:
        >>> samples_needed(0.0, -0.04, 0.04, 0.02, 100)
        400.0
    """
    needed = difference + allowed
    width = difference - low if needed > 0 else difference - high
    return math.inf if abs(needed) <= TIE else n * (width / needed) ** 2


def check_drops(
    comparison: Comparison,
    allow_drop: float | None,
    by_name: Mapping[str, float] | None = None,
    *,
    rarest: float = RAREST,
) -> list[DropCheck]:
    """Whether each metric of the base, `comparison.a`, dropped in the new run by more than is allowed.

    A metric that the new run lacks, and one with fewer than two samples that both score, cannot be told. Samples that
    the base scored and the new run did not, be they unscored or missing, count neither way, as long as their worst
    possible scores would not turn a pass.

    Args:
        comparison: The base and the new run.
        allow_drop: The drop that is allowed; None checks only the metrics of `by_name`.
        by_name: The drop allowed of single metrics, which goes before.
        rarest: Faults in a smaller share of the samples are ignored. Where they are so many that they would
            have shown it, the narrower interval decides (`Interval.ends`). 0: the one that holds always does.

    Raises:
        ValueError: A drop is no number of 0 or more, `rarest` no share below 1, or the base has no metric of a name.
    """
    by_name = by_name or {}
    if not 0 <= rarest < 1:
        raise ValueError(f"rarest is {rarest!r}; it is a share from 0 to below 1, such as 0.05")
    for drop in (*by_name.values(), *([] if allow_drop is None else [allow_drop])):
        if not (math.isfinite(drop) and drop >= 0):
            raise ValueError(f"the allowed drop {drop!r} is not a number of 0 or more, such as 0.02")
    compared = {each.info_a.key: each for each in comparison.metrics.values()}
    named = {(each.info_a.name, name) for name, each in comparison.metrics.items()}
    missing = [info.name for info in comparison.a.metrics if info.key not in compared]
    known = {*missing, *(name for names in named for name in names)}
    if unknown := [name for name in by_name if name not in known]:
        raise ValueError(f"{comparison.name_a} has no metric {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    checks = [
        _check(each, allowed, rarest)
        for name, each in comparison.metrics.items()
        if (allowed := by_name.get(name, by_name.get(each.info_a.name, allow_drop))) is not None
    ]
    lacks = "cannot tell: the base has this metric, the new run has not."
    return checks + [
        DropCheck(name, allowed, 3, WORDS[3], lacks)
        for name in missing
        if (allowed := by_name.get(name, allow_drop)) is not None
    ]


def status_of(checks: Iterable[DropCheck]) -> CheckStatus:
    """1 where a check ends with it, else 3 where one cannot tell, else 0."""
    statuses = {each.status for each in checks}
    return 1 if 1 in statuses else 3 if 3 in statuses else 0


class _Change(NamedTuple):
    """A metric's difference with its interval, of n of something, and by whom; more than 0 is better.

    `worse`: whether every report says that the new run is worse; `assumes`: what the interval does, behind it.
    """

    mean: float
    low: float
    high: float
    n: int
    noun: str
    by: str
    worse: bool
    assumes: str = ""


class _NoIntervalError(Exception):
    """Why a difference has no interval."""


def _change(each: MetricComparison, rarest: float) -> _Change:
    """The difference: what people would say where there are labels, else what the judge does.

    Raises:
        _NoIntervalError: It has no interval.
    """
    if each.people is not None:
        front = each.people.front
        if front is None or front.low is None or front.high is None:
            raise _NoIntervalError("the labels give no corrected difference")
        by = each.people.whose if each.people.by_items else "by people's labels"
        mean, low, high = _better_up(each, front.mean, front.low, front.high)
        return _Change(mean, low, high, each.people.labels, "labelled pair", by, high < 0)
    if (e := each.estimate) is None or e.n == 1:
        raise _NoIntervalError(f"{count(each.pairs, 'sample')} with a score in both, and an interval needs two")
    size, noun = each.differences.size, each.differences.noun or "sample"
    if e.groups and e.lacks == e.groups:
        raise _NoIntervalError(FEW_GROUPS.format(e.groups))
    if (ends := e.ends(rarest)) is None:
        do = f"; {math.ceil(draws_to_show(rarest)):,} would do" if rarest else ""
        why = f"{count(size, noun)} may hide anything where the metric's bounds are not known{do}"
        raise _NoIntervalError(why)
    mean, low, high = _better_up(each, e.mean, *ends)
    assumes = f" whatever few {noun}s may hide"
    if ends == e.narrower:
        assumes = f" if nothing breaks in fewer than {100 * rarest:g} % of the {noun}s"
    return _Change(mean, low, high, size, noun, "by this judge", each.better_by(rarest) == "a", assumes)


def _better_up(each: MetricComparison, mean: float, low: float, high: float) -> tuple[float, float, float]:
    """A difference with its ends, or its opposite where lower values are better."""
    return (mean, low, high) if each.higher_is_better else (-mean, -high, -low)


def _check(each: MetricComparison, allowed: float, rarest: float) -> DropCheck:
    lost = each.lost
    left_out = [f"Left out: {count(lost, 'sample')} that the base scored and the new run did not."] if lost else []
    try:
        change = _change(each, rarest)
    except _NoIntervalError as error:
        return DropCheck(each.name, allowed, 3, WORDS[3], " ".join([f"cannot tell: {error}.", *left_out]))
    status = drop_status(change.low, change.high, allowed)
    hidden = status == 0 and lost > 0 and drop_status(_at_worst(each, change.low, lost), change.high, allowed) != 0
    by_chance = status == 1 and not change.worse
    if hidden or by_chance:
        status = 3
    word, verdict = WORDS[status], WORDS[status] if status == 3 else f"{WORDS[status]} {change.by}"
    if status == 0 and change.worse:
        word, verdict = "worse, but allowed", f"worse {change.by}, but no more than allowed"
    mean, low, high = _better_up(each, change.mean, change.low, change.high)
    moved, drop = number(mean, "+"), "drop" if each.higher_is_better else "rise"
    ends = f"{interval(low, high, '+')}{change.assumes}"
    if each.people is None and (groups := each.differences.groups):
        ends += f"; {of_groups(count(each.pairs, 'sample'), groups)}"
    sentences = [f"{verdict}: {moved} ({INTERVAL} {ends}), and a {drop} of {allowed:g} is allowed."]
    if by_chance:
        p = p_value(each.permutation_p, "= ")
        sentences.append(f"Chance alone can move them that far (p {p}).")
    if status == 3 and not hidden:
        sentences += _how_many_do(_needed(each, change, allowed, rarest), moved, change.noun)
    sentences += left_out
    if hidden:
        sentences.append(f"If they were as bad as can be, the {drop} could be greater than that: score them again.")
    return DropCheck(each.name, allowed, status, word, " ".join(sentences))


def _at_worst(each: MetricComparison, low: float, lost: int) -> float:
    """The low end as it would be if each lost sample had gone from the best to the worst score."""
    if each.info_a.bounds is None:
        return -math.inf
    worst, best = scale(each.info_a.bounds)
    return (each.pairs * low - lost * (best - worst)) / (each.pairs + lost)


def _needed(each: MetricComparison, change: _Change, allowed: float, rarest: float) -> float:
    """About how many samples would tell, if more of them differ as these do."""
    if each.people is not None:
        return samples_needed(change.mean, change.low, change.high, allowed, change.n)

    bounds = difference_bounds(each.info_a, each.info_b)

    def tells(times: float) -> bool:
        e = each.differences.estimate(bounds, times=times)
        if e is None or (ends := e.ends(rarest)) is None:
            return False
        _, low, high = _better_up(each, e.mean, *ends)
        return drop_status(low, high, allowed) != 3

    few, enough = 1.0, 1.0
    while not tells(enough):
        few, enough = enough, 2 * enough
        if enough * change.n > 2 * _MANY:
            return math.inf
    while enough > 1.001 * few:
        middle = (few + enough) / 2
        few, enough = (few, middle) if tells(middle) else (middle, enough)
    # There must be so many that p, too, is small enough. Where few pairs differ, it is coarse: of one pair it is 1.
    if change.mean < -allowed and each.permutation_p is not None:
        z = NormalDist().inv_cdf(1 - min(each.permutation_p, 0.5) / 2)
        enough = max(enough, (NORMAL_95 / z) ** 2)
    return enough * change.n


def _how_many_do(samples: float, difference: str, noun: str) -> Iterator[str]:
    if samples > _MANY:
        yield f"The difference lies so near to the limit that no reasonable number of {noun}s would tell."
        return
    digits = max(0, len(str(math.ceil(samples))) - 2)
    about = math.ceil(samples / 10**digits) * 10**digits
    yield f"About {about:,} {noun}s would do, if the difference stays at {difference}."


def markdown(comparison: Comparison, checks: Sequence[DropCheck] = ()) -> str:
    """The comparison as Markdown that GitHub shows: no text from outside is markup, a mention or a link in it.

    Args:
        comparison: The comparison.
        checks: What `check_drops` found; its sentences stand below the table.
    """
    title, head, rows = comparison.table()
    if checks:
        results = {each.name: (f"{each.allowed:g}", f"**{each.word}**") for each in checks}
        head = (*head, "change allowed", "result")
        rows = [(*row, *results.get(row[0], (DASH, DASH))) for row in rows]
    cells = [(markdown_code(name), *rest) for name, *rest in rows]
    head = (*head[:1], *map(markdown_code, head[1:3]), *head[3:])
    sentences = [f"- {markdown_code(each.name)}: {each.sentence}" for each in checks]
    remarks = [*map(printable, comparison.conclusion().splitlines()), *map(printable, comparison.remarks())]
    fence = "`" * (1 + max((2, *map(len, re.findall("`+", "\n".join(remarks))))))
    more = ["<details><summary>More</summary>", "", f"{fence}text", *remarks, fence, "", "</details>"]
    parts = [[f"**{markdown_code(title)}**"], markdown_table(head, cells), sentences, more]
    return "\n\n".join("\n".join(part) for part in parts if part)
