"""Making a calibration: score labelled samples, fit, and name what it is of."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragstone.judge import Embedder
from ragstone.labels.calibration import (
    EMBEDDED,
    WITH_EMBEDDER,
    WITHOUT_EMBEDDER,
    Calibration,
    CalibrationError,
    plain_version,
    prompts_digest,
    settings_of,
)
from ragstone.labels.fit import Found, Labelled, Method, find, load_sklearn
from ragstone.labels.label_rows import LabelledSample, Labels
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.metrics.context_relevancy import ContextRelevancy
from ragstone.metrics.items import cosines_to_first, sentences_of
from ragstone.outcome import Score, Unscored

if TYPE_CHECKING:
    from ragstone.batch.progress import Shown


@dataclass(frozen=True, slots=True)
class Made:
    """A calibration, with what is to be told of it.

    Attributes:
        calibration: The calibration.
        found: The fit that it came from.
        unscored: How many labelled samples could not be scored, by reason.
    """

    calibration: Calibration
    found: Found
    unscored: dict[str, int]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All labelled samples that could be scored.

    Attributes:
        samples: The samples.
        unscored: How many could not be, by reason.
    """

    samples: Sequence[Labelled]
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])


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
    if votes > 1:
        metric = replace(metric, calibration=_named(metric, labels.item, votes=votes, method="none", threshold=0.5))
    return metric


def gather(
    metric: Metric,
    labels: Labels,
    embedder: Embedder | None = None,
    *,
    max_concurrency: int = 16,
    journal: str | Path | None = None,
    progress: "Shown" = "auto",
) -> Gathered:
    """Score the labelled samples and return what the judge said of each item."""
    from ragstone.batch import evaluate

    samples = [labelled.sample for labelled in labels.samples]
    report = evaluate(samples, [metric], max_concurrency=max_concurrency, journal=journal, progress=progress)
    found: list[Labelled] = []
    unscored: Counter[str] = Counter()
    for labelled, result in zip(labels.samples, report.results(), strict=True):
        if isinstance(result.outcome, Unscored):
            unscored[f"{result.outcome.reason}: {result.outcome.detail}"] += 1
        else:
            found.append(_labelled(labelled, result.outcome, labels.item, embedder, metric))
    return Gathered(found, dict(unscored))


def _labelled(
    labelled: LabelledSample, score: Score, item: CalibratedItem, embedder: Embedder | None, metric: Metric
) -> Labelled:
    if item == "score":
        return Labelled(labelled.group, (score.value,), labelled.labels)
    judged = list(_judged(score, item))
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
    if embedder is None or not isinstance(metric, ContextRelevancy):
        return Labelled(labelled.group, known, labelled.labels)
    texts = [labelled.sample.user_input or "", *(v.text for v in score.verdicts)]
    cosines = cosines_to_first(embedder.embed(texts), len(known))
    sentences = sentences_of(labelled.sample, "retrieved_contexts", metric.splitter, metric.language)
    return Labelled(labelled.group, known, labelled.labels, cosines, [sentence.chunk or 0 for sentence in sentences])


def _judged(score: Score, item: CalibratedItem) -> Iterator[float | None]:
    if item == "sentence":
        yield from (verdict.probability for verdict in score.verdicts)
    else:  # all questions of a response have the probability that it is committal
        p = next(verdict.probability for verdict in score.verdicts if verdict.kind == "question")
        yield None if p is None else 1.0 - p


def make(
    metric: Metric,
    labels: Labels,
    embedder: Embedder | None = None,
    *,
    votes: int = 1,
    method: Literal["auto"] | Method = "auto",
    width: float = 0.1,
    max_concurrency: int = 16,
    journal: str | Path | None = None,
    progress: "Shown" = "auto",
) -> Made:
    """Score labelled samples by a metric and fit how its judge's probabilities map to the labels.

    Args:
        metric: Without a calibration.
        labels: What `ragstone.labels.label_rows.read_labels` read.
        embedder: For sentences: has the fit look at their cosines with the question too.
        votes: How often to ask about each item, for judges without log-probabilities.
        method: See `ragstone.labels.fit.find`; likewise `width`.
        width: Of the interval that is wanted.
        max_concurrency: As for `evaluate`; likewise `journal` and `progress`.
        journal: Keeps what the judge said, so that a run that was ended goes on.
        progress: Whether to show a bar.

    Raises:
        CalibrationError: Too few labels, labels that are all the same, or a judge without probabilities.
        ImportError: scikit-learn is not installed; found out before the judge is asked.
    """
    load_sklearn("linear_model")
    asked = prepared(metric, labels, votes)
    gathered = gather(asked, labels, embedder, max_concurrency=max_concurrency, journal=journal, progress=progress)
    if not gathered.samples:
        raise CalibrationError(f"no sample could be scored: {next(iter(gathered.unscored), 'there is none')}")
    with_cosines = embedder is not None and labels.item == "sentence"
    signals = WITH_EMBEDDER if with_cosines else WITHOUT_EMBEDDER[labels.item]
    found = find(gathered.samples, labels.item, signals, method=method, width=width)
    fitted = found.fitted
    embeds = embedder is not None and not EMBEDDED.isdisjoint(fitted.weights)
    calibration = _named(
        asked,
        labels.item,
        embedder=embedder.model if embeds and embedder is not None else None,
        votes=votes,
        method=found.method,
        weights=dict(fitted.weights),
        intercept=fitted.intercept,
        knots=fitted.knots,
        threshold=found.threshold,
        labels=sum(len(sample.labels) for sample in gathered.samples),
        samples=len(gathered.samples),
        agreement=found.agreement,
    )
    return Made(calibration, found, dict(gathered.unscored))


def _named(metric: Metric, item: CalibratedItem, **found: Any) -> Calibration:  # noqa: ANN401 - fields of Calibration
    return Calibration(
        metric=metric.name,
        version=plain_version(metric),
        prompts=prompts_digest(metric),
        judge=metric.judge.model,
        item=item,
        settings=settings_of(metric, item),
        one_by_one=metric.asks_one_by_one,
        **found,
    )
