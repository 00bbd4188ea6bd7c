"""Making a calibration from results and labels of them, and naming what it is of."""

from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.labels.calibration import Calibration, CalibrationError
from ragstone.labels.fit import FitResult, Labelled, cross_fit, load_extra
from ragstone.labels.label_file import WHOLE, LabelledRecord, items_of, match_labels, metric_items, read_labels
from ragstone.metrics.base import CalibratedItem
from ragstone.metrics.setup import identity_of
from ragstone.sample import Sample, SampleField

if TYPE_CHECKING:
    from ragstone.report import Report


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
    load_extra("sklearn.linear_model", "fitting a calibration")
    labels = read_labels(path)
    (matched,) = match_labels(path, labels, [report])
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
    calibration = Calibration(
        **identity,
        weight=fit.fitted.weight,
        intercept=fit.fitted.intercept,
        threshold=fit.threshold,
        labels=sum(len(row.labels) for row in rows),
        samples=len(rows),
        agreement=fit.agreement,
    )
    return calibration, fit, [note for count, note in notes if count]


def _item(metric: str, kinds: set[str], path: str | Path) -> CalibratedItem:
    for item in metric_items(metric):
        if item in kinds:
            return item
    raise CalibrationError(
        f"--labels {path}: holds labels of each {' and each '.join(sorted(kinds)) or 'skipped sample'}; of {metric} "
        f"only {' and '.join(metric_items(metric))} can be calibrated: label with `one score`"
    )


def _row(labelled: LabelledRecord, item: CalibratedItem) -> Labelled | None:
    """Return a sample's items with their labels; None where it has none of this kind."""
    answers = {label.item: label.answer for label in labelled.labels if label.kind == item and not label.skipped}
    if not answers:
        return None
    score, record = labelled.score, labelled.record
    group = _group(labelled.sample, labelled.info.setup.get("source"))
    if item == WHOLE:
        values = [float(answer) for answer in answers.values() if isinstance(answer, (int, float))]
        return Labelled(group, (score.value,), values)
    items = [(kind, each) for kind, each in items_of(score, labelled.info.items) if kind.kind == item]
    if len(answers) < len(items):
        raise CalibrationError(
            f"{record.sample_id}: {len(answers)} of {len(items)} items have a label; label all or none"
        )
    chosen = None
    if item == "sentence":
        verdicts = [verdict for verdict in score.verdicts if verdict.kind == "sentence"]
        judged = [verdict.probability for verdict in verdicts]
        chosen = [verdict.verdict == "relevant" for verdict in verdicts]
    else:  # all questions of a response have the probability that it is committal
        committal = next(verdict.probability for verdict in score.verdicts if verdict.kind == "question")
        judged = [None if committal is None else 1.0 - committal]
    known = [p for p in judged if p is not None]
    if len(known) < len(judged):
        raise CalibrationError(
            f"{record.sample_id}: the judge {record.judge!r} gives no probabilities; calibrate the score"
        )
    return Labelled(group, known, [float(answers[each.id] == kind.choices[0]) for kind, each in items], chosen)


def _group(sample: Sample, source: SampleField | None) -> str:
    """Return what samples of one opinion share: the question, or the source of a summary."""
    fields: tuple[SampleField, ...] = (source or "user_input", "retrieved_contexts", "response")
    texts = ("\n".join(sample.texts(field)) for field in fields)
    return next(filter(None, texts), "")
