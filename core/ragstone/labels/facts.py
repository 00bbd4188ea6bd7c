"""Which metric a calibration is of: its prompts, judge and options, and how another one differs."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ragstone.judging.prompt import digest
from ragstone.labels.calibration import Calibration
from ragstone.labels.signals import Item

if TYPE_CHECKING:
    from ragstone.metrics.base import Metric

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


def prompts_digest(metric: "Metric") -> str:
    """Return what stands for the instructions that a metric gives its judge."""
    return digest({**metric.prompts, **metric.instructions})


def plain_version(metric: "Metric") -> str:
    """Return a metric's version without what a calibration adds to it."""
    return metric.version.partition("+cal:")[0]


def settings_of(metric: "Metric", item: Item) -> dict[str, Any]:
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
        if isinstance(told := getattr(value, name, None), str):
            return told
    return type(value).__qualname__


def differences(calibration: Calibration, metric: "Metric") -> Iterator[str]:
    """Yield, in words, each way in which a metric is not the one that the calibration is of."""
    if metric.name != calibration.metric:
        yield f"it is of {calibration.metric}, this is {metric.name}"
        return
    told = (
        ("version", calibration.version, plain_version(metric)),
        ("instructions", calibration.prompts, prompts_digest(metric)),
        ("judge", calibration.judge, metric.judge.model),
    )
    for name, made_with, has in told:
        if made_with != has:
            yield f"{name}: made with {made_with!r}, this has {has!r}"
    if calibration.embeds:
        embedder = cast("object", getattr(metric, "embedder", None))
        model = getattr(embedder, "model", None)
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
