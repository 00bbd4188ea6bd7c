"""Which of two systems is better: their reports, sample by sample."""

import math
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np

from ragstone.errors import RagstoneError
from ragstone.metrics.setup import parts_of
from ragstone.plain import count, printable
from ragstone.report.aggregates import Key, MetricInfo, MetricSummary, by_metric, full_name
from ragstone.report.page_rows import OldRows
from ragstone.report.report import Report, open_report
from ragstone.report.statistics import RAREST, TIE, GroupedMean, Interval, draws_to_show, permutation_p
from ragstone.report.tables import ASSUMES, DASH, INTERVAL, Tabular, interval_of, narrower, number, of_groups
from ragstone.results.groups import RowKey
from ragstone.results.record import Record, row_of

_MOVED = 10
# Of these a page and a terminal show the first.
_SHOWN = 5
_SURE = 0.05
_SHORT = 30
_RESPONSE = 4_000
_WHAT_LABELS_ADD = "{n} labelled pairs would say what people think: ragstone label {} {} --metric {} -n {n}"
# Fewer labels give no corrected mean; more are hardly needed.
_FEWEST_LABELS, _MOST_LABELS = 20, 40


class ByPeople(Protocol):
    """What people would say of a metric's difference, by their labels of some pairs.

    Attributes:
        labels: How many pairs have labels.
        by_items: Whether people judged items, so that the metric's own formula made the score.
        front: The difference that people would give; None where the labels give none.
        whose: Whose scores are estimated.
    """

    @property
    def labels(self) -> int: ...  # noqa: D102
    @property
    def by_items(self) -> bool: ...  # noqa: D102
    @property
    def front(self) -> Interval | None: ...  # noqa: D102
    @property
    def whose(self) -> str: ...  # noqa: D102
    def difference(self, name_a: str, name_b: str, *, higher_is_better: bool) -> Iterator[str]:
        """Yield which of two systems is better in one sentence, then what else there is to say."""
        ...


class NotComparableError(RagstoneError, ValueError):
    """Two reports have scores that are not comparable; the message says why, and the way out."""


