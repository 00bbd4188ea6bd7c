"""A calibration: a monotone map from a judge's probabilities to the share of yes among somebody's labels."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragstone.errors import CannotScore, RagstoneError
from ragstone.judging.reply import Answer
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.metrics.setup import embedder_of, plain_version, prompts_digest, settings_of
from ragstone.outcome import Finite, Probability
from ragstone.results.private_files import replacing
from ragstone.sample import first_problem

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_LEAST = 1e-4  # of a probability: further out a log-probability is rounding, and its logit would outweigh all others


class CalibrationError(RagstoneError, ValueError):
    """A calibration that cannot be read, made, or used with a metric; the message says why and what to do."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Figure(_Frozen):
    """A statistic with its 95 % interval."""

    value: Finite
    low: Finite
    high: Finite


class Change(_Frozen):
    """A statistic before and after calibration, on the same samples.

    Attributes:
        name: What it is.
        before: Of the judge as it is.
        after: Calibrated, each sample by a map and a threshold that were fitted without it.
        difference: After minus before, sample by sample.
    """

    name: str
    before: Figure
    after: Figure
    difference: Figure


class ProbabilityMap(_Frozen):
    """The map of a `Calibration`; see there. It never falls."""

    item: CalibratedItem
    weight: Annotated[float, Field(ge=0.0, le=1e9)] = 0.0
    intercept: Annotated[float, Field(ge=-1e9, le=1e9)] = 0.0

    def apply(self, judged: Sequence[float]) -> list[float]:
        """Return the calibrated probability of each item, within [0, 1].

        Args:
            judged: The probability that the metric gives each item; for the item "score", the score.
        """
        z = self.intercept + self.weight * signals(self.item, judged)
        return [float(each) for each in sigmoid(z)]


