"""What the page says of single samples: its table's data, what lowered a score, the unscored, the suspected."""

import heapq
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from ragstone.outcome import Evidence, Score, Suspicion, Unscored, UnscoredReason, Usage, Verdict
from ragstone.page.markup import Html, cut, folded, foreign, soft, tag, together
from ragstone.plain import to_plain
from ragstone.report.aggregates import (
    Key,
    MetricInfo,
    Worst,
    by_metric,
    is_unanswerable,
    known_time,
    slice_value,
)
from ragstone.report.tables import cause_of, certainty, count, moment, number, place, shown_parts
from ragstone.results.traffic import FEEDBACK, Feedback
from ragstone.sample import Sample, SampleField, TextField

if TYPE_CHECKING:
    from ragstone.report.report import Report
    from ragstone.results.record import Record

MOST = 5_000
_TEXT = 20_000
_VERDICTS, _VERDICT_TEXT, _FILTER = 100, 400, 50

Place = tuple[float, int, "Sequence[Record]"]

_ITEMS = 8
_ITEM_TEXT = 400
_SHOWN_TEXT = 4_000
_CONTEXTS = _TURNS = 20
_ID = 200

Span = tuple[int, int]


class Samples:
    """Rows as they are read: all of them, or of many the lowest half of `MOST` and as many others by chance.

    Attributes:
        unscored: The samples' ids by reason, then by metric and message.
    """

    def __init__(self, report: "Report") -> None:
        self._report = report
        self._infos: dict[Key, MetricInfo] = {
            each.info.key: replace(each.info, bounds=each.ends) for each in report.aggregates()
        }
        self._n = 0
        self._low: list[Place] = []  # a heap, the best row first
        self._others: list[Place] = []
        self._chance = random.Random(0)  # noqa: S311 - the same rows each time
        self.unscored: dict[UnscoredReason, dict[tuple[Key, str], list[str]]] = {}
        self._n_unscored = 0

    def add(self, records: "Sequence[Record]") -> None:
        """Take the records of one row."""
        lost = 0.0
        for key, of_metric in by_metric(records).items():
            if key not in self._infos:  # a monitor wrote it since
                self._infos[key] = MetricInfo.from_record(of_metric[0])
            worst = Worst.of(of_metric, self._infos[key])
            lost = max(lost, 2.0 if worst is None else self._infos[key].lost(worst.value))
            for record in of_metric:
                if isinstance(record.outcome, Unscored) and record.chosen_by != FEEDBACK and self._n_unscored < MOST:
                    self._n_unscored += 1
                    by_message = self.unscored.setdefault(record.outcome.reason, {})
                    by_message.setdefault((key, record.outcome.detail), []).append(record.sample_id)
        self._n += 1
        place: Place = (lost, -self._n, list(records))
        if len(self._low) < MOST // 2:
            heapq.heappush(self._low, place)
            return
        place = heapq.heappushpop(self._low, place)
        beyond = self._n - MOST // 2
        if len(self._others) < MOST - MOST // 2:
            self._others.append(place)
        elif (i := self._chance.randrange(beyond)) < len(self._others):
            self._others[i] = place

    def data(self, names: Mapping[Key, str], feedback: "Mapping[str, Feedback]") -> dict[str, object]:
        """Return what the page's script reads. Each text stands in it once: all else names it by its number."""
        texts = _Texts()
        chosen = sorted((*self._low, *self._others), key=lambda place: -place[1])
        rows = [self._row(records, names, feedback.get(records[0].sample_id), texts) for *_, records in chosen]
        values: dict[str, set[str]] = {}
        for _, own in rows:
            for name, of_name in own.items():
                values.setdefault(name, set()).update(of_name)
        filters = {name: sorted(of_name) for name, of_name in values.items() if 1 < len(of_name) <= _FILTER}
        metrics: list[dict[str, object]] = []
        for key, name in names.items():
            info = self._infos[key]
            low, high = info.bounds or (0.0, 1.0)
            metrics.append({"name": name, "low": low, "high": high, "up": info.higher_is_better})
        return {
            "metrics": metrics,
            "texts": texts.all,
            "filters": filters,
            "rows": [row | {"filters": {name: own.get(name, ()) for name in filters}} for row, own in rows],
            "total": self._n,
        }

    def _row(
        self, records: "Sequence[Record]", names: Iterable[Key], feedback: "Feedback | None", texts: "_Texts"
    ) -> tuple[dict[str, object], dict[str, list[str]]]:
        """Return a row of the table, and by what it can be filtered."""
        first, sample = records[0], self._report.sample(records[0])
        metadata = {} if sample is None else sample.metadata
        feedback_text = "" if feedback is None else f"{feedback.value} {(sample and feedback.comment) or ''}".strip()
        own = {name: [text] for name, value in metadata.items() if (text := slice_value(value)) is not None}
        own |= {"tag": [*first.tags], "run name": [first.run_name] if first.run_name else []}
        own["feedback"] = [] if feedback is None else [feedback.value]
        suspected = list(dict.fromkeys(each for record in records for each in record.outcome.suspected))
        grouped = by_metric(records)
        row: dict[str, object] = {
            "id": first.sample_id,
            "cells": [
                self._cell(grouped.get(key, ()), self._infos[key], texts, quoted=sample is not None) for key in names
            ],
            "suspected": [[each.kind.replace("_", " "), *_span(each)] for each in suspected],
            "unanswerable": is_unanswerable(records),
            "facts": _facts(first, metadata, feedback_text),
        }
        return row if sample is None else row | {"texts": _passages(sample, texts)}, own

    def _cell(
        self, records: "Sequence[Record]", info: MetricInfo, texts: "_Texts", *, quoted: bool
    ) -> dict[str, object] | None:
        if not records:
            return None
        worst = Worst.of(records, info)
        usage = sum((record.outcome.usage for record in records), Usage())
        if worst is None:
            failed = next(each.outcome for each in records if isinstance(each.outcome, Unscored))
            return {"unscored": failed.reason, "why": texts.add(failed.detail), "cost": _cost(usage)}
        score = worst.score
        cause = cause_of(score)
        verdicts = sorted(score.verdicts, key=lambda each: not each.lowers_score)
        return {
            "value": worst.value,
            "failed": score.passed is False,
            "draws": [worst.draws, score.value],
            "why": texts.add(f"{score.reason} {cause[:1].upper()}{cause[1:]}." if cause else score.reason),
            "parts": [[name, round(value, 4)] for name, value in shown_parts(score).items()],
            "verdicts": [_verdict(each, texts, quoted=quoted) for each in verdicts[:_VERDICTS]],
            "more": max(0, len(verdicts) - _VERDICTS),
            "cost": _cost(usage),
        }


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, text: str, length: int = _TEXT) -> int:
        if len(text) > length:
            text = f"{text[:length]}… ({length:,} of {len(text):,} characters)"
        if text not in self._numbers:
            self._numbers[text] = len(self.all)
            self.all.append(text)
        return self._numbers[text]


