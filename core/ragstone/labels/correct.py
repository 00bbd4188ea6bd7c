"""What people would say of all samples: the judge's scores of them all, corrected by people's labels of a few."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from ragstone.identity import sample_digest
from ragstone.labels.agreement import kappa_of, sensitivity_specificity
from ragstone.labels.corrections import ByLabels, Correction, Corrections
from ragstone.labels.estimates import LEAST_LABELS, CorrectedEstimate, corrected_difference, corrected_mean, load_scipy
from ragstone.labels.label_file import LabelError, LabelledRecord, match_labels, read_labels, refuse_scale
from ragstone.plain import count
from ragstone.report.aggregates import (
    Key,
    MetricInfo,
    MetricSummary,
    by_metric,
    by_row,
    weight_of,
)
from ragstone.report.comparison import Comparison, Moved, ReportSource, compare
from ragstone.report.report import Report
from ragstone.report.statistics import LEAST_GROUPS, TIE, GroupedMean
from ragstone.report.statistics import Interval as Mean
from ragstone.report.tables import FEW_GROUPS, number
from ragstone.sample import Sample

T = TypeVar("T", bound=ByLabels)
_Estimator = Callable[..., CorrectedEstimate]


def corrected(
    report: Report, labels: str | Path, *, drawn_at_random: bool = False, group: str | None = None
) -> Corrections:
    """People's mean over a report's samples, for each metric that has labels.

    The samples with labels say how far the judge is off, and the judge's scores of the others make the answer precise
    (`corrected_mean`).

    Args:
        report: The results.
        labels: The file of labels: the download of a page of `ragstone label`.
        drawn_at_random: The labelled samples were drawn at random, although not by `ragstone label`.
        group: As for `ragstone.evaluate`. None: what the records say. Intervals are then of groups.

    Raises:
        GroupError: No row has the field that `group` names, or there is no such field.
        LabelError: A label cannot be used; labels were not drawn at random; live samples were chosen at several rates.
        ImportError: scipy is not installed (the extra `labels`).
    """
    report = report.grouped(group)
    (matched,) = _matched(labels, [report], drawn_at_random=drawn_at_random)
    by_key: dict[Key, list[LabelledRecord]] = {}
    for each in matched:
        by_key.setdefault(each.info.key, []).append(each)
    rows = _rows(report, by_key)
    metrics = {
        name: _correction(summary, by_key[key], rows[key])
        for name, summary in report.summary().items()
        if (key := summary.info.key) in by_key
    }
    return Corrections(report, metrics)


def corrected_comparison(
    a: ReportSource,
    b: ReportSource,
    labels: str | Path,
    *,
    any_version: bool = False,
    drawn_at_random: bool = False,
    group: str | None = None,
) -> Comparison:
    """Compare two systems as `ragstone.report.compare` does, with people's difference in front.

    Args:
        a: A report, or what `Report.load` takes.
        b: The other one.
        labels: The download of a page of `ragstone label A B`.
        any_version: As for `compare`.
        drawn_at_random: As for `corrected`.
        group: As for `compare`.

    Raises:
        LabelError: As for `corrected`.
        NotComparableError: As for `compare`.
        ImportError: scipy is not installed (the extra `labels`).
    """
    first, second = (each if isinstance(each, Report) else Report.load(each) for each in (a, b))
    people = corrected_pairs(first, second, labels, drawn_at_random=drawn_at_random)
    return compare(a, b, any_version=any_version, group=group, people=people)


def corrected_pairs(
    a: Report, b: Report, labels: str | Path, *, drawn_at_random: bool = False
) -> Callable[[MetricInfo, MetricInfo, Sequence[Moved]], ByLabels | None]:
    """A function that gives people's difference b - a over one metric's pairs; None without labels.

    Args:
        a: The results of one system.
        b: Those of the other.
        labels: The download of a page of `ragstone label A B`.
        drawn_at_random: As for `corrected`, which raises the same.
    """
    matched = _matched(labels, [a, b], drawn_at_random=drawn_at_random)
    sides = [{(each.info.key, each.record.sample_id, each.record.row): each for each in side} for side in matched]

    def difference(info_a: MetricInfo, info_b: MetricInfo, pairs: Sequence[Moved]) -> ByLabels | None:
        for report, info in ((a, info_a), (b, info_b)):
            # This refuses samples that were chosen at several rates.
            _rows(report, [info.key])
        taken: list[_Row] = []
        rest: list[_Row] = []
        skips: list[bool] = []
        for pair in pairs:
            row = _Row(pair.b - pair.a, group=pair.group)
            keys = (info_a.key, pair.sample_id, pair.row_a), (info_b.key, pair.sample_id, pair.row_b)
            labelled = [each for side, key in zip(sides, keys, strict=True) if (each := side.get(key)) is not None]
            values = [value for each in labelled if (value := each.value) is not None]
            if len(values) == 2:
                taken.append(row._replace(labelled=labelled, people=values[1] - values[0]))
                continue
            rest.append(row)
            if labelled:
                skips.append(any(each.skipped for each in labelled))
        if not taken and not skips:
            return None
        notes = [(skips.count(False), "pair", "without scores by labels of both; left out")]
        return _estimated(ByLabels, taken, rest, sum(skips), notes, corrected_difference)

    return difference


def _matched(paths: str | Path, reports: Sequence[Report], *, drawn_at_random: bool) -> list[list[LabelledRecord]]:
    """Each report's labelled samples, where these stand for all."""
    load_scipy("stats")
    matched = match_labels(paths, read_labels(paths), reports)
    labels = [label for side in matched for each in side for label in each.labels]
    for each in (each for side in matched for each in side):
        refuse_scale(each.info)
    chances = {label.draw.chance for label in labels if label.draw is not None}
    if len(chances) > 1:
        raise LabelError(
            f"--labels {paths}: the labels are of {len(chances)} draws with other chances; give those of one draw"
        )
    chosen = sum(label.draw is None for label in labels)
    if chosen and not drawn_at_random:
        raise LabelError(
            f"--labels {paths}: {chosen:,} of {count(len(labels), 'label')} are of samples that `ragstone label` did "
            "not draw, so they may not stand for the others; label what it draws, or say that yours were drawn by "
            "chance: --drawn-at-random"
        )
    return matched


