"""Choosing samples to label by chance, so that what people say of them stands for all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from ragstone.identity import digest_of, sample_digest
from ragstone.labels.estimates import LEAST_LABELS
from ragstone.labels.label_file import Draw, LabelError, LabelledRecord, refuse_scale, scores_with_texts
from ragstone.labels.page import NO_TEXTS, entry_of, metric_in
from ragstone.metrics.base import ItemKind
from ragstone.outcome import Score
from ragstone.page.html import html_page
from ragstone.report.page import MEANINGS

if TYPE_CHECKING:
    from ragstone.report import Report


@dataclass(frozen=True, slots=True)
class DrawnSamples:
    """Samples to label.

    Attributes:
        metric: The metric's name.
        kinds: What people judge of its samples beside the whole, by kind.
        entries: The samples in the order of the page, each with its draw.
        notes: The draw and the samples left out, in sentences.
    """

    metric: str
    kinds: Mapping[str, ItemKind]
    entries: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...] = ()

    def page(self, then: str = "ragstone correct RESULTS --labels labels.jsonl") -> str:
        """The page to label them on, which names in the end the command that reads the labels."""
        data: dict[str, Any] = {
            "metric": self.metric,
            "kinds": {name: asdict(kind) for name, kind in self.kinds.items()},
            "meanings": MEANINGS,
            "samples": self.entries,
        }
        return html_page("labels", f"Label {self.metric}", {**data, "digest": digest_of(data), "then": then})


def draw_samples(
    report: "Report",
    other: "Report | None" = None,
    *,
    n: int = 60,
    metric: str | None = None,
    seed: int = 0,
) -> DrawnSamples:
    """Draw samples to label: of one system, or of two over the same samples.

    Each scored sample with texts has the same chance, n / N, without replacement. Of two systems the ids are drawn
    that both have a score for. The two answers to an id stand one behind the other, in an
    order by chance, and nothing says whose they are; where the texts are the same they are labelled once.

    Args:
        report: The results.
        other: Those of the other system.
        n: How many samples, or pairs.
        metric: The metric's name; None where the results hold one.
        seed: Another number gives another draw.

    Raises:
        LabelError: There is nothing to label; several metrics and none is named; the two
            have no id in common, or other versions, judges or set-ups.
    """
    metric, samples, left_out = _population(report, metric)
    if other is None:
        members: list[tuple[LabelledRecord, ...]] = [(each,) for each in samples]
    else:
        members, left_out = _pairs(metric, samples, _population(other, metric)[1])
    size = min(n, len(members))
    rng = Random(seed)  # noqa: S311 - no secret hangs on it
    draw = Draw(chance=size / len(members))
    entries = [entry for i in rng.sample(range(len(members)), size) for entry in _entries(members[i], draw, rng)]
    what = "samples" if other is None else "pairs of answers"
    notes = [f"{size:,} of {len(members):,} {what}, each drawn with the chance {draw.chance:.3g}"]
    if n > len(members):
        notes.append("there are no more")
    if size < LEAST_LABELS:
        notes.append(f"{LEAST_LABELS} labels are the fewest that correct a mean")
    if other is not None:
        notes.append(f"the page has {len(entries):,} samples: both answers of a pair, or one where they are equal")
    notes += [f"left out: {count:,} {why}" for why, count in left_out.items() if count]
    kinds = {kind.kind: kind for member in members for each in member for kind in each.info.items}
    return DrawnSamples(metric, kinds, entries, tuple(notes))


def _population(report: "Report", metric: str | None) -> tuple[str, list[LabelledRecord], Counter[str]]:
    """The metric, the samples that may be drawn, and how many outcomes are left out, by why."""
    metric = metric_in(report, metric)
    of_metric = [record for record in report.results() if record.outcome.metric == metric]
    outcomes = Counter("" if isinstance(record.outcome, Score) else "unscored" for record in of_metric)
    samples = list(scores_with_texts(report, metric))
    unique = {(each.record.sample_id, sample_digest(each.sample)): each for each in samples}
    outcomes["without texts"] = outcomes.pop("", 0) - len(samples)
    outcomes["the same once more"] = len(samples) - len(unique)
    if not unique:
        raise LabelError(NO_TEXTS)
    _check_one(metric, samples)
    return metric, [unique[key] for key in sorted(unique)], outcomes


def _pairs(
    metric: str, a: Sequence[LabelledRecord], b: Sequence[LabelledRecord]
) -> tuple[list[tuple[LabelledRecord, ...]], Counter[str]]:
    """The samples of each id that stands once in either, and how many ids do not."""
    _check_one(metric, [*a, *b])
    by_id: dict[str, tuple[list[LabelledRecord], list[LabelledRecord]]] = {}
    for side, of in enumerate((a, b)):
        for each in of:
            by_id.setdefault(each.record.sample_id, ([], []))[side].append(each)
    pairs: list[tuple[LabelledRecord, ...]] = [(*x, *y) for x, y in by_id.values() if len(x) == len(y) == 1]
    if not pairs:
        raise LabelError(f"{metric}: no id has a score and texts in both; give two runs over the same samples")
    return pairs, Counter({"ids that do not have one score with texts in each file": len(by_id) - len(pairs)})


def _check_one(metric: str, samples: Sequence[LabelledRecord]) -> None:
    if len(names := {each.info.apart for each in samples}) > 1:
        raise LabelError(f"{metric}: there are scores of {' and of '.join(sorted(names))}; score all by one")
    for each in samples:
        refuse_scale(each.info)


def _entries(member: Sequence[LabelledRecord], draw: Draw, rng: Random) -> list[dict[str, Any]]:
    """The entries of a sample or a pair, which is one where both have the same texts."""
    unique = list({sample_digest(each.sample): each for each in member}.values())
    rng.shuffle(unique)
    answers = [f"answer {i} of {len(unique)}" if len(unique) > 1 else "answer" for i in range(1, len(unique) + 1)]
    return [entry_of(each, answer) | {"draw": draw.model_dump()} for each, answer in zip(unique, answers, strict=True)]
