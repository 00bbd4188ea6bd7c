"""Whether a judge still judges as it did: anchors, which are labelled samples with its outcomes then, judged again."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from ragstone.batch import evaluate
from ragstone.labels.calibration import CalibrationError
from ragstone.labels.fit import load_extra
from ragstone.labels.label_file import Label, LabelledRecord, match_labels, read_labels
from ragstone.metrics import Metric
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.page.markup import showable
from ragstone.report import MetricInfo, Report, compare
from ragstone.report.aggregates import key_of
from ragstone.report.checks import Drift, Flip, ThenAndNow
from ragstone.results.read import open_results, write_results
from ragstone.results.record import Record

_LABELS = TypeAdapter(list[Label])


class Anchors(NamedTuple):
    """A metric's labelled samples, and all draws of their scores, in the same order."""

    info: MetricInfo
    labelled: Sequence[LabelledRecord]
    records: Sequence[Record]


def load_anchors(source: str, labels: str | None = None) -> list[Anchors]:
    """Return each metric's anchors, of a file that `save_anchors` wrote, or of results and a file of labels.

    Raises:
        CalibrationError: There is no label, or one cannot be used.
        ResultsError: The file holds no results.
    """
    report = Report.load(source)
    try:
        own = _LABELS.validate_python([] if labels else open_results(source).info.get("labels", []))
    except ValidationError:
        raise CalibrationError(f"{source}: the labels in its first line were changed; save the anchors again") from None
    matched = match_labels(labels or source, read_labels(labels) if labels else list(enumerate(own, 1)), report)
    rows = {(each.info.key, each.record.row, each.record.sample_id): each for each in matched if not each.skipped}
    if not rows:
        raise CalibrationError(f"{source}: has no labels; name the download of `ragstone label`: --labels FILE")
    records = [each for each in report.results() if (key_of(each), each.row, each.sample_id) in rows]
    return [
        Anchors(
            info,
            [each for each in rows.values() if each.info.key == info.key],
            [each for each in records if key_of(each) == info.key],
        )
        for info in report.metrics
        if any(key == info.key for key, *_ in rows)
    ]


def save_anchors(anchors: Sequence[Anchors], path: str) -> None:
    """Write anchors to a results file that has their labels in its first line. Raises OSError: it cannot be written."""
    labelled = [each for of_metric in anchors for each in of_metric.labelled]
    samples = {(each.record.row, each.record.sample_id): each.sample for each in labelled}
    records = sorted((each for of_metric in anchors for each in of_metric.records), key=lambda each: each.row)
    labels = [label.model_dump(exclude_none=True) for each in labelled for label in each.labels]
    info = {"metrics": [asdict(each.info) for each in anchors], "labels": labels}
    write_results(Path(path), records, lambda record: samples[record.row, record.sample_id], info)


def drift(anchors: Anchors, metric: Metric, *, repeat: int = 3, max_concurrency: int = 16) -> Drift:
    """Judge anchors again, by the same metric with the judge of now, twice or more (`repeat`) to know its noise."""
    metrics = load_extra("sklearn.metrics", "Cohen's kappa")  # before the judge is asked
    samples = [each.sample.model_copy(update={"id": each.record.sample_id}) for each in anchors.labelled]
    report = evaluate(samples, [metric], repeat=repeat, max_concurrency=max_concurrency)
    (change,) = compare(Report.of(anchors.records, [anchors.info]), report, any_version=True).metrics.values()
    draws = [[record.outcome for record in report if record.draw == draw] for draw in range(repeat)]
    then = [_words(each.score) for each in anchors.labelled]
    now, again = ([_words(each) for each in draw] for draw in draws[:2])
    same = [
        Flip(sample.id or "", *key, x[key], y[key])
        for sample, x, y in zip(samples, then, now, strict=True)
        for key in x
        if key in y
    ]
    noise = [x[key] != y[key] for x, y in zip(now, again, strict=True) for key in x if key in y]
    unscored = Counter(
        f"{of_row[0].reason}: {of_row[0].detail}"
        for of_row in zip(*draws, strict=True)
        if isinstance(of_row[0], Unscored) and not any(isinstance(each, Score) for each in of_row)
    )
    return Drift(
        change,
        unscored,
        len(same),
        [each for each in same if each.then != each.now],
        (sum(noise), len(noise)),
        list(_agreement(metrics.cohen_kappa_score, anchors.labelled, then, now, draws[0])),
    )


_Words = dict[tuple[str, str], str]


def _words(outcome: Outcome) -> _Words:
    """Return the verdict on each item, by its kind and text."""
    return {(each.kind, showable(each.text)): each.verdict for each in getattr(outcome, "verdicts", ())}


def _agreement(
    kappa: Callable[..., float],
    labelled: Sequence[LabelledRecord],
    then: Sequence[_Words],
    now: Sequence[_Words],
    outcomes: Sequence[Outcome],
) -> Iterator[ThenAndNow]:
    answers = [
        (str(label.answer), x[key], y[key])
        for each, x, y in zip(labelled, then, now, strict=True)
        for label in each.labels
        if (key := (label.kind, showable(label.text or ""))) in x and key in y
    ]
    if answers:
        people, *judged = (np.array(column) for column in zip(*answers, strict=True))
        yield ThenAndNow("items, share", len(people), *(float((people == words).mean()) for words in judged))
        if len({*people, *judged[0]}) > 1 and len({*people, *judged[1]}) > 1:
            yield ThenAndNow("items, kappa", len(people), *(float(kappa(people, words)) for words in judged))
    values = [
        (value, each.score.value, outcome.value)
        for each, outcome in zip(labelled, outcomes, strict=True)
        if isinstance(outcome, Score)
        and (each.items_give_score or not each.by_items)
        and (value := each.value) is not None
    ]
    if values:
        by_people, *scores = (np.array(column) for column in zip(*values, strict=True))
        yield ThenAndNow("scores, distance", len(values), *(float(np.abs(by_people - each).mean()) for each in scores))
