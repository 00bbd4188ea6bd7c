"""Metrics by name, with options and thresholds as they are written on the command line."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ragstone.cli.judges import make_embedder, make_llm
from ragstone.metrics import AlignmentCoverage, ContextRelevancy, Metric, ResponseRelevancy, SummarizationScore

_CLASSES: Mapping[str, type[Metric]] = {
    cls.name: cls for cls in (SummarizationScore, AlignmentCoverage, ResponseRelevancy, ContextRelevancy)
}
METRICS = tuple(_CLASSES)
_NOT_SETTABLE = {"llm", "embedder", "splitter", "threshold"}


def make_metrics(
    names: Sequence[str], settings: Sequence[str], *, llm: str, embedder: str | None, concurrency: int
) -> list[Metric]:
    """Return the named metrics, each once, over one judge.

    Raises:
        click.UsageError: A setting names no metric or no option of it, or has an impossible value.
    """
    wanted = list(dict.fromkeys(names))
    options = _options(settings, wanted)
    judge = make_llm(llm, max_concurrency=concurrency)
    metrics: list[Metric] = []
    for name in wanted:
        if name == ResponseRelevancy.name:
            options[name]["embedder"] = make_embedder(embedder, llm, max_concurrency=concurrency)
        try:
            metrics.append(_CLASSES[name](llm=judge, **options[name]))
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"{name}: {error}") from None
    return metrics


def _options(settings: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for text in settings:
        path, equals, raw = text.partition("=")
        name, _, option = path.partition(".")
        if not equals or name not in options:
            raise click.UsageError(f"--set {text}: write METRIC.OPTION=VALUE, METRIC one of {', '.join(names)}")
        known = {field.name for field in dataclasses.fields(_CLASSES[name])} - _NOT_SETTABLE
        if option not in known:
            raise click.UsageError(f"--set {text}: {name} has no option {option!r}; it has {', '.join(sorted(known))}")
        try:
            options[name][option] = json.loads(raw)
        except ValueError:
            options[name][option] = raw
    return options


def parse_threshold(text: str, names: Sequence[str]) -> list[tuple[str, float]]:
    """Return the (metric, limit) pairs that one --threshold stands for.

    Example:
        >>> parse_threshold("0.5", ["a", "b"]), parse_threshold("b=0.7", ["a", "b"])
        ([('a', 0.5), ('b', 0.5)], [('b', 0.7)])
    """
    name, equals, value = text.rpartition("=")
    try:
        limit = float(value)
    except ValueError:
        limit = float("nan")
    if not -1.0 <= limit <= 1.0 or (equals and name not in names):
        raise click.UsageError(
            f"--threshold {text}: write X or METRIC=X, X from -1 to 1, METRIC one of {', '.join(names)}"
        )
    return [(name, limit)] if equals else [(each, limit) for each in names]
