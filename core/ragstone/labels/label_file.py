"""A file of labels: a person's answers on scored samples, one JSON object a line."""

from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictStr, ValidationError, model_validator

from ragstone.errors import RagstoneError
from ragstone.fields.problems import first_problem
from ragstone.identity import sample_digest
from ragstone.metrics import Criterion, Metric
from ragstone.metrics.names import metric_class, metric_names
from ragstone.outcome import Score, Verdict
from ragstone.page.html import showable
from ragstone.plain import count
from ragstone.report.aggregates import key_of, scale
from ragstone.results.record import Record
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.metrics.base import ItemKind
    from ragstone.report import MetricInfo, Report

_SHOWN = 20
WHOLE: Final = "score"
"""The kind of a label of the whole sample."""


class LabelError(RagstoneError, ValueError):
    """Labels cannot be read, made, or used with these results; the message says why, and the way out."""


class Draw(BaseModel):
    """How `ragstone label` drew a sample.

    Attributes:
        chance: The chance that the sample had to be drawn, among the samples of its results.

    Example:
        >>> Draw(chance=0.1).chance
        0.1
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    chance: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False, strict=True)]


class Label(BaseModel):
    """A person's answer on one item of a sample, or on the whole sample.

    Attributes:
        ragstone_label: The form's version.
        id: The sample's id in the results.
        sample_digest: Of the texts that were labelled (`sample_digest`).
        metric: The metric's name.
        version: The version of the metric that listed the items.
        judge: The `model` of the judge that listed them.
        kind: The item's kind, such as "claim"; "score" for the whole sample.
        item: The item's id within its kind; None for the whole sample.
        text: The item's text, likewise.
        answer: One of the kind's choices; a number from 0 to 1 for the whole sample; None where it was skipped.
        skipped: Whether the person passed the sample over.
        missing: Whether the person said that the list of items lacks something.
        draw: How the sample was drawn; None where `ragstone label` did not draw it.

    Example:
        >>> Label(id="q1", sample_digest="0a", metric="demo", version="1", judge="j",
        ...       kind="score", answer=0.5).missing
        False
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ragstone_label: Literal[1] = 1
    id: StrictStr
    sample_digest: StrictStr
    metric: StrictStr
    version: StrictStr
    judge: StrictStr
    kind: StrictStr
    item: StrictStr | None = None
    text: StrictStr | None = None
    answer: StrictFloat | StrictStr | None = None
    skipped: bool = False
    missing: bool = False
    draw: Draw | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Label":
        if self.skipped != (self.answer is None):
            raise ValueError("answer: is needed, unless the sample was skipped")
        if (self.kind == WHOLE) != (self.item is None) or (self.item is None) != (self.text is None):
            raise ValueError("item and text: belong to an item, and to it alone")
        number = isinstance(self.answer, float) and 0.0 <= self.answer <= 1.0
        if self.kind == WHOLE and not (self.skipped or number):
            raise ValueError(f"answer: {str(self.answer)[:40]!r} is not a number from 0 to 1")
        return self


@dataclass(frozen=True, slots=True)
class LabelledRecord:
    """A scored sample, with a person's answers."""

    record: Record
    score: Score
    sample: Sample
    info: "MetricInfo"
    labels: tuple[Label, ...]

    @property
    def skipped(self) -> bool:
        """Whether the person passed it over."""
        return any(label.skipped for label in self.labels)

    @property
    def by_items(self) -> bool:
        """Whether the person answered items, and not for the whole sample, which would count before them."""
        return not any(label.kind == WHOLE for label in self.labels)

    @property
    def by_judges_items(self) -> bool:
        """Whether the score is by items that the judge listed. It says nothing of others."""
        kinds = {label.kind for label in self.labels}
        return self.by_items and any(kind.origin == "judge" for kind in self.info.items if kind.kind in kinds)

    @property
    def missing(self) -> bool:
        """Whether she said that the list of items lacks something."""
        return any(label.missing for label in self.labels)

    @property
    def value(self) -> float | None:
        """The score by the person's labels: hers of the whole sample, or the metric's own formula on her answers.

        None where she passed it over, left an item open, or the formula is 0 of 0.

        Raises:
            LabelError: Labels of this metric's items give no score, or the results lack its options.
        """
        if not self.by_items:
            return next((each.answer for each in self.labels if isinstance(each.answer, float)), None)
        answers = {(label.kind, label.item): str(label.answer) for label in self.labels}
        items = [item for _, item in items_of(self.score, self.info.items)]
        if any((item.kind, item.id) not in answers for item in items):
            return None
        return self._by([item.model_copy(update={"verdict": answers[item.kind, item.id]}) for item in items])

    @property
    def items_give_score(self) -> bool:
        """Whether answers to all items would give a `value`."""
        items = [item for _, item in items_of(self.score, self.info.items)]
        try:
            self._by(items)
        except LabelError:
            return False
        return True

    def _by(self, verdicts: Sequence[Verdict]) -> float | None:
        try:
            return _formula_class(self.info).value_of(verdicts, self.sample, self.info.settings)
        except NotImplementedError:
            problem = "labels of its items do not give its score"
        except KeyError as option:
            problem = f"its score by items needs {option}, which the results lack"
        raise LabelError(f"{self.info.name}: {problem}; label with `one score`")


def _formula_class(info: "MetricInfo") -> type[Metric]:
    """The class of ragstone's that a metric is of; `Metric` where it is one of your own."""
    if info.name in metric_names():
        return metric_class(info.name)
    return Criterion if any(kind.kind == "criterion" for kind in info.items) else Metric


