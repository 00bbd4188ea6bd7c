"""What a metric was set up with, as JSON: what its scores and the formula of labels depend on."""

from dataclasses import fields
from typing import Any

from ragstone.judging.prompt import digest
from ragstone.metrics.base import Metric
from ragstone.plain import to_plain
from ragstone.public import is_secret

# Options that are compared under another name (judge, embedder, version), or that leave the score as it is.
_NOT_SETTINGS = frozenset(
    {
        "llm",
        "writer",
        "embedder",
        "asking",
        "instructions",
        "max_characters",
        "max_input_tokens",
        "reason",
        "threshold",
    }
)


def setup_of(metric: Metric) -> dict[str, Any]:
    """Return what the metric's score depends on, beside its version and judge: no keys are in it.

    Example:
        >>> from ragstone import SummarizationScore
        >>> from ragstone.testing import FakeLLM
        >>> setup_of(SummarizationScore(llm=FakeLLM(lambda request: "")))["settings"]["coeff"]
        0.5
    """
    values = {each.name: getattr(metric, each.name) for each in fields(metric) if each.name not in _NOT_SETTINGS}
    settings = {name: to_plain(value, _label) for name, value in sorted(values.items()) if not is_secret(name, value)}
    return {
        "prompts": digest({**metric.prompts, **metric.instructions}),
        "embedder": getattr(metric.judge_embedder, "model", None),
        "one_by_one": metric.asks_one_by_one,
        "settings": settings | {"scoring": "expected" if metric.expects else "count"},
    }


def _label(value: object) -> object:
    labels = (getattr(value, name, None) for name in ("cache_key", "model", "__qualname__"))
    return next((label for label in labels if isinstance(label, str)), type(value).__qualname__)
