"""The page's table of samples: each text once, and rows of numbers that say which texts are theirs."""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, cast

from ragstone.outcome import Score, cause_of
from ragstone.report.aggregates import Aggregates, Key, MetricInfo, is_unanswerable
from ragstone.results.memory import Fields
from ragstone.results.record import json_of, record_of, sample_fields
from ragstone.sample import Sample

MOST = 10_000
_MANY = 2_000
_TEXT, _TEXT_OF_MANY, _VERDICT_TEXT = 20_000, 4_000, 400
_VERDICTS = 100
_FACTS = ("submitted_at", "chosen_by", "origin", "run_id", "run_name", "tags", "user_id", "thread_id")

OldRows = Mapping[str, Sequence[tuple[Sequence[float | None], str | None]]]
"""The rows of another report by the sample's id: each metric's value, and the response."""


class _Positions(dict[Any, int]):
    """The position of each thing, in the order in which they were first asked for."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


class _Row(NamedTuple):
    """What it lost, its number, its texts, and as JSON what is known of it; "" for a sample that records lack."""

    lost: float
    number: int
    sample_id: str
    texts: tuple[str, ...]
    body: str
    sample: str


class SampleRows:
    """Rows as they are read: all of them, or of many the lowest `MOST`.

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
        self._keys, self._kinds = _Positions(), _Positions()
        self._n = 0
        self._most = _TEXT if aggregates.rows <= _MANY else _TEXT_OF_MANY
        # A heap, the best row first.
        self._rows: list[_Row] = []

    def read(self, records: Iterable[Fields]) -> None:
        """Take all rows."""
        for _, row in groupby(records, lambda each: (each[0].get("row", 0), each[0]["id"])):
            self.add(list(row))

    def add(self, row: Sequence[Fields]) -> None:
        """Take the records of one row."""
        lost = max(self._lost(*each) for each in row)
        self._n += 1
        if len(self._rows) < MOST or lost > self._rows[0].lost:
            put = heapq.heappush if len(self._rows) < MOST else heapq.heapreplace
            put(self._rows, self._row(lost, row))

    def _lost(self, values: Mapping[str, Any], sample: Sample | None) -> float:
        key = _key(values)
        # A monitor goes on writing: there may be metrics that were not there before.
        if key not in self._infos:
            self._infos[key] = MetricInfo.from_record(record_of(values, sample))
        value = values.get("value")
        return 2.0 if value is None else self._infos[key].lost(float(value))

    def _row(self, lost: float, row: Sequence[Fields]) -> _Row:
        (first, sample), texts = row[0], _Positions()
        parts = [(each["metric"], each.get("breakdown", {})) for each, _ in row if "value" in each]
        facts = {name: first[name] for name in _FACTS if name in first}
        records = [self._record(*each, texts) for each in row]
        body = json_of([first["id"], first.get("row", 0), facts, is_unanswerable(parts), records])
        fields = "" if sample is None else self._sample(sample, texts)
        return _Row(lost, -self._n, first["id"], tuple(texts), body, fields)

    def _record(self, values: Mapping[str, Any], sample: Sample | None, texts: _Positions) -> list[object]:
        """One outcome: metric, value, whether it passed, reason, detail or cause, verdicts."""
        more = values.get("detail", "")
        # Only of this metric something else than a verdict is the cause.
        if values["metric"] == "response_relevancy" and "value" in values:
            cause = cause_of(cast("Score", record_of(values, sample).outcome))
            more = cause and f"{cause[:1].upper()}{cause[1:]}."
        verdicts = values.get("verdicts", ())
        if len(verdicts) > _VERDICTS:
            verdicts = sorted(verdicts, key=lambda each: not each[3])[:_VERDICTS]
        why = [texts[_cut(text, _TEXT)] if text else None for text in (values["reason"], more)]
        found = [self._verdict(each, texts) for each in verdicts]
        return [self._keys[_key(values)], values.get("value"), values.get("passed"), *why, found]

    def _verdict(self, verdict: Sequence[Any], texts: _Positions) -> list[object]:
        """A verdict: kind, word and whether it lowers the score in one number, the id, passages, the text."""
        number, kind, word, lowers, evidence, *rest = verdict
        for passage in evidence:
            passage[3:] = [_cut(text, _VERDICT_TEXT) for text in passage[3:]]
        packed: list[object] = [self._kinds[kind, word, lowers], number, evidence]
        return [*packed, texts[_cut(rest[0], _VERDICT_TEXT)]] if rest and rest[0] else packed

    def _sample(self, sample: Sample, texts: _Positions) -> str:
        def position(text: str) -> int:
            return texts[_cut(text, self._most)]

        fields = sample_fields(sample)
        for name in fields.keys() & {"user_input", "response", "reference"}:
            fields[name] = position(getattr(sample, name))
        if sample.retrieved_contexts:
            fields["retrieved_contexts"] = [*map(position, sample.retrieved_contexts)]
        if sample.history:
            fields["history"] = [(turn.role, position(turn.content)) for turn in sample.history]
        return json_of(fields)

    def json(self, old: OldRows) -> str:
        """All of it as JSON: each text once, and rows with the positions of theirs; also those of another report."""
        texts, found = _Positions(), list[str]()
        kept = sorted(self._with_samples(), key=lambda row: -row.number)
        for row in kept:
            said = self._feedback.get(row.sample_id)
            feedback = said and (said.value, _cut(said.comment or "", _TEXT) if row.sample else "")
            own = json_of([texts[text] for text in row.texts])
            found.append(f"[{own},{row.body},{row.sample or 'null'},{json_of(feedback)}]")
        before = {
            sample_id: [(values, text and texts[text]) for values, text in old[sample_id]]
            for sample_id in dict.fromkeys(row.sample_id for row in kept)
            if sample_id in old
        }
        tables = {"total": self._n, "keys": [*self._keys], "kinds": [*self._kinds], "old": before, "texts": [*texts]}
        return f'{json_of(tables)[:-1]},"rows":[{",".join(found)}]}}'

    def _with_samples(self) -> Iterator[_Row]:
        """Yield the rows; those that lack their samples with what is kept of them."""
        lacking = {row.sample_id: row for row in self._rows if not row.sample}
        for sample_id, sample in self._samples_of(lacking):
            row = lacking.pop(sample_id)
            texts = _Positions({text: i for i, text in enumerate(row.texts)})
            fields = self._sample(sample, texts)
            yield row._replace(texts=tuple(texts), sample=fields)
        yield from (row for row in self._rows if row.sample or row.sample_id in lacking)


def _key(values: Mapping[str, Any]) -> Key:
    return values["metric"], values["version"], values.get("judge", ""), values.get("setup", "")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({length:,} of {len(text):,} characters)"