class Moved(NamedTuple):
    """A sample whose score differs: its id, its rows (from 0), its scores, and its group."""

    sample_id: str
    row_a: int
    row_b: int
    a: float
    b: float
    group: str | None = None

    @property
    def change(self) -> float:
        """The difference b - a; 0.0 where that is next to nothing."""
        return 0.0 if abs(self.b - self.a) <= TIE else self.b - self.a


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric in both. All numbers are over the pairs: samples that have a score in both.

    Attributes:
        name: The metric's name, with version and judge where that is needed.
        info_a: The metric in a.
        info_b: The metric in b; of another version, judge or set-up only where that was allowed.
        pairs: Samples that are scored in both.
        left_out: How many samples are not, by why: "only in a", "unscored in a alone", "unscored in both", ...
        lost: How many samples a scored and b did not, unscored or missing.
        mean_a: The mean in a; None without pairs, as all that follows.
        mean_b: The mean in b.
        difference: mean_b - mean_a.
        estimate: The difference with its 95 % interval; None without pairs.
        differences: The pairs' differences, added up, with their groups.
        permutation_p: The p-value of the difference, if a's and b's score of a sample could as well be swapped.
        wins: Samples on which b is better.
        ties: Samples whose scores differ by less than 1e-9.
        losses: Samples on which b is worse.
        higher_is_better: The direction.
        moved: The samples that moved most, most first.
        people: What people's labels of pairs make of the difference; None without labels. Labels decide: nothing else
            here says what people think.
    """

    name: str
    info_a: MetricInfo
    info_b: MetricInfo
    pairs: int
    left_out: Mapping[str, int]
    lost: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    estimate: Interval | None
    differences: GroupedMean
    permutation_p: float | None
    wins: int
    ties: int
    losses: int
    higher_is_better: bool
    moved: Sequence[Moved]
    people: ByPeople | None = None

    @property
    def low(self) -> float | None:
        """The lower end of the difference's 95 % interval; None with fewer than two pairs, or bounds not known."""
        return None if self.estimate is None else self.estimate.low

    @property
    def high(self) -> float | None:
        """Its upper end, likewise."""
        return None if self.estimate is None else self.estimate.high

    @property
    def better(self) -> Literal["a", "b"] | None:
        """Which is better by the judge, as `better_by` says where nothing that breaks fewer than 1 in 20 counts."""
        return self.better_by(RAREST)

    def better_by(self, rarest: float) -> Literal["a", "b"] | None:
        """Which is better by the judge: what every report and check goes by.

        None where the permutation test's p is 0.05 or more, and where the interval holds 0 that `Interval.ends` names.
        """
        if self.permutation_p is None or not self.difference or self.permutation_p >= _SURE:
            return None
        found = None if self.estimate is None else self.estimate.ends(rarest)
        if found is not None and found[0] <= TIE and found[1] >= -TIE:
            return None
        return "b" if (self.difference > 0) == self.higher_is_better else "a"

    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        return (
            self.name,
            number(self.mean_a),
            number(self.mean_b),
            number(self.difference, "+"),
            interval_of(self.estimate, "+"),
            f"{self.wins:,}/{self.ties:,}/{self.losses:,}",
        )

    def conclusion(self, name_a: str = "a", name_b: str = "b") -> str:
        """Which is better, and how many samples got better and worse; the arguments say what the systems are called."""
        if self.difference is None:
            return "no sample has a score in both."
        moved = f"{count(self.wins, 'sample')} got better, {self.losses:,} worse"
        if self.people is not None:
            first, *_ = self._by_people(name_a, name_b)
            return f"{first.rstrip('.')}; the judge says {number(self.difference, '+')}, {moved}."
        better = {"a": f"{name_a} is better", "b": f"{name_b} is better", None: "no difference is shown"}[self.better]
        means = f"{name_a} {number(self.mean_a)}, {name_b} {number(self.mean_b)}"
        return f"by this judge, {better} ({means}); {moved}."

    def _by_people(self, name_a: str, name_b: str) -> list[str]:
        if self.people is None:
            return []
        return list(self.people.difference(name_a, name_b, higher_is_better=self.higher_is_better))

    def remarks(self, name_a: str = "a", name_b: str = "b") -> Iterator[str]:
        """Yield what neither the table nor the conclusion says, in sentences."""
        yield from self._by_people(name_a, name_b)[1:]
        if self.pairs:
            pairs = of_groups(count(self.pairs, "pair"), self.differences.groups)
            yield f"{pairs}, p {p_value(self.permutation_p, '= ')} by a permutation test."
        if beside := narrower(self.estimate, "pair", "+"):
            yield f"the difference is {beside}."
        if self.better is None and self.permutation_p is not None and self.permutation_p < _SURE:
            noun, enough = self.differences.noun or "pair", math.ceil(draws_to_show(RAREST))
            would = f"; {enough} would show what 1 in 20 does" if self.differences.size < enough else ""
            yield f"{noun}s that were not seen may have moved the other way{would}."
        if not self.higher_is_better:
            yield "lower is better."
        if self.info_a.key != self.info_b.key:
            differing = _differing([self.info_a, self.info_b])
            yield f"not a comparison of the systems alone, for the scores differ in {differing}."
        names = {"a": name_a, "b": name_b}
        left_out = [f"{n:,} {_with_names(why, names)}" for why, n in self.left_out.items() if n]
        if left_out:
            yield f"left out: {', '.join(left_out)}."


def _with_names(why: str, names: Mapping[str, str]) -> str:
    """Why samples are left out, with the systems called as they are: "unscored in old alone"."""
    return " ".join(names.get(word, word) for word in why.split())


