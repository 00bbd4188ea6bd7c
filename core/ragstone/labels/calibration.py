"""A calibration: a monotone map from a judge's probabilities to the share of yes among somebody's labels."""

import dataclasses
import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragstone.errors import CannotScore
from ragstone.judge import LLMRequest
from ragstone.judging.flow import Flow, each
from ragstone.judging.prompt import digest
from ragstone.judging.reply import Answer, BadReply, parse_json
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.outcome import Finite, Probability

if TYPE_CHECKING:
    from os import PathLike

Signal = Literal["judge", "score", "cosine", "cosine_gap", "context_gap", "fewness"]

WITHOUT_EMBEDDER: Mapping[CalibratedItem, tuple[Signal, ...]] = {
    "sentence": ("judge", "fewness"),
    "noncommittal": ("judge",),
    "score": ("score",),
}
WITH_EMBEDDER: tuple[Signal, ...] = ("judge", "cosine", "cosine_gap", "context_gap", "fewness")
"""Of sentences. The gaps make cosines comparable between questions, whose cosines are high or low together."""

EMBEDDED: frozenset[Signal] = frozenset({"cosine", "cosine_gap", "context_gap"})

_LEAST = 1e-4  # of a probability: further out a log-probability is rounding, and its logit would outweigh all others

