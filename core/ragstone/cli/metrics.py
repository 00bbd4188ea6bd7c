"""Metrics by name, with options and thresholds as they are written on the command line."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import click
from pydantic import TypeAdapter, ValidationError

from ragstone.cli.dry_run import Nobody, unasked
from ragstone.cli.judges import make_embedder, make_llm, model_of
from ragstone.labels import Calibration, CalibrationError
from ragstone.metrics import AlignmentCoverage, ContextRelevancy, Metric, ResponseRelevancy, SummarizationScore

_CLASSES: Mapping[str, type[Metric]] = {
    cls.name: cls for cls in (SummarizationScore, AlignmentCoverage, ResponseRelevancy, ContextRelevancy)
}
METRICS = tuple(_CLASSES)
_NOT_SETTABLE = {"llm", "embedder", "splitter", "threshold", "calibration"}


def make_metrics(
    options: Mapping[str, Mapping[str, Any]], *, llm: str, embedder: str | None, concurrency: int, dry: bool = False
) -> list[Metric]:
    """Return the metrics, over one judge, that the options are of.

    Args:
        options: By metric.
        llm: What --llm names.
        embedder: What --embedder names.
        concurrency: Calls in flight at most.
        dry: Whether nobody will be asked: judge and embedder then need not be there.

    Raises:
        click.ClickException: The judge or the embedder cannot be had, or an option has an impossible value.
    """
    judge = unasked(llm) if dry else make_llm(llm, max_concurrency=concurrency)
    metrics: list[Metric] = []
    for name, given in options.items():
        more: dict[str, Any] = {}
        calibration = given.get("calibration")
        embeds = isinstance(calibration, Calibration) and calibration.embeds
        if name == ResponseRelevancy.name or embeds:
            more["embedder"] = (
                Nobody("the embedder" if embedder is None else model_of("--embedder", embedder))
                if dry
                else make_embedder(embedder, llm, judge, max_concurrency=concurrency)
            )
        try:
            asked = judge
            if dry and isinstance(calibration, Calibration):  # what nobody is called is nobody's business
                asked = Nobody(calibration.judge)
                more |= {"embedder": Nobody(calibration.embedder)} if calibration.embedder else {}
            metrics.append(_CLASSES[name](llm=asked, **given, **more))
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"{name}: {error}") from None
    return metrics


def load_calibrations(paths: Sequence[str], names: Sequence[str]) -> dict[str, Calibration]:
    """Return the calibrations in the files that --calibration names, by metric.

    Raises:
        click.UsageError: One cannot be read, is of a metric that is not scored, or two are of one.
    """
    found: dict[str, Calibration] = {}
    for path in paths:
        try:
            calibration = Calibration.load(path)
        except CalibrationError as error:
            raise click.UsageError(f"--{error}") from None
        name = calibration.metric
        if name not in names:
            raise click.UsageError(f"--calibration {path}: is of {name}, which is not scored; add --metric {name}")
        if name in found:
            raise click.UsageError(f"--calibration {path}: is the second one of {name}")
        found[name] = calibration
    return found


def parse_settings(settings: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return each metric's options by name, as `--set METRIC.OPTION=VALUE` gives them.

    Raises:
        click.UsageError: One names no metric or no option of it, or its value is not of the option's type.
    """
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for text in settings:
        path, equals, raw = text.partition("=")
        name, _, option = path.partition(".")
        if not equals or name not in options:
            raise click.UsageError(f"--set {text}: write METRIC.OPTION=VALUE, METRIC one of {', '.join(names)}")
        known = {field.name: field.type for field in dataclasses.fields(_CLASSES[name])}
        settable = sorted(known.keys() - _NOT_SETTABLE)
        if option not in settable:
            raise click.UsageError(f"--set {text}: {name} has no option {option!r}; it has {', '.join(settable)}")
        try:
            value = json.loads(raw)
        except ValueError as error:
            if raw.startswith(("[", "{", '"')):
                raise click.UsageError(f"--set {text}: not JSON: {error}") from None
            value = raw
        try:
            options[name][option] = TypeAdapter[Any](cast("Any", known[option])).validate_python(value)
        except ValidationError as error:
            wrong = dict.fromkeys(each["msg"] for each in error.errors(include_url=False, include_input=False))
            raise click.UsageError(f"--set {text}: {'; '.join(wrong)}") from None
    return options


def parse_thresholds(thresholds: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Return the limit of each metric that has one; METRIC=X goes before X, wherever it stands.

    Raises:
        click.UsageError: One is no number from -1 to 1, or is of no metric that is scored.

    Example:
        >>> parse_thresholds(["b=0.7", "0.5"], ["a", "b"])
        {'a': 0.5, 'b': 0.7}
    """
    for_all: dict[str, float] = {}
    for_one: dict[str, float] = {}
    for text in thresholds:
        name, equals, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            limit = math.nan
        if not -1.0 <= limit <= 1.0 or (equals and name not in names):
            raise click.UsageError(
                f"--threshold {text}: write X or METRIC=X, X from -1 to 1, METRIC one of {', '.join(names)}"
            )
        if equals:
            for_one[name] = limit
        else:
            for_all.update(dict.fromkeys(names, limit))
    return for_all | for_one