def p_value(p: float | None, equals: str = "") -> str:
    """A p-value as text, behind `equals` unless it is too small to show."""
    return f"{equals}{DASH}" if p is None else "< 0.0001" if p < 0.0001 else f"{equals}{p:.4f}"


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Two reports compared. `print` shows it as a table, a notebook too.

    Attributes:
        a: The first report.
        b: The second one.
        name_a: What it is called.
        name_b: What it is called.
        files: Where they were read from, as it was given; of reports at hand, what they are called.
        metrics: The comparison by metric's name.
        left_out: The metrics that only one of them has.
        repeated_ids: How many sample ids stand more than once in a or in b; such rows are paired in their order.
        other_questions: The ids under which a and b hold different questions.
    """

    a: Report
    b: Report
    name_a: str
    name_b: str
    files: tuple[str, str]
    metrics: Mapping[str, MetricComparison]
    left_out: Sequence[str]
    repeated_ids: int
    other_questions: Sequence[str]

    def table(self) -> tuple[str, Sequence[str], list[tuple[str, ...]]]:
        """The title, head and rows of a table that has all metrics; the first column is the name."""
        a, b = self.short_names()
        head = ("metric", a, b, "change", INTERVAL, "better/same/worse")
        title = f"{self.name_b[:90]} compared with {self.name_a[:90]}"
        return title, head, [each.cells() for each in self.metrics.values()]

    def conclusion(self) -> str:
        """What got better and what got worse, in a line for each metric; by people's labels where there are some."""
        return "\n".join(f"{name}: {each.conclusion(*self.short_names())}" for name, each in self.metrics.items())

    def data(self) -> dict[str, object]:
        """For a page: for each metric how many samples moved, and the first system's rows."""
        moved = [
            {
                "name": name,
                "key": each.info_b.key,
                "better": each.wins,
                "same": each.ties,
                "worse": each.losses,
                "difference": each.difference,
                "low": each.low,
                "high": each.high,
                "moved": [(m.row_b, m.sample_id[:40], m.a, m.b) for m in each.moved[:_SHOWN]],
            }
            for name, each in self.metrics.items()
        ]
        remarks = [*self._of_metrics(), *self.caveats()]
        return {**super().data(), "metrics": moved, "remarks": remarks, "old": self._old_rows()}

    def figures(self) -> dict[str, object]:
        """Its numbers by metric, as JSON can hold them, for --json."""
        numbers = {
            name: {
                "pairs": each.pairs,
                "groups": each.differences.groups or None,
                "mean_a": each.mean_a,
                "mean_b": each.mean_b,
                "difference": each.difference,
                "interval": None if each.low is None else (each.low, each.high),
                "narrower": each.estimate and each.estimate.narrower,
                "better": each.better,
                "permutation_p": each.permutation_p,
                "wins": each.wins,
                "ties": each.ties,
                "losses": each.losses,
                "left_out": dict(each.left_out),
            }
            for name, each in self.metrics.items()
        }
        return {"a": self.name_a, "b": self.name_b, "metrics": numbers, "remarks": list(self.remarks())}

    def _old_rows(self) -> OldRows:
        """The first system's rows by id: each metric's value, and the response."""
        rows: dict[str, list[tuple[list[float | None], str | None]]] = {}

        def add(records: Sequence[Record]) -> None:
            of = by_metric(records)
            found = [of.get(each.info_a.key) for each in self.metrics.values()]
            sample = records[0].sample
            values = [None if each is None else each.outcome.value for each in found]
            response = None if sample is None or sample.response is None else sample.response[:_RESPONSE]
            rows.setdefault(records[0].sample_id, []).append((values, response))

        self.a.read(add, samples=True)
        return rows

    def short_names(self) -> tuple[str, str]:
        """What to call the two in a sentence: long names are cut; "a" and "b" where nothing else tells them apart."""
        a, b = (printable(name.removesuffix(".gz").removesuffix(".jsonl")) for name in (self.name_a, self.name_b))
        a, b = (name if len(name) <= _SHORT else f"{name[:14]}…{name[-15:]}" for name in (a, b))
        return (a, b) if a and b and a != b else ("a", "b")

    def remarks(self) -> Iterator[str]:
        """Yield remarks beside the table, in sentences."""
        yield from self._of_metrics()
        for each in filter(lambda each: each.moved, self.metrics.values()):
            most = ", ".join(f"{m.sample_id[:40]} {number(m.a)} to {number(m.b)}" for m in each.moved[:_SHOWN])
            yield f"moved most by {each.name}: {most}"
        yield from self.caveats()

    def _of_metrics(self) -> Iterator[str]:
        for name, each in self.metrics.items():
            yield from (f"{name}: {remark}" for remark in each.remarks(*self.short_names()))

    def caveats(self) -> Iterator[str]:
        """Yield what concerns all metrics, in sentences."""
        if any(each.low is not None for each in self.metrics.values()):
            yield ASSUMES
        most = max(self.metrics.values(), key=lambda each: each.pairs)
        if most.pairs >= _FEWEST_LABELS and all(each.people is None for each in self.metrics.values()):
            n = min(most.pairs, _MOST_LABELS)
            yield _WHAT_LABELS_ADD.format(*map(shlex.quote, self.files), most.info_b.name, n=n)
        if self.repeated_ids:
            are = "id stands" if self.repeated_ids == 1 else "ids stand"
            yield f"{self.repeated_ids:,} {are} more than once: their rows are paired in order."
        if self.other_questions:
            pairs = count(len(self.other_questions), "pair")
            yield f"{pairs} hold different questions under one id, the first {printable(self.other_questions[0], 40)}."
        if self.left_out:
            yield f"Not compared: {', '.join(self.left_out)}."
        if len(self.metrics) > 1:
            yield f"{len(self.metrics)} metrics are compared: their p-values are not corrected for that."
        yield from (*self.a.notes, *self.b.notes)
        for name, report in ((self.name_a, self.a), (self.name_b, self.b)):
            if report.bad_rows:
                yield f"{name}: {count(len(report.bad_rows), 'row')} held no sample."