_FORMAT = 1
_DIGEST_BYTES = 6
_VOTE_TEMPERATURE = 0.7  # draws of one prompt are wanted to differ
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
        weights: By signal (see `columns`).
        intercept: Added to the weighted signals.
        knots: Pairs of x and p, both rising, for "isotonic"; between them p is interpolated.
        threshold: An item is counted as yes from this p on; for a score, what separates best (None: no yes and no).
        labels: How many labels it was made from.
        samples: Of how many samples.
        agreement: How well it agrees with the labels, before and after.

    Example:
        >>> calibration = Calibration(metric="context_relevancy", version="1", prompts="", judge="fake",
        ...                           item="sentence", weights={"judge": 0.5}, intercept=-1.0, threshold=0.3)
        >>> [round(p, 2) for p in calibration.apply([0.0, 0.5, 1.0])]
        [0.0, 0.27, 0.97]
    """

    metric: str
    version: str
    prompts: str
    judge: str
    embedder: str | None = None
    item: CalibratedItem
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

    def describe(self) -> str:
        """Return, in a sentence, what it did to an outcome."""
        by = ", ".join(self.weights) or "nothing: the labels' share of yes"
        asked = f", {self.votes} votes each" if self.votes > 1 else ""
        at = "" if self.threshold is None or self.item == "score" else f"; yes from {self.threshold:.3f} on"
        return f"Calibrated on {self.labels} labels by {by}{asked}{at}."

    def ask(self, request: LLMRequest, answer: Callable[[LLMRequest], Flow[Answer]], /) -> Flow[Answer]:
        """Ask for one of the request's choices: once, or `votes` times for the share of each choice."""
        if self.votes == 1:
            return (yield from answer(request))
        draws = [dataclasses.replace(request, temperature=_VOTE_TEMPERATURE, sample_index=i) for i in range(self.votes)]
        return voted((yield from each([answer(draw) for draw in draws])), request.choices or ())

    def answers(
        self, answers: Sequence[Answer], cosines: Sequence[float] | None = None, contexts: Sequence[int] | None = None
    ) -> list[Answer]:
        """Return one sample's answers of yes or no with calibrated probabilities, decided at the threshold.

        Args:
            answers: One for each item.
            cosines: As for `apply`; likewise `contexts`.
            contexts: In which context each item stands.

        Raises:
            CannotScore: "undefined" when the judge gave no probability for one.

        Example:
            >>> calibration = Calibration(metric="demo", version="1", prompts="", judge="fake", item="sentence",
            ...                           weights={"judge": 1.0}, threshold=0.75)
            >>> calibration.answers([Answer("yes", {"yes": 0.5, "no": 0.5})])
            [Answer(choice='no', probabilities={'yes': 0.5, 'no': 0.5})]
        """
        judged = [answer.probability("yes") for answer in answers]
        known = [p for p in judged if p is not None]
        if len(known) < len(judged):
            raise CannotScore(
                "undefined",
                f"a calibration needs probabilities, and the judge gave none for {len(judged) - len(known)} of "
                f"{len(judged)} items; calibrate by votes (--repeat 5) a judge that has none",
            )
        if self.method == "none":
            return list(answers)
        shares = self.apply(known, cosines, contexts)
        return [
            Answer("yes" if chosen else "no", {"yes": p, "no": 1.0 - p})
            for p, chosen in zip(shares, self.chosen(shares), strict=True)
        ]

    def score(self, value: float, reason: str, /) -> tuple[float, dict[str, float], str]:
        """Return a score's value as calibrated, what that adds to the breakdown, and the reason."""
        reason = f"{reason} {self.describe()}"
        if self.item != "score" or self.method == "none":
            return value, {}, reason
        (calibrated,) = self.apply([value])
        return calibrated, {"uncalibrated": value}, f"{reason} {value:.2f} became {calibrated:.2f}."

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

    def check(self, metric: Metric, /) -> None:
        """Refuse a metric that it was not made with.

        Raises:
            CalibrationError: Names what differs.
        """
        if different := "; ".join(_differences(self, metric)):
            raise CalibrationError(
                f"calibration: was not made for this metric: {different}. Make one: ragstone calibrate"
            )

    def _content(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def voted(answers: Sequence[Answer], choices: Sequence[str]) -> Answer:
    """Return the choice with the most votes, and each choice's share of them.

    With k votes for one of m choices among K, its share is (k + 1/m) / (K + 1): never 0 and never 1, which K votes
    cannot show. Of choices with equally many votes the one that came first is taken.

    Example:
        >>> voted([Answer("yes"), Answer("no"), Answer("yes")], ("yes", "no"))
        Answer(choice='yes', probabilities={'yes': 0.625, 'no': 0.375})
    """
    votes = Counter(answer.choice for answer in answers)
    ((choice, _),) = votes.most_common(1)  # in order of arrival where the counts are equal
    shares = {word: (votes[word] + 1.0 / len(choices)) / (len(answers) + 1.0) for word in choices}
    return Answer(choice, shares)


def logit(p: float) -> float:
    """Return ln(p / (1 - p)), p held within [0.0001, 0.9999].

    Example:
        >>> logit(0.5), round(logit(1.0), 2)
        (0.0, 9.21)
    """
    held = min(max(p, _LEAST), 1.0 - _LEAST)
    return math.log(held / (1.0 - held))


def sigmoid(z: float) -> float:
    """Return 1 / (1 + exp(-z)), for any finite z.

    Example:
        >>> sigmoid(0.0), sigmoid(-1e6)
        (0.5, 0.0)
    """
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    power = math.exp(z) if z > -700.0 else 0.0
    return power / (1.0 + power)


def columns(
    names: Sequence[Signal],
    judged: Sequence[float],
    cosines: Sequence[float] | None = None,
    contexts: Sequence[int] | None = None,
) -> list[list[float]]:
    """Return each signal's values, one per item of one sample.

    - "judge": the logit of the judge's probability.
    - "score": the sample's score as it is.
    - "cosine": of the item's embedding with the question's.
    - "cosine_gap": that, minus the highest cosine among the sample's items; 0 for the best one.
    - "context_gap": the mean cosine of the items of the same context, minus the highest such mean of the sample.
    - "fewness": minus ln of the number of the sample's items: of many sentences a smaller share is needed.

    Example:
        >>> columns(("judge", "cosine_gap"), [0.5, 0.5], [0.25, 0.75])
        [[0.0, 0.0], [-0.5, 0.0]]
    """
    if not EMBEDDED.isdisjoint(names) and (cosines is None or len(cosines) != len(judged)):
        raise ValueError(f"cosines: {0 if cosines is None else len(cosines)} for {len(judged)} items")
    near = list(cosines or ())
    if contexts is not None and len(contexts) != len(judged):
        raise ValueError(f"contexts: {len(contexts)} for {len(judged)} items")
    best = max(near, default=0.0)
    values: dict[Signal, list[float]] = {"score": list(judged), "cosine": near}
    if "judge" in names:
        values["judge"] = [logit(p) for p in judged]
    if "cosine_gap" in names:
        values["cosine_gap"] = [cosine - best for cosine in near]
    if "context_gap" in names:
        places = [0] * len(near) if contexts is None else contexts
        together: dict[int, list[float]] = {}
        for place, cosine in zip(places, near, strict=True):
            together.setdefault(place, []).append(cosine)
        means = {place: math.fsum(near) / len(near) for place, near in together.items()}
        highest = max(means.values(), default=0.0)
        values["context_gap"] = [means[place] - highest for place in places]
    if "fewness" in names:
        values["fewness"] = [-math.log(len(judged))] * len(judged)
    return [values[name] for name in names]


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
    shares: list[float] = []
    for i in range(len(judged)):
        p = sigmoid(intercept + sum(w * column[i] for w, column in zip(weights.values(), values, strict=True)))
        shares.append(interpolated(p, knots) if knots else p)
    return shares


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
    form, written = content.pop("ragstone_calibration"), content.pop("digest", None)
    if form != _FORMAT or isinstance(form, bool):
        raise CalibrationError(f"is of form {form!r}; this ragstone reads {_FORMAT}: upgrade, or calibrate again")
    try:
        calibration = Calibration.model_validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise CalibrationError(f"{at}: {first['msg']}" if at else first["msg"].removeprefix("Value error, ")) from None
    if written != calibration.digest:
        actual = calibration.digest
        raise CalibrationError(f"digest: is {written!r}, the content's is {actual!r}: was edited; calibrate again")
    return calibration


# Options that are told apart elsewhere (judge, version), or that leave the score as it is.
_NOT_SETTINGS = {
    "llm",
    "asking",
    "calibration",
    "instructions",
    "max_characters",
    "max_input_tokens",
    "parts",
    "threshold",
}


def prompts_digest(metric: Metric) -> str:
    """Return what stands for the instructions that a metric gives its judge."""
    return digest({**metric.prompts, **metric.instructions})


def plain_version(metric: Metric) -> str:
    """Return a metric's version without what a calibration adds to it."""
    return metric.version.partition("+cal:")[0]


def settings_of(metric: Metric, item: CalibratedItem) -> dict[str, Any]:
    """Return the options that the item depends on, as JSON: those of the whole metric for a score.

    Example:
        >>> from ragstone import SummarizationScore
        >>> from ragstone.testing import FakeLLM
        >>> settings_of(SummarizationScore(llm=FakeLLM(lambda request: "")), "score")["coeff"]
        0.5
    """
    if item != "score":
        return {}
    fields = [field for field in dataclasses.fields(metric) if field.name not in _NOT_SETTINGS]
    # An embedder that may be left out is for calibrations of something else.
    names = [field.name for field in fields if field.name != "embedder" or metric.needs_embedder]
    return {name: _plain(getattr(metric, name)) for name in names}


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    for name in ("cache_key", "model", "__qualname__"):
        if isinstance(label := getattr(value, name, None), str):
            return label
    return type(value).__qualname__


def _differences(calibration: Calibration, metric: Metric) -> Iterator[str]:
    """Yield, in words, each way in which a metric is not the one that the calibration is of."""
    if metric.name != calibration.metric:
        yield f"it is of {calibration.metric}, this is {metric.name}"
        return
    identity = (
        ("version", calibration.version, plain_version(metric)),
        ("instructions", calibration.prompts, prompts_digest(metric)),
        ("judge", calibration.judge, metric.judge.model),
    )
    for name, made_with, has in identity:
        if made_with != has:
            yield f"{name}: made with {made_with!r}, this has {has!r}"
    if calibration.embeds:
        model = None if metric.judge_embedder is None else metric.judge_embedder.model
        if model is None:
            yield f"embedder: made with {calibration.embedder!r}, this has none; pass embedder="
        elif model != calibration.embedder:
            yield f"embedder: made with {calibration.embedder!r}, this has {model!r}"
    if metric.asks_one_by_one != calibration.one_by_one:
        ways = {True: "one_by_one", False: "together"}
        yield f"asking: made {ways[calibration.one_by_one]!r}, this asks {ways[metric.asks_one_by_one]!r}"
    settings = settings_of(metric, calibration.item)
    for name in sorted((settings.keys() | calibration.settings.keys()) - _NOT_SETTINGS):  # older ones may name them
        if settings.get(name) != calibration.settings.get(name):
            yield f"{name}: made with {calibration.settings.get(name)!r}, this has {settings.get(name)!r}"
    if calibration.item not in ("score", *metric.calibrated_items):
        yield f"it is of a {calibration.item}, which {metric.name} does not ask about one by one"
