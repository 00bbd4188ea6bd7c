"""Outcomes of an earlier run, which a run that goes on from there does not ask for again."""

from collections.abc import Sequence
from dataclasses import replace

from ragstone.identity import digest_of, sample_digest
from ragstone.metrics.base import Metric
from ragstone.metrics.setup import setup_of
from ragstone.outcome import Outcome, Score
from ragstone.report.aggregates import Key, key_of
from ragstone.report.report import Location, Report
from ragstone.results.record import decode, encode, is_final, json_of
from ragstone.results.tables import ResultsError
from ragstone.sample import Sample


class EarlierOutcomes:
    """Outcomes by the sample's id and texts, and by metric, version, judge and set-up.

    Failures for a reason outside of the sample are not in it, and what cost nothing is found out anew.

    Args:
        source: What the earlier run gave: a report, a results file or a frame of one.
        metrics: The metrics of this run.

    Raises:
        ResultsError: It has none, or was written without texts: nothing says then that a sample is the same.
    """

    def __init__(self, source: Report | Location, metrics: Sequence[Metric]) -> None:
        self._outcomes: dict[str, str] = {}
        metric_of = {_metric_facts(metric): metric for metric in metrics}
        report, outcomes, has_texts = source if isinstance(source, Report) else Report.load(source), 0, False
        for record in report.results(samples=True):
            outcomes += 1
            has_texts |= record.sample is not None and bool(record.sample.all_texts())
            metric, outcome = metric_of.get(key_of(record)), record.outcome
            asked = isinstance(outcome, Score) or outcome.usage.llm_calls > 0
            if metric is not None and record.sample is not None and asked and is_final(outcome):
                key = _digest(record.sample_id, record.sample, metric)
                self._outcomes[key] = encode(replace(record, sample=None), record.sample)
        if outcomes and not has_texts:
            name = "resume" if isinstance(source, Report) else source
            raise ResultsError(
                f"{name}: has no texts (--no-texts), and nothing else says whether a sample is the same: it cannot be "
                "resumed; a journal can (--journal)"
            )

    def outcome(self, sample_id: str, sample: Sample, metric: Metric) -> Outcome | None:
        """The outcome of a sample by a metric; None where there is none, or the sample is another one."""
        text = self._outcomes.get(_digest(sample_id, sample, metric))
        if text is None:
            return None
        outcome = decode(text, sample).outcome
        if isinstance(outcome, Score):
            # The threshold may be another one.
            passed = None if metric.threshold is None else metric.reaches(outcome.value, metric.threshold)
            return outcome.model_copy(update={"passed": passed})
        return outcome


def _metric_facts(metric: Metric) -> Key:
    return metric.name, metric.version, metric.judge.model, setup_of(metric)


def _digest(sample_id: str, sample: Sample, metric: Metric) -> str:
    """What an outcome is of. What a metric is given in a sample's metadata counts, too."""
    given = None if metric.given_in is None else json_of(sample.metadata.get(metric.given_in))
    return digest_of([sample_id, texts_digest(sample), _metric_facts(metric), given])


def texts_digest(sample: Sample | None) -> str:
    """A digest of all texts and ids of sources that a sample has; "" where it is not kept."""
    if sample is None:
        return ""
    return digest_of([sample_digest(sample), list(sample.reference_ids), list(sample.retrieved_ids)])
