"""What people would say of all samples: the judge's scores of them all, corrected by people's labels of a few."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragstone.labels.agreement import agreement, sensitivity_specificity
from ragstone.labels.calibration import CalibrationError
from ragstone.labels.estimates import LEAST_LABELS, Estimate, corrected_difference, corrected_mean
from ragstone.labels.fit import load_extra
from ragstone.labels.label_file import Draw, LabelledRecord, match_in_each, read_labels, sample_digest
from ragstone.reporting.aggregates import (
    Key,
    MetricInfo,
    MetricSummary,
    Worst,
    by_metric,
    by_row,
    slice_value,
    weight_of,
)
from ragstone.reporting.comparison import Moved
from ragstone.reporting.corrections import ByLabels, Correction, Corrections, Link, Slice
from ragstone.reporting.statistics import TIE
from ragstone.reporting.statistics import Estimate as Mean
from ragstone.reporting.tables import count, number
from ragstone.sample import Sample
from ragstone.store.pending import FEEDBACK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragstone.reporting import Report

    Numbers = NDArray[np.float64]


def corrected(report: "Report", labels: str | Path, *, drawn_at_random: bool = False) -> Corrections:
    """Return what people would say of a report's samples, for each metric that has labels.

    The samples with labels say how far the judge is off, and the judge's scores of the others make the answer precise
    (`corrected_mean`). A row that was scored several times counts by the mean of its draws. A live sample weighs
    1 / `Record.rate`; what was scored only because of feedback is not in.

    Args:
        report: The results.
        labels: The file of labels: the download of the page that `ragstone label` makes of what `ragstone choose` drew.
        drawn_at_random: The labelled samples were drawn at random, although not by `ragstone choose`.

    Raises:
        CalibrationError: A label cannot be used; labels follow the judge's verdicts, or were not drawn at random.
        ImportError: scipy is not installed (the extra `calibrate`).
    """
    (matched,) = _matched(labels, [report], drawn_at_random=drawn_at_random)
    by_key: dict[Key, list[LabelledRecord]] = {}
    for each in matched:
        by_key.setdefault(each.info.key, []).append(each)
    rows, slicing = _rows(report, by_key), report.aggregates().metadata_keys()
    metrics = {
        name: _correction(summary, by_key[key], rows[key], slicing)
        for name, summary in report.summary().items()
        if (key := summary.info.key) in by_key
    }
    return Corrections(report, metrics)


def corrected_pairs(
    a: "Report", b: "Report", labels: str | Path, *, drawn_at_random: bool = False
) -> Callable[[MetricInfo, MetricInfo, Sequence[Moved]], ByLabels | None]:
    """Return what tells of one metric's pairs what people would say of b - a; None where no pair has labels.

    Args:
        a: The results of one system.
        b: Those of the other.
        labels: The file of labels of what `ragstone choose A B` drew.
        drawn_at_random: As for `corrected`, which raises the same.
    """
    matched = _matched(labels, [a, b], drawn_at_random=drawn_at_random)
    sides = [{(each.info.key, each.record.sample_id, each.record.row): each for each in side} for side in matched]

    def difference(info_a: MetricInfo, info_b: MetricInfo, pairs: Sequence[Moved]) -> ByLabels | None:
        metadata = {name: same[0].metadata for (name, _), same in _rows(a, [info_a.key])[info_a.key].items()}
        taken: list[_Row] = []
        rest: list[_Row] = []
        skips: list[bool] = []
        for pair in pairs:
            row = _Row(pair.b - pair.a, 1.0, metadata.get(pair.sample_id, {}))
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
        return _estimated(taken, rest, sum(skips), notes, corrected_difference)[0]

    return difference


def _matched(paths: str | Path, reports: "Sequence[Report]", *, drawn_at_random: bool) -> list[list[LabelledRecord]]:
    """Return each report's labelled samples, where these stand for all."""
    load_extra("scipy.stats", "a corrected mean")
    matched = match_in_each(paths, read_labels(paths), reports)
    labels = [label for side in matched for each in side for label in each.labels]
    if shown := sum(label.verdicts_shown for label in labels):
        raise CalibrationError(
            f"--labels {paths}: {shown:,} of {count(len(labels), 'label')} were made with the judge's verdicts in "
            "sight, and such labels follow the judge; label again without --show-verdicts"
        )
    chosen = sum(label.draw is None for label in labels)
    if chosen and not drawn_at_random:
        raise CalibrationError(
            f"--labels {paths}: {chosen:,} of {count(len(labels), 'label')} are of samples that `ragstone choose` did "
            "not draw, so they may not stand for the others; label what it draws, or say that yours were drawn by "
            "chance: --drawn-at-random"
        )
    return matched


class _Row(NamedTuple):
    """A sample, or the two of a pair; people's score of it, where there is one, and what was labelled."""

    judge: float
    weight: float  # 1 / the chance to be scored
    metadata: Mapping[str, object]
    people: float = 0.0
    labelled: Sequence[LabelledRecord] = ()

    @property
    def draw(self) -> Draw | None:
        return self.labelled[0].labels[0].draw


