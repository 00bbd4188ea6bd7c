"""The set-up of a metric: all that its scores depend on, except version and judge."""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from ragstone.identity import digest_of
from ragstone.metrics.base import Metric
from ragstone.plain import to_plain
from ragstone.public import is_secret

# What says so in other words: the judge, the version, and what `setup_of` adds.
_SAID_OTHERWISE = frozenset({"llm", "writer", "embedder", "asking", "scoring", "instructions"})
_SHORT = re.compile(r"[^\s,=]{1,60}")


def settings_of(metric: Metric) -> dict[str, Any]:
    """Return all options as JSON, which the formula of labels reads; no model and no key is in it.

    Example:
        >>> from ragstone import SummarizationScore
        >>> settings_of(SummarizationScore(coeff=0.25))["coeff"]
        0.25
    """
    values = {each.name: getattr(metric, each.name) for each in fields(metric) if each.name not in _SAID_OTHERWISE}
    return {name: to_plain(value, _label) for name, value in sorted(values.items()) if not is_secret(name, value)}


def setup_of(metric: Metric) -> str:
    """Say what differs from the defaults and moves the score, and who embeds: "granularity=chunk"; "" for nothing.

    A value that is no short word stands as a digest. Scores of two set-ups are neither averaged nor compared.

    Example:
        >>> from ragstone import SummarizationScore
        >>> setup_of(SummarizationScore(coeff=0.25)), setup_of(SummarizationScore())
        ('coeff=0.25', '')
    """
    changed: dict[str, Any] = {}
    for each in fields(metric):
        value = getattr(metric, each.name)
        if value is each.default or each.name in _SAID_OTHERWISE or each.name in metric.neutral_options:
            continue
        usual = each.default if each.default_factory is MISSING else each.default_factory()
        plain = to_plain(value, _label)
        if plain != to_plain(usual, _label) and not is_secret(each.name, plain):
            changed[each.name] = plain
    if (embedder := metric.judge_embedder) is not None:
        changed["embedder"] = embedder.model
    writer: str | None = getattr(metric.writer, "model", None)
    if writer not in (None, metric.judge.model):
        changed["writer"] = writer
    if metric.asking != "auto" and metric.asking != getattr(metric.judge, "asking", "one_by_one"):
        changed["asking"] = metric.asking
    return ", ".join(f"{name}={shown(value)}" for name, value in sorted(changed.items()))


def in_words(version: str, judge: str, setup: str) -> str:
    """Say by what scores of one metric are told apart."""
    words = f"version {version}, judge {judge or 'unknown'}"
    return f"{words}, {setup}" if setup else words


def parts_of(setup: str) -> Mapping[str, str]:
    """Return the parts of a set-up by the option's name.

    Example:
        >>> parts_of("embedder=bge-small, granularity=chunk")
        {'embedder': 'bge-small', 'granularity': 'chunk'}
    """
    return dict(part.split("=", 1) for part in setup.split(", ") if "=" in part)


def shown(value: object) -> str:
    """Return a value as a set-up has it."""
    text = value if isinstance(value, str) else "none" if value is None else json.dumps(value, sort_keys=True)
    return text if _SHORT.fullmatch(text) else f"#{digest_of(value)[:8]}"


def _label(value: object) -> object:
    labels = (getattr(value, name, None) for name in ("cache_key", "model", "__qualname__"))
    return next((label for label in labels if isinstance(label, str)), type(value).__qualname__)