ReportSource = Report | str | os.PathLike[str]
People = Callable[[MetricInfo, MetricInfo, Sequence[Moved]], ByPeople | None]
"""Gives what people would say of a metric's pairs; `ragstone.labels.corrected_pairs` makes one from labels."""


def compare(
    a: ReportSource,
    b: ReportSource,
    *,
    any_version: bool = False,
    group: str | None = None,
    people: People | None = None,
) -> Comparison:
    """Compare two systems on the samples that both have a score of, paired by the samples' ids.

    Rows without an id are paired by their position in the input. Rows of a repeated id are paired in order.

    Args:
        a: A report, or what `Report.load` takes.
        b: The other one.
        any_version: Compare scores of different versions, set-ups (options, embedder) or judges. Then not only the
            systems differ.
        group: As for `evaluate`, by the rows of a. None: what the records say. The interval and the permutation test
            then draw groups: all pairs of a group change their sign together.
        people: Gives people's view of the difference, by their labels of some pairs. It stands first. See
            `ragstone.labels.corrected_comparison`.

    Raises:
        NotComparableError: A metric's versions, judges or set-ups differ, or no metric is in both.
        GroupError: No row of a has the field that `group` names, or there is no such field.
        ResultsError: A file holds no results.
        OSError: A file cannot be read.

    Example:
        >>> from ragstone import Score
        >>> from ragstone.results.record import Record
        >>> def report(values):
        ...     scores = [Score(metric="demo", value=value, reason="", version="1") for value in values]
        ...     return Report.of(Record(f"q{row}", score, "judge", row) for row, score in enumerate(scores))
        >>> demo = compare(report([0.5] * 8), report([0.75] * 7 + [0.25])).metrics["demo"]
        >>> demo.difference, demo.wins, demo.losses, demo.better
        (0.1875, 7, 1, None)
    """
    x, y = sides = _opened(a, b, group)
    compared = list(_shared(x, y, any_version=any_version))
    pairs = _paired(x, y)
    other_questions = _other_questions(x, y, pairs)
    if not compared:
        have = [", ".join(dict.fromkeys(name for name, *_ in side.summaries)) or "none" for side in sides]
        raise NotComparableError(f"no metric is in both: {x.name} has {have[0]}, {y.name} has {have[1]}")
    infos = [before.info for before, _ in compared]
    metrics: dict[str, MetricComparison] = {}
    for before, after in compared:
        name = full_name(before.info, infos)
        metrics[name] = _compared(name, before, after, sides, pairs, people)
    keys = {each.info.key for both in compared for each in both}
    left_out = [f"{key[0]} (only in {side.name})" for side in sides for key in side.summaries if key not in keys]
    repeated = {sample_id for side in sides for sample_id, n in side.occurrences().values() if n}
    return Comparison(
        x.report, y.report, x.name, y.name, (x.file, y.file), metrics, left_out, len(repeated), other_questions
    )