class Calibration(ProbabilityMap):
    """What a judge's probabilities mean by your labels, as `ragstone calibrate` fitted it. Immutable.

        p = sigmoid(intercept + weight * signal)         (Platt's map)

    The signal is the logit of the probability that the metric gives an item, held within [0.0001, 0.9999]; for the item
    "score" it is the score. The weight is not below 0, so where the signal is higher, p is no lower.

    Attributes:
        metric: The metric's name.
        version: The metric's version; other instructions are another version.
        prompts: Digest of the metric's instructions.
        judge: The judge's `model`.
        embedder: The `model` of the embedder that the item's probability, or the score, depends on; None where it
            depends on none.
        item: What is mapped: the probability that a "sentence" is needed, or that a response is "noncommittal", or
            a sample's "score".
        settings: The metric's options, where the score itself is mapped: another option is another score.
        one_by_one: Whether the judge is asked one item per call.
        weight: Of the signal; 0 where the labels do not rise with it.
        intercept: Added to the weighted signal.
        threshold: An item is counted as yes from this p on; for a score, what separates best (None: no yes and no).
        labels: How many labels it was made from.
        samples: Of how many samples.
        agreement: How well it agrees with the labels, before and after.

    Example:
        >>> calibration = Calibration(metric="context_relevancy", version="1", prompts="", judge="fake",
        ...                           item="sentence", weight=0.5, intercept=-1.0, threshold=0.3)
        >>> [round(p, 2) for p in calibration.apply([0.0, 0.5, 1.0])]
        [0.0, 0.27, 0.97]
    """

    metric: str
    version: str
    prompts: str
    judge: str
    embedder: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    one_by_one: bool = True
    threshold: Probability | None = None
    labels: int = 0
    samples: int = 0
    agreement: tuple[Change, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> "Calibration":
        if self.item != "score" and self.threshold is None:
            raise ValueError("threshold: is missing; without it no item can be counted")
        return self

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """Twelve hex digits that stand for all that it says."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def cache_key(self) -> str:
        """What it counts by in a journal's keys."""
        return self.digest

    def answers(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return answers of yes or no with calibrated probabilities, decided at the threshold.

        Raises:
            CannotScore: "undefined" when the judge gave no probability for one.

        Example:
            >>> calibration = Calibration(metric="demo", version="1", prompts="", judge="fake", item="sentence",
            ...                           weight=1.0, threshold=0.75)
            >>> calibration.answers([Answer("yes", {"yes": 0.5, "no": 0.5})])
            [Answer(choice='no', probabilities={'yes': 0.5, 'no': 0.5})]
        """
        judged = [p for answer in answers if (p := answer.probability("yes")) is not None]
        if len(judged) < len(answers):
            raise CannotScore(
                "undefined",
                f"a calibration needs probabilities, and the judge gave none for {len(answers) - len(judged)} of "
                f"{len(answers)} items",
            )
        least = 0.5 if self.threshold is None else self.threshold
        return [Answer("yes" if p >= least else "no", {"yes": p, "no": 1.0 - p}) for p in self.apply(judged)]

    def score(self, value: float, reason: str, /) -> tuple[float, dict[str, float], str]:
        """Return a score's value as calibrated, what that adds to the breakdown, and the reason."""
        name = "score" if self.item == "score" else "judge"
        signal = name if self.weight else "nothing: the labels' share of yes"
        limit = "" if self.threshold is None or self.item == "score" else f"; yes from {self.threshold:.3f} on"
        reason = f"{reason} Calibrated on {self.labels} labels by {signal}{limit}."
        if self.item != "score":
            return value, {}, reason
        (calibrated,) = self.apply([value])
        return calibrated, {"uncalibrated": value}, f"{reason} {value:.2f} became {calibrated:.2f}."

    def save(self, path: "str | PathLike[str]") -> None:
        """Write it as JSON. An existing file is replaced."""
        content = _File(ragstone_calibration=1, digest=self.digest, calibration=self)
        with replacing(Path(path)) as target:
            target.write(f"{content.model_dump_json(indent=2)}\n".encode())

    @classmethod
    def load(cls, path: "str | PathLike[str]") -> "Calibration":
        """Return the calibration in a file.

        Raises:
            CalibrationError: There is no such file, it holds no calibration or one of a newer ragstone, or it was
                changed after it was written.
        """
        try:
            return _File.model_validate_json(Path(path).read_bytes(), strict=True).calibration
        except OSError as error:
            raise CalibrationError(f"calibration: {path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise CalibrationError(
                f"calibration: {path}: is none that this ragstone can use: {first_problem(error)}; "
                "make one: ragstone calibrate"
            ) from None

    def check(self, metric: Metric, /) -> None:
        """Refuse a metric that it was not made with.

        Raises:
            CalibrationError: Names what differs.
        """
        if metric.name != self.metric:
            different = [f"it is of {self.metric}, this is {metric.name}"]
        else:
            different = [
                f"{name}: made with {made_with!r}, this has {has!r}"
                for name, (made_with, has) in self._compared(metric).items()
                if made_with != has
            ]
            if self.item not in ("score", *metric.calibrated_items):
                different.append(f"it is of a {self.item}, which {metric.name} does not ask about one by one")
        if different:
            raise CalibrationError(
                f"calibration: was not made for this metric: {'; '.join(different)}. Make one: ragstone calibrate"
            )

    def _compared(self, metric: Metric) -> dict[str, tuple[object, object]]:
        """Return what must be the same, by name: as it was made, and as the metric has it."""
        compared: dict[str, tuple[object, object]] = {
            "version": (self.version, plain_version(metric.version)),
            "instructions": (self.prompts, prompts_digest(metric)),
            "judge": (self.judge, metric.judge.model),
            "asking one by one": (self.one_by_one, metric.asks_one_by_one),
            "embedder": (self.embedder, embedder_of(metric, self.item)),
        }
        settings = settings_of(metric, self.item)
        for name in sorted(settings.keys() | self.settings.keys()):
            compared[name] = self.settings.get(name), settings.get(name)
        return compared


class _File(_Frozen):
    ragstone_calibration: Literal[1]
    digest: str
    calibration: Calibration

    @model_validator(mode="after")
    def _unchanged(self) -> "_File":
        if self.digest != self.calibration.digest:
            raise ValueError("was edited: its content is not that of its digest")
        return self


def sigmoid(z: "Numbers") -> "Numbers":
    """Return 1 / (1 + exp(-z)), for any finite z."""
    power = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, power) / (1.0 + power)


def signals(item: CalibratedItem, judged: Sequence[float]) -> "Numbers":
    """Return what the map weighs: the logit of each item's probability, or the score as it is."""
    p = np.asarray(judged, np.float64)
    if item == "score":
        return p
    held = p.clip(_LEAST, 1.0 - _LEAST)
    return np.asarray(np.log(held / (1.0 - held)), np.float64)
