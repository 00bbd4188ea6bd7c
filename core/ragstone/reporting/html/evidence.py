"""What lowered a score: verdicts, and the sample's texts with the passages that they point to."""

from collections.abc import Iterator, Sequence
from typing import get_args

from ragstone.outcome import Evidence, Score, Suspicion, Verdict
from ragstone.reporting.aggregates import Worst, known_time
from ragstone.reporting.html.markup import Html, cut, folded, foreign, soft, tag, together
from ragstone.reporting.tables import count, moment, number, place
from ragstone.sample import Sample, SampleField, TextField
from ragstone.store.base import Feedback

_ITEMS = 8
_ITEM_TEXT = 400
_TEXT = 4_000
_CONTEXTS = _TURNS = 20
_ID = 200

Span = tuple[int, int]


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
    return ", ".join(f"{name} {number(value)}" for name, value in score.breakdown.items())


def evidence(worst: Worst, sample: Sample | None) -> Iterator[Html]:
    """Yield the verdicts that lowered a score (all of them where none is known to), and the texts of its sample."""
    score, at = worst.score, known_time(worst.record.submitted_at)
    when = "" if at is None else f"Submitted {moment(at)} UTC. "
    yield soft(when, foreign(_parts(score) if score.reason else ""))
    lowering = [verdict for verdict in score.verdicts if verdict.lowers_score]
    if not lowering:
        yield soft("No single verdict is known to have lowered it.")
    shown = lowering or list(score.verdicts)
    if shown:
        yield tag("ul", together(map(_item, shown[:_ITEMS])), class_="items")
    if len(shown) > _ITEMS:
        yield soft(f"and {len(shown) - _ITEMS:,} more")
    if sample is not None:
        yield from passages(sample, [part for verdict in lowering for part in verdict.evidence])


def _item(verdict: Verdict) -> Html:
    word = tag("span", foreign(verdict.verdict), class_="word" if verdict.lowers_score else "word plain")
    notes = [] if verdict.probability is None else [f"probability of the affirmative answer {verdict.probability:.2f}"]
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
        if start >= _TEXT:
            beyond += 1
            continue
        pieces += [text[at:start], tag("mark", text[start : min(end, _TEXT)])]
        at = min(end, _TEXT)
    pieces.append(text[at:_TEXT])
    shown = tag("div", *pieces, class_="text", dir="auto", tabindex=0, role="group", aria_label=name)
    further = f"; {beyond:,} marked passages come later" if beyond else ""
    note = soft(f"Cut after {_TEXT:,} of {len(text):,} characters{further}.") if len(text) > _TEXT else ""
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
