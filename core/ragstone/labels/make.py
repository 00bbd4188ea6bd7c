"""Making a calibration: score labelled samples, fit, and name what it is of."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.labels.calibration import Calibration, CalibrationError
from ragstone.labels.fit import FitResult, Labelled, cross_fit, load_sklearn
from ragstone.labels.label_file import WHOLE, LabelledRecord, items_of, match_labels, read_labels
from ragstone.labels.label_rows import LabelledSample, Labels, group_of
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.metrics.setup import identity_of, setup_of
from ragstone.outcome import Score, Unscored
from ragstone.registry import metric_class, metric_names

if TYPE_CHECKING:
    from ragstone.batch.runner import Shown
    from ragstone.report import Report


def prepared(metric: Metric, labels: Labels) -> Metric:
    """Return the metric as it gathers what a calibration is fitted on."""
    if metric.calibration is not None:
        raise CalibrationError("calibration: the metric has one; make a new one without it")
    changes: dict[str, Any] = {}
    if labels.item != "score":
        changes["asking"] = "one_by_one"
    if labels.splitter is not None:
        changes["splitter"] = labels.splitter
    return replace(metric, **changes)


def _identity(metric: Metric, item: CalibratedItem) -> dict[str, Any]:
    return identity_of(metric.name, metric.version, metric.judge.model, setup_of(metric), item)


def gather(
    metric: Metric,
    labels: Labels,
    *,
    max_concurrency: int = 16,
    journal: str | Path | None = None,
    progress: "Shown" = "auto",
) -> tuple[list[Labelled], dict[str, int]]:
    """Score the labelled samples: return what the judge said of each item, and how many are unscored, by reason."""
    from ragstone.batch import evaluate

    samples = [labelled.sample for labelled in labels.samples]
    report = evaluate(samples, [metric], max_concurrency=max_concurrency, journal=journal, progress=progress)
    gathered: list[Labelled] = []
    unscored: Counter[str] = Counter()
    for labelled, result in zip(labels.samples, report.results(), strict=True):
        if isinstance(result.outcome, Unscored):
            unscored[f"{result.outcome.reason}: {result.outcome.detail}"] += 1
        else:
            gathered.append(_labelled(labelled, result.outcome, labels.item, metric.judge.model))
    return gathered, dict(unscored)


def _labelled(labelled: LabelledSample, score: Score, item: CalibratedItem, judge: str) -> Labelled:
    chosen = None
    if item == "score":
        return Labelled(labelled.group, (score.value,), labelled.labels)
    if item == "sentence":
        verdicts = [verdict for verdict in score.verdicts if verdict.kind == "sentence"]
        judged, chosen = [v.probability for v in verdicts], [v.verdict == "relevant" for v in verdicts]
    else:  # all questions of a response have the probability that it is committal
        committal = next(verdict.probability for verdict in score.verdicts if verdict.kind == "question")
        judged = [None if committal is None else 1.0 - committal]
    if len(judged) != len(labelled.labels):
        raise CalibrationError(
            f"{labelled.name}: {len(labelled.labels)} labels for the {len(judged)} items that were judged; read "
            "the labels with the metric, its splitter and language, that is to be calibrated"
        )
    known = [p for p in judged if p is not None]
    if len(known) < len(judged):
        raise CalibrationError(f"{labelled.name}: the judge {judge!r} gives no probabilities; calibrate the score")
    return Labelled(labelled.group, known, labelled.labels, chosen)


def make(
    metric: Metric,
    labels: Labels,
    *,
    max_concurrency: int = 16,
    journal: str | Path | None = None,
    progress: "Shown" = "auto",
) -> tuple[Calibration, FitResult, dict[str, int]]:
    """Score labelled samples by a metric and fit how its judge's probabilities map to the labels.

    Returns the calibration, the fit that it came from, and how many labelled samples could not be scored, by reason.
    """
    load_sklearn("linear_model")  # before the judge is asked
    asked = prepared(metric, labels)
    samples, unscored = gather(asked, labels, max_concurrency=max_concurrency, journal=journal, progress=progress)
    if not samples:
        raise CalibrationError(f"no sample could be scored: {next(iter(unscored), 'there is none')}")
    fit = cross_fit(samples, labels.item)
    return _calibration(_identity(asked, labels.item), samples, fit), fit, unscored


def _calibration(identity: dict[str, Any], samples: list[Labelled], fit: FitResult) -> Calibration:
    return Calibration(
        **identity,
        **dict(fit.fitted),
        threshold=fit.threshold,
        labels=sum(len(sample.labels) for sample in samples),
        samples=len(samples),
        agreement=fit.agreement,
    )


def from_results(report: "Report", path: str | Path) -> tuple[Calibration, FitResult, list[str]]:
    """Fit how the probabilities or scores in results map to labels of them. No judge is asked.

    Args:
        report: The results.
        path: The file of labels (`ragstone.labels.label_file`).

    Returns:
        The calibration, the fit that it came from, and what was left out or is doubtful, in sentences.

    Raises:
        CalibrationError: A label cannot be used, or the results do not say enough of the metric.
    """
    load_sklearn("linear_model")
    labels = read_labels(path)
    matched = match_labels(path, labels, report)
    if len(keys := {each.info.key for each in matched}) > 1:
        names = ", ".join(sorted(" ".join(key) for key in keys))
        raise CalibrationError(f"--labels {path}: holds labels of several metrics, versions or judges: {names}")
    info = matched[0].info
    if "+cal:" in info.version:
        raise CalibrationError(f"{info.name}: these scores are calibrated; score and label without --calibration")
    kinds = {label.kind for each in matched for label in each.labels if not label.skipped}
    item = _item(info.name, kinds, path)
    rows: list[Labelled] = []
    used = shown = 0
    for each in matched:
        if (row := _row(each, item)) is not None:
            rows.append(row)
            mine = [label for label in each.labels if label.kind == item]
            used += len(mine)
            shown += any(label.verdicts_shown for label in mine)
    try:
        identity = identity_of(info.name, info.version, info.judge, info.setup, item)
    except KeyError:
        raise CalibrationError(
            f"{info.name}: the results do not say how it was set up; calibrate a file that `ragstone score --out FILE` "
            "or Report.to_json wrote"
        ) from None
    fit = cross_fit(rows, item)
    skipped = sum(each.skipped for each in matched)
    notes = [
        (skipped, f"{skipped} sample(s) were skipped and are left out"),
        (more := len(labels) - skipped - used, f"{more} label(s) of another kind than {item} are left out"),
        (shown, f"{shown} sample(s) were labelled with the judge's verdicts in sight: such labels agree too readily"),
    ]
    return _calibration(identity, rows, fit), fit, [note for count, note in notes if count]


def _item(metric: str, kinds: set[str], path: str | Path) -> CalibratedItem:
    for item in metric_items(metric):
        if item in kinds:
            return item
    raise CalibrationError(
        f"--labels {path}: holds labels of each {' and each '.join(sorted(kinds)) or 'skipped sample'}; of {metric} "
        f"only {' and '.join(metric_items(metric))} can be calibrated: label with `one score`"
    )


def metric_items(name: str) -> tuple[CalibratedItem, ...]:
    """Return what can be calibrated of a metric: of one of your own, its score."""
    own = metric_class(name).calibrated_items if name in metric_names() else ()
    return (*own, WHOLE)


def _row(labelled: LabelledRecord, item: CalibratedItem) -> Labelled | None:
    """Return a sample's items with their labels; None where it has none of this kind."""
    answers = {label.item: label.answer for label in labelled.labels if label.kind == item and not label.skipped}
    if not answers:
        return None
    sample_id, source = labelled.record.sample_id, labelled.info.setup.get("source")
    if item == WHOLE:
        values = [float(answer) for answer in answers.values() if isinstance(answer, (int, float))]
    else:
        items = [(kind, each) for kind, each in items_of(labelled.score, labelled.info.items) if kind.kind == item]
        if len(answers) < len(items):
            raise CalibrationError(f"{sample_id}: {len(answers)} of {len(items)} items have a label; label all or none")
        values = [float(answers[each.id] == kind.choices[0]) for kind, each in items]
    sample = LabelledSample(sample_id, labelled.sample, tuple(values), group_of(labelled.sample, source))
    return _labelled(sample, labelled.score, item, labelled.record.judge)
