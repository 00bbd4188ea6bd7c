"""Making a calibration: score labelled samples, fit, and name what it is of."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragstone.labels.calibration import (
    Calibration,
    CalibrationError,
    embedder_of,
    plain_version,
    prompts_digest,
    settings_of,
)
from ragstone.labels.fit import FitResult, Labelled, Method, cross_fit, load_sklearn
from ragstone.labels.label_rows import LabelledSample, Labels
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.outcome import Score, Unscored

if TYPE_CHECKING:
    from ragstone.batch.progress import Shown


def prepared(metric: Metric, labels: Labels, votes: int = 1) -> Metric:
    """Return the metric as it gathers what a calibration is fitted on."""
    if metric.calibration is not None:
        raise CalibrationError("calibration: the metric has one; make a new one without it")
    changes: dict[str, Any] = {}
    if labels.item != "score" or votes > 1:
        changes["asking"] = "one_by_one"
    if labels.splitter is not None:
        changes["splitter"] = labels.splitter
    metric = replace(metric, **changes)
    if votes == 1:
        return metric
    as_they_are = Calibration(**_identity(metric, labels.item), votes=votes, method="none", threshold=0.5)
    return replace(metric, calibration=as_they_are)


def _identity(metric: Metric, item: CalibratedItem) -> dict[str, Any]:
    return {
        "metric": metric.name,
        "version": plain_version(metric),
        "prompts": prompts_digest(metric),
        "judge": metric.judge.model,
        "embedder": embedder_of(metric, item),
        "item": item,
        "settings": settings_of(metric, item),
        "one_by_one": metric.asks_one_by_one,
    }


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
            gathered.append(_labelled(labelled, result.outcome, labels.item, metric))
    return gathered, dict(unscored)


def _labelled(labelled: LabelledSample, score: Score, item: CalibratedItem, metric: Metric) -> Labelled:
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
            f"line {labelled.line}: {len(labelled.labels)} labels for the {len(judged)} items that were judged; read "
            "the labels with the metric, its splitter and language, that is to be calibrated"
        )
    known = [p for p in judged if p is not None]
    if len(known) < len(judged):
        raise CalibrationError(
            f"line {labelled.line}: the judge {metric.judge.model!r} gives no probabilities; have it asked several "
            "times about each item, for votes: --repeat 5"
        )
    return Labelled(labelled.group, known, labelled.labels, chosen)


def make(
    metric: Metric,
    labels: Labels,
    *,
    votes: int = 1,
    method: Literal["auto"] | Method = "auto",
    width: float = 0.1,
    max_concurrency: int = 16,
    journal: str | Path | None = None,
    progress: "Shown" = "auto",
) -> tuple[Calibration, FitResult, dict[str, int]]:
    """Score labelled samples by a metric and fit how its judge's probabilities map to the labels.

    Returns the calibration, the fit that it came from, and how many labelled samples could not be scored, by reason.
    """
    load_sklearn("linear_model")  # before the judge is asked
    asked = prepared(metric, labels, votes)
    samples, unscored = gather(asked, labels, max_concurrency=max_concurrency, journal=journal, progress=progress)
    if not samples:
        raise CalibrationError(f"no sample could be scored: {next(iter(unscored), 'there is none')}")
    fit = cross_fit(samples, labels.item, method=method, width=width)
    calibration = Calibration(
        **_identity(asked, labels.item),
        **dict(fit.fitted),
        votes=votes,
        method=fit.method,
        threshold=fit.threshold,
        labels=sum(len(sample.labels) for sample in samples),
        samples=len(samples),
        agreement=fit.agreement,
    )
    return calibration, fit, unscored
