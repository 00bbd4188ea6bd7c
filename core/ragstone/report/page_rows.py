"""The page's table of samples: its rows are records as results files hold them, and the viewer reads them."""

import heapq
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ragstone.outcome import Outcome, Score, cause_of, shown_parts
from ragstone.report.aggregates import Aggregates, Key, MetricInfo, by_metric, is_unanswerable
from ragstone.results.record import Record, json_of, sample_fields, to_fields
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample

MOST = 10_000
_MANY = 2_000
_TEXT, _TEXT_OF_MANY, _VERDICT_TEXT = 20_000, 4_000, 400
_VERDICTS = 100


class SampleRows:
    """Rows as they are read, each as its JSON: all of them, or of many the lowest `MOST`.

    Args:
        aggregates: All outcomes added up, for the ends of scales, and feedback.
        samples_of: Yields the samples of these ids that the records do not hold and that are kept.
    """

    def __init__(
        self, aggregates: Aggregates, samples_of: Callable[[Collection[str]], Iterable[tuple[str, Sample]]]
    ) -> None:
        self._samples_of = samples_of
        self._feedback = aggregates.feedback
        self._infos = {each.info.key: replace(each.info, bounds=each.ends) for each in aggregates}
        self._n = 0
        self._most = _TEXT if aggregates.rows <= _MANY else _TEXT_OF_MANY
        # A heap, the best row first: what it lost, its number, the id of the sample that it lacks, its JSON.
        self._rows: list[tuple[float, int, str, str]] = []

    def add(self, records: Sequence[Record]) -> None:
        """Take the records of one row."""
        lost = max(self._lost(key, record) for key, record in by_metric(records).items())
        self._n += 1
        if len(self._rows) < MOST or lost > self._rows[0][0]:
            put = heapq.heappush if len(self._rows) < MOST else heapq.heapreplace
            lacks = records[0].sample_id if records[0].sample is None else ""
            put(self._rows, (lost, -self._n, lacks, self._row(records)))

    def _lost(self, key: Key, record: Record) -> float:
        # A monitor goes on writing: there may be metrics that were not there before.
        if key not in self._infos:
            self._infos[key] = MetricInfo.from_record(record)
        value = record.outcome.value
        return 2.0 if value is None else self._infos[key].lost(value)

    def json(self) -> str:
        """The rows in their order, and how many there are in all, as entries of a JSON object."""
        lacking = {sample_id: row for _, _, sample_id, row in self._rows if sample_id}
        rows: dict[str, str] = {}
        for sample_id, sample in self._samples_of(lacking):
            short = _shortened(sample, self._most)
            rows[sample_id] = self._finished(json.loads(lacking[sample_id]), sample_id, short)
        kept = sorted((-n, rows.get(sample_id, row)) for _, n, sample_id, row in self._rows)
        return f'"total": {self._n}, "rows": [{",".join(row for _, row in kept)}]'

    def _row(self, records: Sequence[Record]) -> str:
        sample = records[0].sample
        short = None if sample is None else _shortened(sample, self._most)
        fields = [_record_fields(each, short) for each in records]
        values = {"records": fields, "unanswerable": is_unanswerable(records)}
        return self._finished(values, records[0].sample_id, short)

    def _finished(self, values: dict[str, Any], sample_id: str, sample: Sample | None) -> str:
        feedback = self._feedback.get(sample_id)
        if sample is not None:
            values["records"][0]["sample"] = sample_fields(sample)
        values["feedback"] = None if feedback is None else _feedback_texts(feedback, texts=sample is not None)
        return json_of(values)


def _feedback_texts(feedback: Feedback, *, texts: bool) -> list[str]:
    return [feedback.value, _cut(feedback.comment or "", _TEXT) if texts else ""]


def _record_fields(record: Record, sample: Sample | None) -> dict[str, Any]:
    outcome: Outcome = record.outcome
    cause = None
    if isinstance(outcome, Score):
        cause = cause_of(outcome)
        first = sorted(outcome.verdicts, key=lambda each: not each.lowers_score)[:_VERDICTS]
        changes: dict[str, object] = {
            "verdicts": first,
            "breakdown": shown_parts(outcome),
            "reason": _cut(outcome.reason, _TEXT),
        }
    else:
        changes = {"detail": _cut(outcome.detail, _TEXT)}
    short = replace(record, outcome=outcome.model_copy(update=changes), sample=None)
    values = to_fields(short, sample)
    verdicts: Any = values.get("verdicts", ())
    for verdict in verdicts:
        if len(verdict) > 5 and verdict[5] is not None:
            verdict[5] = _cut(verdict[5], _VERDICT_TEXT)
        for passage in verdict[4]:
            passage[3:] = [_cut(text, _VERDICT_TEXT) for text in passage[3:]]
    return values if cause is None else values | {"cause": f"{cause[:1].upper()}{cause[1:]}."}


def _shortened(sample: Sample, most: int) -> Sample:
    texts: dict[str, object] = {
        "retrieved_contexts": tuple(_cut(text, most) for text in sample.retrieved_contexts),
        "history": tuple(turn.model_copy(update={"content": _cut(turn.content, most)}) for turn in sample.history),
    }
    for name in ("user_input", "response", "reference"):
        texts[name] = _cut(getattr(sample, name) or "", most)
    # A field that is set to nothing would be written.
    return sample.model_copy(update={name: text for name, text in texts.items() if text})


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({length:,} of {len(text):,} characters)"