def _rows(report: "Report", wanted: Iterable[Key]) -> dict[Key, dict[tuple[str, str], list[_Row]]]:
    """Return the rows that each metric's mean is of, by the sample's id and digest."""
    infos = {info.key: info for info in report.metrics}
    rows: dict[Key, dict[tuple[str, str], list[_Row]]] = {key: {} for key in wanted}
    for records in by_row(report.results()):
        sample = report.sample(records[0]) or Sample()
        place = records[0].sample_id, sample_digest(sample)
        for key, of_metric in by_metric(each for each in records if each.chosen_by != FEEDBACK).items():
            if key in rows and (row := Worst.of(of_metric, infos[key])) is not None:
                rows[key].setdefault(place, []).append(_Row(row.value, weight_of(row.record), sample.metadata))
    return rows


@dataclass(frozen=True, slots=True)
class _Data:
    """What is estimated from: people's scores of the first samples, and what is known of all."""

    people: "Numbers"
    judge: "Numbers"
    weights: "Numbers"
    chances: "Numbers"  # of each labelled sample, to be drawn
    groups: "NDArray[np.str_] | None"
    estimator: Callable[..., Estimate]

    @classmethod
    def of(cls, taken: Sequence[_Row], rest: Sequence[_Row], estimator: Callable[..., Estimate]) -> "_Data":
        people, judge = np.array([row.people for row in taken]), np.array([row.judge for row in (*taken, *rest)])
        weights, chances, groups = np.array([row.weight for row in (*taken, *rest)]), np.ones(len(taken)), None
        draws = [draw for row in taken if (draw := row.draw) is not None]
        if len(draws) == len(taken):
            chances = np.array([draw.chance for draw in draws])
            if all(draw.group is not None for draw in draws):
                field = draws[0].group_field or ""
                others = [slice_value(row.metadata.get(field)) or f"row {i}" for i, row in enumerate(rest)]
                groups = np.array([*(str(draw.group) for draw in draws), *others])
        return cls(people, judge, weights, chances, groups, estimator)

    def part(self, inside: "NDArray[np.bool_]") -> "_Data":
        mine, groups = inside[: len(self.people)], None if self.groups is None else self.groups[inside]
        of_all = self.judge[inside], self.weights[inside]
        return _Data(self.people[mine], *of_all, self.chances[mine], groups, self.estimator)

    def alone(self, values: "Numbers", estimator: Callable[..., Estimate]) -> Estimate:
        """Return the mean of what the labelled samples have, with the interval beside a judge who says nothing."""
        n = len(values)
        mine = self.part(np.arange(len(self.judge)) < n)
        found = replace(mine, people=values, judge=np.zeros(n), estimator=estimator).corrected()
        return replace(found, mean=float(np.average(values, weights=mine.weights / mine.chances)))

    def corrected(self) -> Estimate:
        n = len(self.people)
        weights = self.weights[:n] / self.chances
        how: dict[str, Any] = {}
        if np.ptp(weights) > TIE * weights.max() or np.ptp(self.weights) > TIE:
            how["weights"] = weights
        if np.ptp(self.weights) > TIE:
            how["weights_rest"] = self.weights[n:]
        if self.groups is not None:
            how |= {"groups": self.groups[:n].tolist(), "groups_rest": self.groups[n:].tolist()}
        return self.estimator(self.people, self.judge[:n], self.judge[n:], **how)

    @property
    def errors(self) -> "Numbers":
        """The judge's on each labelled sample; rounding makes no difference of equal ones."""
        return np.round(self.judge[: len(self.people)] - self.people, 9)

    @property
    def off(self) -> Estimate:
        scale = max(1.0, float(np.abs(self.errors).max()))  # errors of differences reach from -2 to 2
        found = self.alone(self.errors / scale, corrected_difference)
        return replace(found, mean=scale * found.mean, low=scale * found.low, high=scale * found.high)