def _opened(a: ReportSource, b: ReportSource, group: str | None) -> "tuple[_Side, _Side]":
    """The two reports, read. The groups of a name go by the rows of the first."""
    x, y = _side(a, "a"), _side(b, "b")
    if x.name == y.name and not isinstance(a, Report) and not isinstance(b, Report):
        x.name, y.name = _apart(Path(a).parts, Path(b).parts)
    if x.name == y.name:
        x.name, y.name = f"{x.name} (a)", f"{y.name} (b)"
    x.report = x.report.grouped(group)
    x.read()
    y.read()
    if group is not None and y.report is not x.report:
        y.groups.clear()
    return x, y


def _apart(a: Sequence[str], b: Sequence[str]) -> tuple[str, str]:
    """The ends of two paths, as long as it takes to tell one from the other."""
    n = 1
    while a[-n:] == b[-n:] and n < max(len(a), len(b)):
        n += 1
    return "/".join(a[-n:]), "/".join(b[-n:])


def _side(source: ReportSource, letter: str) -> "_Side":
    if isinstance(source, Report):
        return _Side(source, source.name or letter)
    report = open_report(source)
    # The URL of a database may hold a password.
    file = report.name if "://" in str(source) else str(source)
    return _Side(report, report.name or Path(source).name, file)


def _paired(x: "_Side", y: "_Side") -> dict[RowKey, RowKey]:
    """The rows of x, as they came, each with the row of y that has the same id as often before."""
    before, after = x.occurrences(), {occurrence: row for row, occurrence in y.occurrences().items()}
    return {row: after[before[row]] for row in x.questions if before[row] in after}


def _other_questions(x: "_Side", y: "_Side", pairs: Mapping[RowKey, RowKey]) -> list[str]:
    """The ids under which the two hold different questions.

    Raises:
        NotComparableError: They are not the same samples.
    """
    questions = [(row[1], x.questions[row], y.questions[other]) for row, other in pairs.items()]
    both = [each for each in questions if None not in each]
    others = [sample_id for sample_id, before, after in both if before != after]
    if unnamed := [name for name in others if name in x.unnamed]:
        raise NotComparableError(
            f"the rows have no ids, so they are paired by their places, and {len(unnamed):,} of them hold other "
            f"questions, the first row {unnamed[0]}: give each row an id (the key 'id'), or score the same file"
        )
    if 2 * len(others) > len(both):
        raise NotComparableError(
            f"{len(others):,} of {count(len(both), 'pair')} hold different questions under one id, the first "
            f"{printable(others[0], 40)}: they are not the same samples; score the same file"
        )
    return others


def _shared(x: "_Side", y: "_Side", *, any_version: bool) -> Iterator[tuple[MetricSummary, MetricSummary]]:
    """What to compare: outcomes of one metric, version, judge and set-up, then what is left of one name."""
    a, b = x.summaries, y.summaries
    for key in a:
        if key in b:
            yield a[key], b[key]
    for name in dict.fromkeys(key[0] for key in a if key not in b):
        left_a = [each for key, each in a.items() if key[0] == name and key not in b]
        left_b = [each for key, each in b.items() if key[0] == name and key not in a]
        if any_version and len(left_a) == len(left_b) == 1:
            yield left_a[0], left_b[0]
        elif left_b:
            differing = _differing([each.info for each in (*left_a, *left_b)])
            raise NotComparableError(
                f"{name}: {differing} (in {x.name} and {y.name}). Such scores are not comparable: score both with the "
                "same, or, where each holds one alone, pass any_version=True (--any-version)"
            )


def _differing(infos: Sequence[MetricInfo]) -> str:
    """What tells scores of one metric apart: "granularity: chunk, sentence"."""
    options = sorted({option for each in infos for option in parts_of(each.setup)})
    values = {fact: dict.fromkeys(each.fact(fact) for each in infos) for fact in ("version", "judge", *options)}
    return "; ".join(f"{fact}: {', '.join(of)}" for fact, of in values.items() if len(of) > 1)


def difference_bounds(a: MetricInfo, b: MetricInfo) -> tuple[float, float] | None:
    """The least and greatest possible difference of two scores; None where no bounds are known."""
    known = [info.bounds for info in (a, b) if info.bounds is not None]
    if not known:
        return None
    span = max(high for _, high in known) - min(low for low, _ in known)
    return -span, span


