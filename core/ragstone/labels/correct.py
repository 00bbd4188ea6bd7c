"""What people would say of all samples: the judge's scores of them all, corrected by people's labels of a few."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragstone.labels.calibration import CalibrationError
from ragstone.labels.estimates import Estimate, corrected_difference, corrected_mean
from ragstone.labels.fit import load_extra
from ragstone.labels.label_file import LabelledRecord, match_labels, read_labels
from ragstone.reporting.aggregates import Key, MetricSummary, Worst, by_metric, by_row, slice_value, weight_of
from ragstone.reporting.corrections import Correction, Corrections, Link, Slice
from ragstone.reporting.statistics import TIE
from ragstone.reporting.statistics import Estimate as Mean
from ragstone.reporting.tables import count, number
from ragstone.store.pending import FEEDBACK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragstone.reporting import Report

    Numbers = NDArray[np.float64]

LEAST = 20
"""Fewer labels give no corrected mean: they say too little of how much the judge's error varies."""
_TOO_FEW = f"fewer than {LEAST} say too little of the judge's error"


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
    load_extra("scipy.stats", "a corrected mean")
    by_key: dict[Key, list[LabelledRecord]] = {}
    for each in _matched(labels, report, drawn_at_random=drawn_at_random):
        by_key.setdefault(each.info.key, []).append(each)
    rows = _rows(report, by_key)
    fields = report.aggregates().metadata_keys()
    metrics = {
        name: _correction(summary, by_key[key], rows[key], fields)
        for name, summary in report.summary().items()
        if (key := summary.info.key) in by_key
    }
    return Corrections(report, metrics)


def _matched(path: str | Path, report: "Report", *, drawn_at_random: bool) -> list[LabelledRecord]:
    """Return the labelled samples, where these stand for all."""
    matched = match_labels(path, read_labels(path), report)
    labels = [label for each in matched for label in each.labels]
    if shown := sum(label.verdicts_shown for label in labels):
        raise CalibrationError(
            f"--labels {path}: {shown:,} of {count(len(labels), 'label')} were made with the judge's verdicts in "
            "sight, and such labels follow the judge; label again without --show-verdicts"
        )
    chosen = sum(label.draw is None for label in labels)
    if chosen and not drawn_at_random:
        raise CalibrationError(
            f"--labels {path}: {chosen:,} of {count(len(labels), 'label')} are of samples that `ragstone choose` did "
            "not draw, so they may not stand for the others; label what it draws, or say that yours were drawn by "
            "chance: --drawn-at-random"
        )
    return matched


@dataclass(frozen=True, slots=True)
class _Row:
    value: float
    weight: float
    metadata: Mapping[str, object]


def _rows(report: "Report", wanted: Mapping[Key, object]) -> dict[Key, dict[str, dict[int, _Row]]]:
    """Return the rows that each metric's mean is of, by the sample's id and the row's place."""
    infos = {info.key: info for info in report.metrics}
    rows: dict[Key, dict[str, dict[int, _Row]]] = {key: {} for key in wanted}
    for records in by_row(report.results()):
        sample = report.sample(records[0])
        for key, of_metric in by_metric(each for each in records if each.chosen_by != FEEDBACK).items():
            if key in rows and (row := Worst.of(of_metric, infos[key])) is not None:
                known = _Row(row.value, weight_of(row.record), {} if sample is None else sample.metadata)
                rows[key].setdefault(row.record.sample_id, {})[row.record.row] = known
    return rows


def _take(rows: dict[str, dict[int, _Row]], labelled: LabelledRecord) -> _Row | None:
    """Take a labelled sample's row out; None where it was scored only because of feedback."""
    of_id = rows.get(labelled.record.sample_id, {})
    # By its place where several have the id; in a database, places move as samples come.
    place = labelled.record.row if labelled.record.row in of_id else next(iter(of_id), None)
    return None if place is None else of_id.pop(place)


@dataclass(frozen=True, slots=True)
class _Data:
    """What is estimated from: people's scores of the first samples, and what is known of all."""

    people: "Numbers"
    judge: "Numbers"
    weights: "Numbers"
    groups: "NDArray[np.str_] | None" = None

    def of(self, part: "NDArray[np.bool_]") -> "_Data":
        """Return a part of the samples."""
        groups = None if self.groups is None else self.groups[part]
        return _Data(self.people[part[: len(self.people)]], self.judge[part], self.weights[part], groups)

    def alone(self, values: "Numbers", estimator: Callable[..., Estimate] = corrected_mean) -> Estimate:
        """Return the mean of what the labelled samples have: that of a judge who says nothing, with no others."""
        n = len(values)
        groups = None if self.groups is None else self.groups[:n]
        return _Data(values, np.zeros(n), self.weights[:n], groups).corrected(estimator)

    def corrected(self, estimator: Callable[..., Estimate] = corrected_mean) -> Estimate:
        """Return the corrected mean."""
        n = len(self.people)
        how: dict[str, Any] = {}
        if any(np.ptp(part) > TIE * part.max() for part in (self.weights[:n], self.weights[n:]) if len(part)):
            how |= {"weights": self.weights[:n], "weights_rest": self.weights[n:]}
        if self.groups is not None:
            how |= {"groups": self.groups[:n].tolist(), "groups_rest": self.groups[n:].tolist()}
        return estimator(self.people, self.judge[:n], self.judge[n:], **how)

    @property
    def off(self) -> "Numbers":
        """The judge's error on each labelled sample; rounding makes no difference of equal ones."""
        return np.round(self.judge[: len(self.people)] - self.people, 9)