def _passages(sample: "Sample", texts: _Texts) -> list[list[object]]:
    """Return the sample's texts in the order in which they are read: where each is, what it is called, its number."""
    passages: list[list[object]] = []
    if sample.user_input is not None:
        passages.append(["user_input", "question", texts.add(sample.user_input)])
    for i, turn in enumerate(sample.history):
        passages.append([f"history[{i}]", turn.role, texts.add(turn.content)])
    if sample.response is not None:
        passages.append(["response", "answer", texts.add(sample.response)])
    if sample.reference is not None:
        passages.append(["reference", "reference", texts.add(sample.reference)])
    for i, context in enumerate(sample.retrieved_contexts):
        passages.append([f"retrieved_contexts[{i}]", f"context {i + 1}", texts.add(context)])
    return passages


def _span(passage: Evidence | Suspicion) -> list[object]:
    field = passage.field if passage.chunk is None else f"{passage.field}[{passage.chunk}]"
    return [field, passage.start, passage.end]


def _verdict(verdict: Verdict, texts: _Texts, *, quoted: bool) -> list[object]:
    first = verdict.evidence[0] if quoted and verdict.evidence else None
    stands_there = first is not None and first.text == verdict.text and first.end <= _TEXT
    return [
        f"{verdict.kind} {verdict.id}",
        verdict.verdict,
        None if stands_there else texts.add(verdict.text, _VERDICT_TEXT),
        verdict.lowers_score,
        certainty(verdict) or None,
        [_span(each) for each in verdict.evidence],
    ]


def _cost(usage: Usage) -> str:
    tokens = (
        "tokens unknown"
        if usage.input_tokens is None or usage.output_tokens is None
        else f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    )
    embedded = f"{count(usage.embed_calls, 'embedder call')}, " if usage.embed_calls else ""
    return f"{count(usage.llm_calls, 'judge call')}, {embedded}{tokens}, {usage.seconds:.1f} s"


def _facts(record: "Record", metadata: Mapping[str, Any], feedback: str) -> list[list[str]]:
    """Return what else is known of a sample: names and values."""
    at = known_time(record.submitted_at)
    known = {
        "submitted": "" if at is None else f"{moment(at)} UTC",
        "chosen by": "" if record.chosen_by == "rate" else record.chosen_by,
        "trace id": record.origin.get("trace_id", ""),
        "run id": record.run_id or "",
        "run name": record.run_name or "",
        "tags": ", ".join(record.tags),
        "user": record.user_id or "",
        "thread": record.thread_id or "",
        "feedback": feedback,
        "metadata": json.dumps(to_plain(metadata), ensure_ascii=False) if metadata else "",
    }
    return [[name, cut(value, 2_000)] for name, value in known.items() if value]


def low_score(worst: Worst, sample: Sample | None, feedback: Feedback | None = None) -> Html:
    """Return one of the worst scores, to be opened: its reason, feedback, what lowered it, and its texts."""
    words = [feedback.value, cut(feedback.comment or "", _ITEM_TEXT) if sample else ""] if feedback else []
    shown = soft("Feedback: ", foreign(" ".join(words).strip())) if words else ""
    name = tag("span", foreign(worst.record.sample_id, _ID))
    head = tag("summary", tag("b", number(worst.value)), name, tag("span", foreign(reason(worst)), class_="soft"))
    return tag("details", head, shown, *evidence(worst, sample), class_="low")


