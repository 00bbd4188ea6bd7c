"""A calibration: a monotone map from a judge's probabilities to the share of yes among somebody's labels."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragstone.judging.reply import BadReply, parse_json
from ragstone.labels.signals import EMBEDDED, Item, Signal, columns, sigmoid
from ragstone.outcome import Finite, Probability

if TYPE_CHECKING:
    from os import PathLike

    from ragstone.metrics.base import Metric

_FORMAT = 1
_DIGEST_BYTES = 6
_LARGEST = 10_000_000  # bytes: far more than an isotonic map of any number of labels takes

Weight = Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False)]
Intercept = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]


class CalibrationError(ValueError):
    """A calibration that cannot be read, made, or used with a metric; the message says why and what to do."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Figure(_Frozen):
    """A statistic with its 95 % interval.

    Example:
        >>> Figure(value=0.5, low=0.25, high=0.75).width
        0.5
    """

    value: Finite
    low: Finite
    high: Finite

    @property
    def width(self) -> float:
        """The interval's width."""
        return self.high - self.low


class Change(_Frozen):
    """A statistic before and after calibration, on the same samples.

    Attributes:
        name: What it is.
        before: Of the judge as it is.
        after: Calibrated, each sample by a map and a threshold that were fitted without it.
        difference: After minus before, sample by sample.

    Example:
        >>> same = Figure(value=0.5, low=0.4, high=0.6)
        >>> Change(name="accuracy", before=same, after=same, difference=same).name
        'accuracy'
    """

    name: str
    before: Figure
    after: Figure
    difference: Figure


