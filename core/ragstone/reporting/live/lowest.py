"""One low score: the verdicts that cost it, and the sample's texts with the passages that they point to."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ragstone.outcome import Evidence, Score, Verdict
from ragstone.reporting.live.costly import costs
from ragstone.reporting.live.facts import Item, Low, Passage
from ragstone.reporting.live.markup import cut
from ragstone.sample import Sample, SampleField

_ITEMS = 8
_ITEM_TEXT = 400
_TEXT = 4_000
_CONTEXTS = 20
_FIELDS: tuple[SampleField, ...] = ("user_input", "retrieved_contexts", "response")

Place = tuple[SampleField, int | None]
Spans = Mapping[Place, Sequence[tuple[int, int]]]


def low_of(score: Score, *, sample_id: str, at: float | None = None, sample: Sample | None = None) -> Low:
    """Return what a page shows of a score, and of its sample where that is at hand.

    Example:
        >>> answers = [Verdict(id="1", kind="question", text="Is it a novel?", verdict="no")]
        >>> score = Score(metric="summarization_score", value=0.0, reason="", verdicts=answers, version="1")
        >>> low_of(score, sample_id="a").items
        (Item(name='question 1', word='no', text='Is it a novel?', note='', costs=True),)
    """
    judged = list(zip(score.verdicts, costs(score), strict=True))
    shown = [(verdict, cost) for verdict, cost in judged if cost is not False]
    if sample is not None:
        spans = _spans(sample, judged)
        passages = tuple(_passages(sample, spans))
    else:
        passages = ()
    return Low(
        sample_id=sample_id,
        value=score.value,
        passed=score.passed,
        at=at,
        why=cut(score.reason, _ITEM_TEXT),
        parts=tuple(score.breakdown.items()),
        items=tuple(_item(verdict, score.breakdown, cost) for verdict, cost in shown[:_ITEMS]),
        more=max(0, len(shown) - _ITEMS),
        passages=passages,
        left_out=0 if sample is None else max(0, len(sample.retrieved_contexts) - _CONTEXTS),
    )


def _item(verdict: Verdict, parts: Mapping[str, float], cost: bool | None) -> Item:
    notes: list[str] = []
    cosine = parts.get(f"cosine_{verdict.id}") if verdict.kind == "question" else None
    if cosine is not None:
        notes.append(f"cosine {cosine:.2f} to the question asked")
    if verdict.probability is not None:
        notes.append(f"probability of the affirmative answer {verdict.probability:.2f}")
    if not verdict.text:  # texts are not stored: where it is in the sample is all that can be told
        notes += [_place(evidence) for evidence in verdict.evidence[:3]]
    return Item(
        name=f"{verdict.kind.replace('_', ' ')} {verdict.id}",
        word=verdict.verdict.replace("_", " "),
        text=cut(verdict.text, _ITEM_TEXT),
        note="; ".join(notes),
        costs=cost,
    )


def _place(evidence: Evidence) -> str:
    return f"{_name(evidence.field, evidence.chunk)}, characters {evidence.start} to {evidence.end}"


def _name(field: SampleField, chunk: int | None) -> str:
    return field if chunk is None else f"{field}[{chunk}]"


def _passages(sample: Sample, spans: Spans) -> Iterator[Passage]:
    for field in _FIELDS:
        for i, text in enumerate(sample.texts(field)[:_CONTEXTS]):
            chunk = i if field == "retrieved_contexts" else None
            marks = _joined(spans.get((field, chunk), ()), len(text))
            within = tuple((start, min(end, _TEXT)) for start, end in marks if start < _TEXT)
            yield Passage(_name(field, chunk), text[:_TEXT], len(text), within, len(marks) - len(within))


def _spans(sample: Sample, judged: Sequence[tuple[Verdict, bool | None]]) -> Spans:
    found: dict[Place, list[tuple[int, int]]] = {}
    for verdict, cost in judged:
        for evidence in verdict.evidence if cost else ():
            found.setdefault((evidence.field, evidence.chunk), []).append((evidence.start, evidence.end))
        if cost and verdict.kind == "claim" and verdict.text and sample.response:
            for match in re.finditer(re.escape(verdict.text), sample.response):
                found.setdefault(("response", None), []).append(match.span())
    sentences = [(verdict, cost) for verdict, cost in judged if verdict.kind == "sentence" and verdict.text]
    for place, span in _sentences(sample.retrieved_contexts, sentences):
        found.setdefault(place, []).append(span)
    return found


def _sentences(
    contexts: Sequence[str], sentences: Sequence[tuple[Verdict, bool | None]]
) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Yield where the sentences that cost the score are: a verdict says so only of the others.

    All sentences stand one behind the other in the contexts, so that each is looked for behind the one before.
    """
    chunk, at = 0, 0
    for verdict, cost in sentences:
        for i in range(chunk, len(contexts)):
            start = contexts[i].find(verdict.text, at if i == chunk else 0)
            if start >= 0:
                chunk, at = i, start + len(verdict.text)
                if cost:
                    yield ("retrieved_contexts", i), (start, at)
                break


def _joined(spans: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the spans within a text of some length in order, those that overlap as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        start, end = max(0, start), min(end, length)
        if start >= end:
            continue
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