def items_of(score: Score, kinds: "Iterable[ItemKind]") -> "list[tuple[ItemKind, Verdict]]":
    """The verdicts of a score that a person can judge, beside the whole."""
    return [(kind, verdict) for kind in kinds for verdict in score.verdicts if verdict.kind == kind.kind]


def read_labels(path: str | Path) -> list[tuple[int, Label]]:
    """The labels of a file, each with its line from 1.

    Raises:
        LabelError: It cannot be read, or a line holds none; all such lines (20 at most) are named.
    """
    labels: list[tuple[int, Label]] = []
    bad: list[str] = []
    try:
        lines = Path(path).read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        raise LabelError(f"--labels {path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                labels.append((number, Label.model_validate_json(line)))
        except ValidationError as error:  # noqa: PERF203 - each line is named
            bad.append(f"line {number}: {first_problem(error)}")
    if not any(b"sample_digest" in line for line in lines):
        raise LabelError(f"--labels {path}: holds no label; `ragstone label` makes a page to make labels on")
    _refuse(path, bad)
    return labels


def _refuse(path: str | Path, problems: Sequence[str]) -> None:
    """Refuse a file with faulty lines; the message names the first 20 faults."""
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        head = f"--labels {path}: {count(len(problems), 'label')} cannot be used:"
        raise LabelError("\n".join([head, *problems[:_SHOWN], *more]))


def match_labels(
    path: str | Path, labels: Sequence[tuple[int, Label]], reports: "Sequence[Report]"
) -> list[list[LabelledRecord]]:
    """The scores that labels are of, for each report, in the order of its results.

    Args:
        path: The file, for messages.
        labels: Its labels, each with its line; one may be of a score in each report.
        reports: The results.

    Raises:
        LabelError: A label is of another sample, text, item, version or judge, it is no answer, or it is the
            second one of its item. All such labels (20 at most) are named.
    """
    scores = [{_score_key(each): each for each in scores_with_texts(of)} for of in reports]
    ids = {(sample_id, metric) for of in scores for sample_id, _, metric in of}
    problems: list[str] = []
    seen: set[tuple[str | None, ...]] = set()
    for number, label in labels:
        key = showable(label.id), label.sample_digest, label.metric
        item = *key, label.kind, label.item
        problems_of = [(of, _label_problem(label, of[key])) for of in scores if key in of]
        if fitting := [of for of, problem in problems_of if problem is None]:
            problem = f"{_name_of(label)} has a label already" if item in seen else None
        elif problems_of:
            problem = problems_of[0][1]
        elif (key[0], label.metric) in ids:
            problem = "its texts are others in the results; they were changed, so label it again"
        else:
            problem = f"the results have no score of it by {label.metric}"
        if problem is not None:
            problems.append(f"line {number}: sample {label.id[:80]!r}: {problem}")
        seen.add(item)
        for of in fitting:
            of[key] = replace(of[key], labels=(*of[key].labels, label))
    _refuse(path, problems)
    return [[each for each in of.values() if each.labels] for of in scores]


def _score_key(scored: LabelledRecord) -> tuple[str, str, str]:
    return showable(scored.record.sample_id), sample_digest(scored.sample), scored.score.metric


def scores_with_texts(report: "Report", metric: str | None = None) -> Iterable[LabelledRecord]:
    """Yield the scores whose sample is there with texts; none has labels yet."""
    infos = {info.key: info for info in report.metrics}
    for record in report.results(samples=True):
        score = record.outcome
        if not isinstance(score, Score) or metric not in (None, score.metric):
            continue
        sample = record.sample
        if sample is not None and any(sample.all_texts()):
            yield LabelledRecord(record, score, sample, infos[key_of(record)], ())


def refuse_scale(info: "MetricInfo") -> None:
    """Refuse a metric whose scores cannot stand beside labels, which are from 0 (worst) to 1 (best).

    Raises:
        LabelError: Its bounds are others, but for a cosine's, or lower scores are better.
    """
    if not info.higher_is_better:
        raise LabelError(f"{info.name}: lower scores are better; labels are from 0 (worst) to 1 (best)")
    if info.bounds is not None and scale(info.bounds) != (0.0, 1.0):
        low, high = info.bounds
        raise LabelError(
            f"{info.name}: scores are from {low:g} to {high:g}, and labels from 0 to 1; bring its scores to 0 to 1"
        )


def _name_of(label: Label) -> str:
    """The name of the item that a label is of."""
    return "the sample" if label.kind == WHOLE else f"{label.kind} {label.item}"


def _label_problem(label: Label, scored: LabelledRecord) -> str | None:
    """Why a label is not of a score, if it is not."""
    for name, was, is_now in (
        ("version", label.version, scored.score.version),
        ("judge", label.judge, scored.record.judge),
    ):
        if was != is_now:
            return f"{label.metric}: the label is of {name} {was[:80]!r}, the score of {is_now!r}; label these results"
    if label.kind == WHOLE:
        return None
    items = {(kind.kind, item.id): (kind, item) for kind, item in items_of(scored.score, scored.info.items)}
    if (label.kind, label.item or "") not in items:
        return f"the score has no {_name_of(label)[:80]}"
    kind, item = items[label.kind, label.item or ""]
    if showable(item.text) != showable(label.text or ""):
        return f"{_name_of(label)}: its text is another in the results"
    if label.answer not in kind.choices:
        return f"{_name_of(label)}: answer: {str(label.answer)[:40]!r} is not one of {', '.join(kind.choices)}"
    return None