class Calibration(_Frozen):
    """What a judge's probabilities mean by your labels, as `ragstone calibrate` found it. Immutable.

        p = sigmoid(intercept + sum of weight * signal)         method "platt"
          = that, through the steps of `knots`                  method "isotonic"

    No weight is below 0, so where the judge's probability is higher and all else is the same, p is no lower.

    Attributes:
        metric: The metric's name.
        version: The metric's version; other instructions are another version.
        prompts: Digest of the metric's instructions.
        judge: The judge's `model`.
        embedder: The embedder's `model`; None where no signal needs one.
        item: What is mapped: the probability that a "sentence" is needed, or that a response is "noncommittal", or
            a sample's "score".
        settings: The metric's options, where the score itself is mapped: another option is another score.
        one_by_one: Whether the judge is asked one item per call.
        votes: How often it is asked about each item; 1: once, with log-probabilities.
        method: "platt", "isotonic", or "none" (probabilities as they are: what labels are gathered with).
        weights: By signal (`ragstone.labels.signals.columns`).
        intercept: Added to the weighted signals.
        knots: Pairs of x and p, both rising, for "isotonic"; between them p is interpolated.
        threshold: An item is counted as yes from this p on; for a score, what separates best (None: no yes and no).
        labels: How many labels it was made from.
        samples: Of how many samples.
        agreement: How well it agrees with the labels, before and after.

    Example:
        >>> found = Calibration(metric="context_relevancy", version="1", prompts="", judge="fake", item="sentence",
        ...                     weights={"judge": 0.5}, intercept=-1.0, threshold=0.3)
        >>> [round(p, 2) for p in found.apply([0.0, 0.5, 1.0])]
        [0.0, 0.27, 0.97]
    """

    metric: str
    version: str
    prompts: str
    judge: str
    embedder: str | None = None
    item: Item
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    one_by_one: bool = True
    votes: Annotated[int, Field(ge=1)] = 1
    method: Literal["platt", "isotonic", "none"] = "platt"
    weights: dict[Signal, Weight] = Field(default_factory=dict[Signal, float])
    intercept: Intercept = 0.0
    knots: tuple[tuple[Probability, Probability], ...] = ()
    threshold: Probability | None = None
    labels: int = 0
    samples: int = 0
    agreement: tuple[Change, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> "Calibration":
        if self.item != "score" and self.threshold is None:
            raise ValueError("threshold: is missing; without it no item can be counted")
        if self.votes > 1 and not self.one_by_one:
            raise ValueError("votes: need one_by_one")
        if (self.method == "isotonic") != bool(self.knots):
            raise ValueError("knots: belong to the method 'isotonic', and to it alone")
        if any(a >= c or b > d for (a, b), (c, d) in pairwise(self.knots)):
            raise ValueError("knots: do not rise")
        if self.embeds and (self.embedder is None or self.item != "sentence"):
            raise ValueError("weights: a cosine needs an embedder, and sentences")
        return self

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def embeds(self) -> bool:
        """Whether a signal needs an embedder."""
        return not EMBEDDED.isdisjoint(self.weights)

    @property
    def digest(self) -> str:
        """Twelve hex digits that stand for all that it says."""
        text = json.dumps(self._content(), sort_keys=True, ensure_ascii=True, allow_nan=False)
        return blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()

    @property
    def cache_key(self) -> str:
        """What it counts by in a journal's keys."""
        return self.digest

    def apply(
        self, judged: Sequence[float], cosines: Sequence[float] | None = None, contexts: Sequence[int] | None = None
    ) -> list[float]:
        """Return the calibrated probability of each item of one sample, within [0, 1].

        Args:
            judged: The judge's probability of each item; for the item "score", the score.
            cosines: Of each item's embedding with the question's; only looked at where `embeds`.
            contexts: In which context each item stands, likewise; None: all in one.

        Raises:
            ValueError: A cosine is missing, or a context.
        """
        if self.method == "none":
            return list(judged)
        return mapped(self.weights, self.intercept, self.knots, judged, cosines, contexts)

    def chosen(self, probabilities: Sequence[float]) -> list[bool]:
        """Return which items count as yes."""
        least = 0.5 if self.threshold is None else self.threshold
        return [p >= least for p in probabilities]

    def told(self) -> str:
        """Return, in a sentence, what it did to an outcome."""
        by = ", ".join(self.weights) or "nothing: the labels' share of yes"
        asked = f", {self.votes} votes each" if self.votes > 1 else ""
        at = "" if self.threshold is None or self.item == "score" else f"; yes from {self.threshold:.3f} on"
        return f"Calibrated on {self.labels} labels by {by}{asked}{at}."

    def save(self, path: "str | PathLike[str]") -> None:
        """Write it as JSON. An existing file is replaced."""
        content = {"ragstone_calibration": _FORMAT, "digest": self.digest, **self._content()}
        text = json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)
        Path(path).write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: "str | PathLike[str]") -> "Calibration":
        """Return the calibration in a file.

        Raises:
            CalibrationError: There is no such file, it holds no calibration or one of a newer ragstone, or it was
                changed after it was written.
        """
        where = Path(path)
        try:
            with where.open("rb") as file:
                raw = file.read(_LARGEST + 1)
        except OSError as error:
            raise CalibrationError(f"calibration: {where}: cannot be read: {error.strerror}") from None
        if len(raw) > _LARGEST:
            raise CalibrationError(f"calibration: {where}: is too large to be a calibration")
        try:
            return _from_bytes(raw)
        except CalibrationError as error:
            raise CalibrationError(f"calibration: {where}: {error}") from None

    def check(self, metric: "Metric") -> None:
        """Refuse a metric that it was not made with.

        Raises:
            CalibrationError: Names what differs.
        """
        from ragstone.labels.facts import differences

        told = "; ".join(differences(self, metric))
        if told:
            raise CalibrationError(f"calibration: was not made for this metric: {told}. Make one: ragstone calibrate")

    def _content(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def mapped(
    weights: Mapping[Signal, float],
    intercept: float,
    knots: Sequence[tuple[float, float]],
    judged: Sequence[float],
    cosines: Sequence[float] | None,
    contexts: Sequence[int] | None = None,
) -> list[float]:
    """Return sigmoid(intercept + sum of weight * signal) of each item of one sample, and through the knots, if any.

    Example:
        >>> mapped({"judge": 1.0}, 0.0, (), [0.5, 0.75], None)
        [0.5, 0.75]
    """
    values = columns(tuple(weights), judged, cosines, contexts)
    found: list[float] = []
    for i in range(len(judged)):
        p = sigmoid(intercept + sum(w * column[i] for w, column in zip(weights.values(), values, strict=True)))
        found.append(interpolated(p, knots) if knots else p)
    return found


def interpolated(x: float, knots: Sequence[tuple[float, float]]) -> float:
    """Return y at x on the line through the knots, and the end's y beyond them.

    Example:
        >>> [interpolated(x, ((0.25, 0.0), (0.75, 1.0))) for x in (0.0, 0.5, 1.0)]
        [0.0, 0.5, 1.0]
    """
    at = bisect_right(knots, x, key=lambda knot: knot[0])
    if at == 0:
        return knots[0][1]
    if at == len(knots):
        return knots[-1][1]
    (x0, y0), (x1, y1) = knots[at - 1], knots[at]
    return min(max(y0 + (y1 - y0) * ((x - x0) / (x1 - x0)), y0), y1)  # rounding leaves no interval


def _from_bytes(raw: bytes) -> Calibration:
    try:
        value = cast("object", parse_json(raw.decode("utf-8")))
    except UnicodeDecodeError:
        raise CalibrationError("is not UTF-8") from None
    except BadReply as error:
        raise CalibrationError(f"is no calibration: {error}") from None
    if not isinstance(value, dict) or "ragstone_calibration" not in value:
        raise CalibrationError("holds no calibration; `ragstone calibrate` writes one")
    content = dict(cast("dict[str, object]", value))
    form, digest = content.pop("ragstone_calibration"), content.pop("digest", None)
    if form != _FORMAT or isinstance(form, bool):
        raise CalibrationError(f"is of form {form!r}; this ragstone reads {_FORMAT}: upgrade, or calibrate again")
    try:
        found = Calibration.model_validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise CalibrationError(f"{at}: {first['msg']}" if at else first["msg"].removeprefix("Value error, ")) from None
    if digest != found.digest:
        raise CalibrationError(f"digest: is {digest!r}, the content's is {found.digest!r}: was edited; calibrate again")
    return found