def _estimated(
    taken: Sequence[_Row],
    rest: Sequence[_Row],
    skipped: int,
    notes: Sequence[tuple[int, str, str]],
    estimator: Callable[..., Estimate],
) -> tuple[ByLabels, _Data | None]:
    """Return what labels and judge say together, and what it was computed from, where there is a corrected mean."""
    n = len(taken)
    samples = [each for row in taken for each in row.labelled]
    draws = [each.labels[0].draw for each in samples]
    notes = [*notes, (draws.count(None), "labelled sample", "not drawn by `ragstone choose`; taken to be random")]
    found = ByLabels(
        n,
        skipped,
        # A criterion asks its one question about the whole sample.
        by_items=any(each.by_items and each.labels[0].kind != "criterion" for each in samples),
        by_judges_items=any(each.by_judges_items for each in samples),
        missing=sum(each.missing for each in samples) / max(1, len(samples)),
        notes=tuple(f"{count(of_note, noun)} {why}." for of_note, noun, why in notes if of_note),
    )
    if n < LEAST_LABELS:
        what = "label" if estimator is corrected_mean else "labelled pair"
        why = f"{count(n, what)}; fewer than {LEAST_LABELS} say too little of the judge's error"
        return replace(found, why=why), None
    data = _Data.of(taken, rest, estimator)
    alone = data.alone(data.people, estimator)
    found = replace(found, people=Mean(n, alone.mean, alone.low, alone.high), off=data.off)
    strata = {(draw.stratum, draw.strata) for draw in draws if draw is not None}
    if len(strata) == 1 and (many := strata.pop()[1]) > 1:
        why = f"all labels are of one stratum of {many}, and say nothing of the others"
        return replace(found, people=Mean(n, alone.mean), why=why), None
    if np.ptp(data.judge) <= TIE:
        why = f"the judge says {number(float(data.judge[0]))} of each, so that the labels alone count"
        return replace(found, why=why), None
    return replace(found, corrected=data.corrected()), data


def _correction(
    summary: MetricSummary,
    matched: Sequence[LabelledRecord],
    rows: Mapping[tuple[str, str], list[_Row]],
    slicing: Sequence[str],
) -> Correction:
    valued = [(each, value) for each in matched if (value := each.value) is not None]
    places = [rows.get((each.record.sample_id, sample_digest(each.sample))) for each, _ in valued]
    taken = [
        row.pop()._replace(people=value, labelled=[each])
        for (each, value), row in zip(valued, places, strict=True)
        if row
    ]
    rest = [row for same in rows.values() for row in same]
    skipped, n = sum(each.skipped for each in matched), len(taken)
    notes = [
        (len(matched) - skipped - len(valued), "sample", "without a score by its labels (an item is open); left out"),
        (len(valued) - n, "labelled sample", "scored only because of feedback; left out"),
    ]
    found, data = _estimated(taken, rest, skipped, notes, corrected_mean)
    correction = Correction(**{each.name: getattr(found, each.name) for each in fields(found)}, summary=summary)
    if data is None:
        return correction
    grouping = {draw.group_field for row in taken if (draw := row.draw) is not None}
    words = {
        name: np.array([slice_value(row.metadata.get(name)) or "" for row in (*taken, *rest)])
        for name in slicing
        if name not in grouping
    }
    samples = [row.labelled[0].sample for row in taken]
    sizes = {
        "response length": np.array([len(each.response or "") for each in samples], np.float64),
        "number of contexts": np.array([len(each.retrieved_contexts) for each in samples], np.float64),
    }
    of_both = data.people.tolist(), data.judge[:n].tolist(), None if data.groups is None else data.groups[:n].tolist()
    sensitivity, specificity = sensitivity_specificity(*of_both)
    return replace(
        correction,
        kappa=agreement(*of_both).kappa,
        sensitivity=sensitivity,
        specificity=specificity,
        links=tuple(_links(data, sizes, {name: values[:n] for name, values in words.items()})),
        slices=tuple(_slices(data, words)),
    )


def _links(data: _Data, sizes: Mapping[str, "Numbers"], words: Mapping[str, "NDArray[np.str_]"]) -> Iterator[Link]:
    """Yield whether the judge's error goes with sizes (Spearman) and words (Kruskal and Wallis), by Holm's p."""
    stats = load_extra("scipy.stats", "a corrected mean")
    errors = data.errors
    if data.groups is not None:  # whole groups were drawn: they are what is independent
        _, first, place = np.unique(data.groups[: len(errors)], return_index=True, return_inverse=True)
        errors, *means = (np.bincount(place, each) / np.bincount(place) for each in (errors, *sizes.values()))
        sizes = dict(zip(sizes, means, strict=True))
        words = {name: values[first] for name, values in words.items()}
    found: list[Link] = []
    for name, size in sizes.items():
        if np.ptp(size) > 0 and np.ptp(errors) > 0:
            rho, p = stats.spearmanr(size, errors)
            found.append(Link(name, float(p), float(rho)))
    for name, values in words.items():
        parts = [part for value in np.unique(values) if len(part := errors[values == value]) >= LEAST_LABELS]
        if len(parts) > 1 and np.ptp(np.concatenate(parts)) > 0:
            found.append(Link(name, float(stats.kruskal(*parts).pvalue)))
    least = 0.0
    for i, each in enumerate(sorted(found, key=lambda each: each.p)):
        least = max(least, min(1.0, (len(found) - i) * each.p))
        yield replace(each, p=least)


def _slices(data: _Data, words: Mapping[str, "NDArray[np.str_]"]) -> Iterator[Slice]:
    n = len(data.people)
    for name, values in words.items():
        for value in filter(None, dict.fromkeys(values.tolist())):
            inside = values == value
            labels = int(inside[:n].sum())
            mine = data.part(inside)
            yield Slice(name, value, labels, *((mine.off, mine.corrected()) if labels >= LEAST_LABELS else ()))