def reason(worst: Worst) -> str:
    """Return what a score says of itself, in a line."""
    score = worst.score
    words = [
        "below its threshold" if score.passed is False and worst.draws == 1 else "",
        f"mean of {worst.draws} draws; the worst, {number(score.value)}, is shown" if worst.draws > 1 else "",
        cut(score.reason, _ITEM_TEXT) or _parts(score),
    ]
    return "; ".join(filter(None, words))


def _parts(score: Score) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in shown_parts(score).items())


def evidence(worst: Worst, sample: Sample | None) -> Iterator[Html]:
    """Yield the verdicts that lowered a score (all of them where none is known to), and the texts of its sample."""
    score, at = worst.score, known_time(worst.record.submitted_at)
    when = "" if at is None else f"Submitted {moment(at)} UTC. "
    yield soft(when, foreign(_parts(score) if score.reason else ""))
    lowering = [verdict for verdict in score.verdicts if verdict.lowers_score]
    if not lowering:
        yield soft(foreign(cause_of(score) or "No single verdict is known to have lowered it."))
    shown = lowering or list(score.verdicts)
    if shown:
        yield tag("ul", together(map(_item, shown[:_ITEMS])), class_="items")
    if len(shown) > _ITEMS:
        yield soft(f"and {len(shown) - _ITEMS:,} more")
    if sample is not None:
        yield from passages(sample, [part for verdict in lowering for part in verdict.evidence])


def _item(verdict: Verdict) -> Html:
    word = tag("span", foreign(verdict.verdict), class_="word" if verdict.lowers_score else "word plain")
    notes = [sure] if (sure := certainty(verdict)) else []
    if not verdict.text:  # texts are not stored: its place in the sample is all that is known
        notes += [place(part) for part in verdict.evidence[:3]]
    text = together([": ", foreign(verdict.text, _ITEM_TEXT)]) if verdict.text else ""
    note = tag("span", f" ({'; '.join(notes)})", class_="soft") if notes else ""
    return tag("li", foreign(f"{verdict.kind} {verdict.id}"), " ", word, text, note)


def passages(sample: Sample, marked: Sequence[Evidence | Suspicion]) -> Iterator[Html]:
    """Yield the texts of a sample, cut to their beginnings, with some places in them marked."""
    spans: dict[tuple[TextField, int | None], list[Span]] = {}
    for part in marked:
        spans.setdefault((part.field, part.chunk), []).append((part.start, part.end))
    if sample.history:
        turns = [_passage(turn.role, turn.content, ()) for turn in sample.history[-_TURNS:]]
        yield folded(f"history (the last {count(len(turns), 'turn')})", together(turns))
    for field in get_args(SampleField):
        for i, text in enumerate(sample.texts(field)[:_CONTEXTS]):
            chunk = i if field == "retrieved_contexts" else None
            name = field if chunk is None else f"{field}[{chunk}]"
            yield _passage(name, text, joined(spans.get((field, chunk), ()), len(text)))
    if (left_out := len(sample.retrieved_contexts) - _CONTEXTS) > 0:
        yield soft(f"{left_out:,} further contexts are not shown.")


def _passage(name: str, text: str, spans: Sequence[Span]) -> Html:
    pieces: list[str] = []
    at = beyond = 0
    for start, end in spans:
        if start >= _SHOWN_TEXT:
            beyond += 1
            continue
        pieces += [text[at:start], tag("mark", text[start : min(end, _SHOWN_TEXT)])]
        at = min(end, _SHOWN_TEXT)
    pieces.append(text[at:_SHOWN_TEXT])
    shown = tag("div", *pieces, class_="text", dir="auto", tabindex=0, role="group", aria_label=name)
    further = f"; {beyond:,} marked passages come later" if beyond else ""
    note = soft(f"Cut after {_SHOWN_TEXT:,} of {len(text):,} characters{further}.") if len(text) > _SHOWN_TEXT else ""
    return tag("div", tag("h4", name), shown, note, class_="passage")


def joined(spans: Sequence[Span], length: int) -> list[Span]:
    """Return the spans within a text of some length in order, those that overlap as one."""
    spans_of: list[Span] = []
    for start, end in sorted(spans):
        start, end = max(0, start), min(end, length)
        if start >= end:
            continue
        if spans_of and start < spans_of[-1][1]:
            spans_of[-1] = (spans_of[-1][0], max(end, spans_of[-1][1]))
        else:
            spans_of.append((start, end))
    return spans_of


def flagged_text(sample: Sample | None, suspicion: Suspicion) -> str:
    """Return the beginning of a flagged passage; "" where the texts are not at hand."""
    texts = () if sample is None else sample.texts(suspicion.field)
    i = suspicion.chunk or 0
    return cut(texts[i][suspicion.start : suspicion.end], _ITEM_TEXT) if 0 <= i < len(texts) else ""