def _correction(
    summary: MetricSummary, matched: Sequence[LabelledRecord], rows: dict[str, dict[int, _Row]], fields: Sequence[str]
) -> Correction:
    valued = [(each, value) for each in matched if (value := each.value) is not None]
    taken = [(each, value, row) for each, value in valued if (row := _take(rows, each)) is not None]
    skipped, n = sum(each.skipped for each in matched), len(taken)
    of_note = [
        (len(matched) - skipped - len(valued), "without a score: an item is open, or the formula is 0 of 0; left out"),
        (len(valued) - n, "scored only because of feedback; left out"),
        (sum(each.labels[0].draw is None for each, *_ in taken), "not drawn by `ragstone choose`; taken to be random"),
    ]
    notes = [f"{count(n_of, 'labelled sample')} {why}." for n_of, why in of_note if n_of]
    found = Correction(
        summary,
        n,
        skipped,
        by_items=any(each.by_items for each, *_ in taken),
        by_judges_items=any(each.by_judges_items for each, *_ in taken),
        missing=sum(each.missing for each, *_ in taken) / max(1, n),
        notes=tuple(notes),
    )
    if n < LEAST:
        return replace(found, why=f"{count(n, 'label')}; {_TOO_FEW}")
    everyone = [row for *_, row in taken] + [row for of_id in rows.values() for row in of_id.values()]
    data, group_field = _data([each for each, *_ in taken], [value for _, value, _ in taken], everyone)
    alone, off = data.alone(data.people), data.alone(data.off, corrected_difference)
    found = replace(found, people=Mean(n, alone.mean, alone.low, alone.high), off=off)
    strata = {(draw.stratum, draw.strata) for each, *_ in taken if (draw := each.labels[0].draw) is not None}
    if len(strata) == 1 and (only := strata.pop())[1] > 1:
        why = f"all labels are of one stratum of {only[1]} ({only[0]}) and say nothing of the others"
        return replace(found, people=Mean(n, alone.mean), why=why)
    if np.ptp(data.judge) <= TIE:
        return replace(found, why=f"the judge gives each sample {number(data.judge[0])}: use the labels alone")
    words = {
        name: np.array([slice_value(row.metadata.get(name)) or "" for row in everyone])
        for name in fields
        if name != group_field
    }
    samples = [each.sample for each, *_ in taken]
    sizes = {
        "response length": np.array([len(each.response or "") for each in samples], np.float64),
        "number of contexts": np.array([len(each.retrieved_contexts) for each in samples], np.float64),
    }
    return replace(
        found,
        corrected=data.corrected(),
        links=_links(data, sizes, {name: values[:n] for name, values in words.items()}),
        slices=tuple(_slices(data, words)),
    )


def _data(
    labelled: Sequence[LabelledRecord], values: Sequence[float], rows: Sequence[_Row]
) -> tuple[_Data, str | None]:
    """Return what is estimated from, and the field that names the groups; the rows of the labelled come first."""
    n = len(labelled)
    weights = np.array([row.weight for row in rows])
    draws = [draw for each in labelled if (draw := each.labels[0].draw) is not None]
    groups, group_field = None, None
    total = weights.sum()
    if len(draws) == n:
        weights[:n] /= [draw.chance for draw in draws]
        group_field = draws[0].group_field
        if all(draw.group is not None for draw in draws):
            others = [slice_value(row.metadata.get(group_field or "")) or f"row {i}" for i, row in enumerate(rows[n:])]
            groups = np.array([str(draw.group) for draw in draws] + others)
    weights[:n] *= total / weights[:n].sum()  # of what was drawn, only the beginning may have been labelled
    judge = np.array([row.value for row in rows])
    return _Data(np.array(values, np.float64), judge, weights, groups), group_field


def _links(data: _Data, sizes: Mapping[str, "Numbers"], words: Mapping[str, "NDArray[np.str_]"]) -> tuple[Link, ...]:
    """Return whether the judge's error goes with sizes (Spearman) and words (Kruskal and Wallis)."""
    stats = load_extra("scipy.stats", "a corrected mean")
    off = data.off
    if data.groups is not None:  # whole groups were drawn: they are what is independent
        _, first, place = np.unique(data.groups[: len(off)], return_index=True, return_inverse=True)
        off, *means = (np.bincount(place, each) / np.bincount(place) for each in (off, *sizes.values()))
        sizes = dict(zip(sizes, means, strict=True))
        words = {name: values[first] for name, values in words.items()}
    found: list[Link] = []
    for name, size in sizes.items():
        if np.ptp(size) > 0 and np.ptp(off) > 0:
            rho, p = stats.spearmanr(size, off)
            found.append(Link(name, float(p), float(rho)))
    for name, values in words.items():
        parts = [
            off[values == value]
            for value, labels in zip(*np.unique(values, return_counts=True), strict=True)
            if labels >= LEAST
        ]
        if len(parts) > 1 and np.ptp(np.concatenate(parts)) > 0:
            found.append(Link(name, float(stats.kruskal(*parts).pvalue)))
    return tuple(_holm(found))


def _holm(links: Sequence[Link]) -> Iterator[Link]:
    least = 0.0
    for i, each in enumerate(sorted(links, key=lambda each: each.p)):
        least = max(least, min(1.0, (len(links) - i) * each.p))
        yield replace(each, p=least)


def _slices(data: _Data, words: Mapping[str, "NDArray[np.str_]"]) -> Iterator[Slice]:
    n = len(data.people)
    for name, values in words.items():
        for value in filter(None, dict.fromkeys(values.tolist())):
            part = values == value
            if (labels := int(part[:n].sum())) < LEAST:
                yield Slice(name, value, labels)
                continue
            mine = data.of(part)
            yield Slice(name, value, labels, mine.alone(mine.off, corrected_difference), mine.corrected())
