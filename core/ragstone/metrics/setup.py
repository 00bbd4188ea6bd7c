"""What a metric was set up with, as JSON: what a calibration of it depends on, and what makes it again."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ragstone.judging.prompt import digest
from ragstone.metrics.base import CalibratedItem, Metric
from ragstone.plain import to_plain
from ragstone.public import is_secret

# Options that are compared under another name (judge, embedder, version), or that leave the score as it is.
_NOT_SETTINGS = frozenset(
    {
        "llm",
        "writer",
        "embedder",
        "asking",
        "calibration",
        "instructions",
        "max_characters",
        "max_input_tokens",
        "reason",
        "threshold",
    }
)


def setup_of(metric: Metric) -> dict[str, Any]:
    """Return what a calibration of the metric's score depends on, beside its version and judge."""
    return {
        "prompts": prompts_digest(metric),
        "embedder": embedder_of(metric, "score"),
        "one_by_one": metric.asks_one_by_one,
        "settings": settings_of(metric, "score"),
        "source": metric.source_field,
    }


def identity_of(
    metric: str, version: str, judge: str, setup: Mapping[str, Any], item: CalibratedItem
) -> dict[str, Any]:
    """Return what a calibration of an item names, from `setup_of`.

    Raises:
        KeyError: The setup is not whole.
    """
    return {
        "metric": metric,
        "version": plain_version(version),
        "prompts": setup["prompts"],
        "judge": judge,
        "embedder": None if item == "noncommittal" else setup["embedder"],
        "item": item,
        "settings": setup["settings"] if item == "score" else {},
        "one_by_one": setup["one_by_one"],
    }


def prompts_digest(metric: Metric) -> str:
    """Return what stands for the instructions that a metric gives its judge."""
    return digest({**metric.prompts, **metric.instructions})


def plain_version(version: str) -> str:
    """Return a metric's version without what a calibration and the scoring add to it."""
    return version.partition("+cal:")[0].removesuffix("+expected")


def embedder_of(metric: Metric, item: CalibratedItem) -> str | None:
    """Return the `model` of the embedder that the item depends on: of no metric is that whether it is noncommittal."""
    return None if item == "noncommittal" else getattr(metric.judge_embedder, "model", None)


def settings_of(metric: Metric, item: CalibratedItem) -> dict[str, Any]:
    """Return the options that the item depends on, as JSON and without keys: those of the whole metric for a score.

    Example:
        >>> from ragstone import SummarizationScore
        >>> from ragstone.testing import FakeLLM
        >>> settings_of(SummarizationScore(llm=FakeLLM(lambda request: "")), "score")["coeff"]
        0.5
    """
    if item != "score":
        return {}
    values = {each.name: getattr(metric, each.name) for each in fields(metric) if each.name not in _NOT_SETTINGS}
    settings = {name: to_plain(value, _label) for name, value in sorted(values.items()) if not is_secret(name, value)}
    return settings | {"scoring": "expected" if metric.expects else "count"}


def _label(value: object) -> object:
    labels = (getattr(value, name, None) for name in ("cache_key", "model", "__qualname__"))
    return next((label for label in labels if isinstance(label, str)), type(value).__qualname__)