class _Side:
    """One of two reports as its rows come: their questions, as hashes, their groups, and their scores by metric."""

    def __init__(self, report: Report, name: str, file: str = "") -> None:
        self.report = report
        self.name = name
        self.file = file or name
        self.summaries: dict[Key, MetricSummary] = {}
        self.questions: dict[RowKey, int | None] = {}
        self.groups: dict[RowKey, str] = {}
        self.scores: dict[Key, dict[RowKey, float | None]] = {}
        # The ids of samples that have none but their position in the input.
        self.unnamed = set[str]()

    def read(self) -> None:
        summaries = self.report.read(self._add, samples=True)
        self.summaries = {each.info.key: each for each in summaries}
        self.groups = {**(self.report.conversations or {}), **self.groups}

    def _add(self, records: Sequence[Record]) -> None:
        row, sample = row_of(records[0]), records[0].sample
        question = None if sample is None else sample.user_input
        self.questions[row] = None if question is None else hash(question)
        if sample is not None and sample.id is None:
            self.unnamed.add(records[0].sample_id)
        if (group := self.report.group_of(records[0])) is not None:
            self.groups[row] = group
        for key, record in by_metric(records).items():
            self.scores.setdefault(key, {})[row] = record.outcome.value

    def occurrences(self) -> dict[RowKey, tuple[str, int]]:
        """Each row's id, and how many rows with that id stand before it in the input."""
        seen: Counter[str] = Counter()
        found: dict[RowKey, tuple[str, int]] = {}
        for row in sorted(self.questions):
            _, sample_id = row
            found[row] = sample_id, seen[sample_id]
            seen[sample_id] += 1
        return found


def _compared(
    name: str,
    x: MetricSummary,
    y: MetricSummary,
    sides: tuple[_Side, _Side],
    rows: Mapping[RowKey, RowKey],
    people: People | None,
) -> MetricComparison:
    a, b = sides[0].scores.get(x.info.key, {}), sides[1].scores.get(y.info.key, {})
    both = {row: other for row, other in rows.items() if row in a and other in b}
    unscored = Counter((a[row] is None, b[other] is None) for row, other in both.items())
    pairs = list(_scored_in_both(both, a, b, sides))
    n = len(pairs)
    differences, drawn = GroupedMean(), dict[object, float]()
    for number_of_pair, pair in enumerate(pairs):
        differences.add(pair.b - pair.a, group=pair.group)
        # A group changes its sign as a whole.
        key = pair.group or number_of_pair
        drawn[key] = drawn.get(key, 0.0) + pair.change
    higher = x.info.higher_is_better and y.info.higher_is_better
    up, down = sum(pair.change > 0 for pair in pairs), sum(pair.change < 0 for pair in pairs)
    wins, losses = (up, down) if higher else (down, up)
    moved = sorted((pair for pair in pairs if pair.change), key=lambda pair: -abs(pair.change))
    return MetricComparison(
        name=name,
        info_a=x.info,
        info_b=y.info,
        pairs=n,
        left_out={
            "unscored in a alone": unscored[True, False],
            "unscored in b alone": unscored[False, True],
            "unscored in both": unscored[True, True],
            "only in a": len(a) - len(both),
            "only in b": len(b) - len(both),
        },
        lost=sum(value is not None for value in a.values()) - n,
        mean_a=math.fsum(pair.a for pair in pairs) / n if n else None,
        mean_b=math.fsum(pair.b for pair in pairs) / n if n else None,
        difference=math.fsum(pair.b - pair.a for pair in pairs) / n if n else None,
        estimate=differences.estimate(difference_bounds(x.info, y.info)),
        differences=differences,
        permutation_p=permutation_p(np.array(list(drawn.values()), np.float64)),
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        higher_is_better=higher,
        moved=moved[:_MOVED],
        people=None if people is None else people(x.info, y.info, pairs),
    )


def _scored_in_both(
    both: Mapping[RowKey, RowKey],
    a: Mapping[RowKey, float | None],
    b: Mapping[RowKey, float | None],
    sides: tuple[_Side, _Side],
) -> Iterator[Moved]:
    for row, other in both.items():
        x, y = a[row], b[other]
        if x is not None and y is not None:
            group = sides[0].groups.get(row) or sides[1].groups.get(other)
            yield Moved(row[1], row[0], other[0], x, y, group)