class _Row(NamedTuple):
    """A sample, or the two of a pair; where it is labelled, also people's score and what they labelled."""

    judge: float
    people: float = 0.0
    labelled: Sequence[LabelledRecord] = ()
    group: str | None = None

    @property
    def error(self) -> float:
        # Rounding makes equal ones of errors that only arithmetic tells apart.
        return round(self.judge - self.people, 9)


def _rows(report: Report, wanted: Iterable[Key]) -> dict[Key, dict[tuple[str, str], list[_Row]]]:
    """The rows that each metric's mean is of, by the sample's id and digest."""
    rows: dict[Key, dict[tuple[str, str], list[_Row]]] = {key: {} for key in wanted}
    weights: set[float] = set()
    # Conversations are known after this.
    report.aggregates()
    for records in by_row(report.results(samples=True)):
        sample = records[0].sample or Sample()
        of = records[0].sample_id, sample_digest(sample)
        for key, record in by_metric(records).items():
            value = record.outcome.value
            if key in rows and value is not None:
                weights.add(weight_of(record))
                rows[key].setdefault(of, []).append(_Row(value, group=report.group_of(records[0])))
    if len(weights) > 1:
        rates = ", ".join(f"{1 / weight:g}" for weight in sorted(weights))
        raise LabelError(
            f"the samples were chosen at the rates {rates}; labels stand for all of them at one rate only: leave out "
            "what came before the rate changed (--since)"
        )
    return rows


def _corrected(taken: Sequence[_Row], rest: Sequence[_Row], estimator: _Estimator) -> CorrectedEstimate:
    people, judge = [row.people for row in taken], [row.judge for row in taken]
    groups = [row.group for row in (*taken, *rest)]
    return estimator(people, judge, [row.judge for row in rest], group=groups)


