"""The page on which a person labels scored samples: one file, no server, nothing loaded."""

from typing import TYPE_CHECKING, Any

from ragstone.identity import sample_digest
from ragstone.labels.label_file import LabelError, LabelledRecord, items_of
from ragstone.outcome import Score
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.metrics.base import ItemKind
    from ragstone.outcome import Verdict
    from ragstone.report import Report

NO_TEXTS = "the results hold no texts to label: score again without --no-texts, or have Monitor(store_text=True)"


def metric_in(report: "Report", metric: str | None) -> str:
    """The metric that is named, or the one that results hold.

    Raises:
        LabelError: They hold no score of it, or several metrics and none is named.
    """
    names = list(dict.fromkeys(each.outcome.metric for each in report.results() if isinstance(each.outcome, Score)))
    if metric is None and len(names) > 1:
        raise LabelError(f"--metric: the results hold {', '.join(names)}; name the one to label")
    metric = metric or next(iter(names), None)
    if metric not in names:
        raise LabelError(
            f"--metric {metric}: the results hold no score of it; they hold {', '.join(names) or 'no scores at all'}"
        )
    return metric


def entry_of(scored: LabelledRecord, answer: str) -> dict[str, Any]:
    """A sample as the page has it, without what the judge said; `answer` is what it calls the response."""
    record, score, sample = scored.record, scored.score, scored.sample
    of = {"id": record.sample_id, "sample_digest": sample_digest(sample)}
    of |= {"metric": score.metric, "version": score.version, "judge": record.judge}
    items = items_of(score, scored.info.items) if scored.items_give_score else []
    return {"of": of, "texts": _texts_in_order(sample, answer), "items": [_item(*each) for each in items]}


def _item(kind: "ItemKind", verdict: "Verdict") -> dict[str, Any]:
    item: dict[str, Any] = {"kind": kind.kind, "item": verdict.id, "text": verdict.text}
    # The evidence says where the item stands; elsewhere it is what the judge found.
    if kind.origin == "text":
        item["at"] = [[each.field, each.chunk, each.start, each.end] for each in verdict.evidence]
    return item


def _texts_in_order(sample: Sample, answer: str) -> list[tuple[str, int | None, str, str]]:
    """The texts in the order in which they are read: field, position, name, text."""
    texts: list[tuple[str, int | None, str, str]] = []
    texts += [("history", i, turn.role, turn.content) for i, turn in enumerate(sample.history)]
    single = (
        ("user_input", "question", sample.user_input),
        ("response", answer, sample.response),
        ("reference", "reference", sample.reference),
    )
    texts += [(field, None, name, text) for field, name, text in single if text is not None]
    contexts = enumerate(sample.retrieved_contexts)
    return texts + [("retrieved_contexts", i, f"context {i + 1}", text) for i, text in contexts]