def _alone(taken: Sequence[_Row], estimator: _Estimator) -> CorrectedEstimate:
    """The mean of the labels, with the interval beside a judge who says nothing."""
    estimate = _corrected([row._replace(judge=0.0) for row in taken], (), estimator)
    return replace(estimate, mean=float(np.mean([row.people for row in taken])))


def _off(taken: Sequence[_Row]) -> CorrectedEstimate:
    # Errors of differences reach from -2 to 2.
    scale = max(1.0, *(abs(row.error) for row in taken))
    estimate = _alone([row._replace(people=row.error / scale) for row in taken], corrected_difference)
    return replace(estimate, mean=scale * estimate.mean, low=scale * estimate.low, high=scale * estimate.high)


def _estimated(
    make: Callable[..., T],
    taken: Sequence[_Row],
    rest: Sequence[_Row],
    skipped: int,
    notes: Sequence[tuple[int, str, str]],
    estimator: _Estimator,
) -> T:
    """The estimate by labels and judge together."""
    n = len(taken)
    samples = [each for row in taken for each in row.labelled]
    draws = [each.labels[0].draw for each in samples]
    labelled = GroupedMean()
    for row in taken:
        labelled.add(row.people, group=row.group)
    notes = [*notes, (draws.count(None), "labelled sample", "not drawn by `ragstone label`; taken to be random")]
    by_labels = make(
        n,
        skipped,
        # A criterion asks its one question about the whole sample.
        by_items=any(each.by_items and each.labels[0].kind != "criterion" for each in samples),
        by_judges_items=any(each.by_judges_items for each in samples),
        missing=sum(each.missing for each in samples) / max(1, len(samples)),
        notes=tuple(f"{count(of_note, noun)} {why}." for of_note, noun, why in notes if of_note),
        groups=labelled.groups,
    )
    if n < LEAST_LABELS:
        what = "label" if estimator is corrected_mean else "labelled pair"
        why = f"{count(n, what)}; fewer than {LEAST_LABELS} say too little of the judge's error"
        return replace(by_labels, why=why)
    if labelled.size < LEAST_GROUPS:
        return replace(by_labels, why=FEW_GROUPS.format(labelled.groups))
    alone = _alone(taken, estimator)
    by_labels = replace(by_labels, people=Mean(n, alone.mean, alone.low, alone.high), off=_off(taken))
    if np.ptp([row.judge for row in (*taken, *rest)]) <= TIE:
        why = f"the judge says {number(taken[0].judge)} of each, so that the labels alone count"
        return replace(by_labels, why=why)
    return replace(by_labels, corrected=_corrected(taken, rest, estimator))


def _correction(
    summary: MetricSummary,
    matched: Sequence[LabelledRecord],
    rows: Mapping[tuple[str, str], list[_Row]],
) -> Correction:
    valued = [(each, value) for each in matched if (value := each.value) is not None]
    same = [rows.get((each.record.sample_id, sample_digest(each.sample))) for each, _ in valued]
    taken = [
        row.pop()._replace(people=value, labelled=[each])
        for (each, value), row in zip(valued, same, strict=True)
        if row
    ]
    rest = [row for of_sample in rows.values() for row in of_sample]
    skipped = sum(each.skipped for each in matched)
    notes = [
        (len(matched) - skipped - len(valued), "sample", "without a score by its labels (an item is open); left out"),
    ]
    correction = _estimated(partial(Correction, summary=summary), taken, rest, skipped, notes, corrected_mean)
    if correction.corrected is None:
        return correction
    of_both = [row.people for row in taken], [row.judge for row in taken], [row.group for row in taken]
    sensitivity, specificity = sensitivity_specificity(*of_both)
    return replace(
        correction,
        kappa=kappa_of(*of_both),
        sensitivity=sensitivity,
        specificity=specificity,
    )
